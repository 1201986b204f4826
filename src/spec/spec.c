/* SPDX-License-Identifier: MIT */
/* One target and its keys; words.c finds them in a line. */
#include "priv.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/text.h"
#include "value.h"

const char spec_form_hint[] =
	"write MODULE:SYMBOL, with a delay as 5us after it; :NAME is a function of the main "
	"executable, and a name with blanks needs quotes";
static const char python_hint[] =
	"write py:MODULE:QUALNAME, as py:vllm.*:Scheduler.schedule; for an ELF file named py, "
	"give its path";

int spec_refuse(struct sb_err *err, const char *what, const char *word, const char *why,
		const char *hint)
{
	char quoted[TEXT_QUOTE_SIZE];
	int rc = err_set(err, SB_ESPEC, "%s '%s' %s", what,
			 text_quote(word, quoted, sizeof(quoted)), why);

	err_hint(err, "%s", hint);
	return rc;
}

int spec_refuse_memory(struct sb_err *err)
{
	return err_set(err, SB_ENOMEM, "no memory for the list of targets");
}

/* Decimal digits and nothing else, at most max. */
static bool read_uint(const char *text, size_t len, uint64_t max, uint64_t *value)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(text[i] - '0'), &v) || v > max)
			return false;
	}
	*value = v;
	return len > 0;
}

/* Keys. Each function reads its value into the target; `word` is for the error. */

static int key_every(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	if (read_uint(value, strlen(value), UINT64_MAX, &spec->every) && spec->every)
		return 0;
	return spec_refuse(err, "the key", word, "is not a count",
			   "write every=100 to delay each hundredth hit, every=1 for each hit");
}

/* A time, with the whole word before its error: "start=5: the time '5' has no unit". */
static int key_span(const char *value, const char *word, uint64_t *ns, struct sb_err *err)
{
	char quoted[TEXT_QUOTE_SIZE];
	int rc = spec_duration(value, ns, err);

	if (rc)
		err_prefix(err, "%s", text_quote(word, quoted, sizeof(quoted)));
	return rc;
}

static int key_start(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	return key_span(value, word, &spec->start_ns, err);
}

static int key_for(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	int rc = key_span(value, word, &spec->for_ns, err);

	if (rc || spec->for_ns)
		return rc;
	return spec_refuse(err, "the key", word, "is a window that never opens",
			   "write for=30s, or leave it out to hook until the end");
}

static int key_pid(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	uint64_t pid;

	if (!read_uint(value, strlen(value), INT_MAX, &pid) || !pid)
		return spec_refuse(err, "the key", word, "is not a process id",
				   "write pid=1234: that process and its descendants");
	spec->pid = (pid_t)pid;
	return 0;
}

static int key_thread(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	if (!*value)
		return spec_refuse(err, "the key", word, "names no thread",
				   "write thread=GLOB for thread names, or thread=TID");
	spec->thread = strdup(value);
	return spec->thread ? 0 : spec_refuse_memory(err);
}

static int key_resume(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	static const char hint[] = "resume=yes counts each resumption of a generator or coroutine; "
				   "only py: targets have them";

	if (strcmp(value, "yes") && strcmp(value, "no"))
		return spec_refuse(err, "the key", word, "is neither yes nor no", hint);
	if (spec->kind != SPEC_PYTHON)
		return spec_refuse(err, "the key", word, "belongs to Python targets", hint);
	spec->resume = !strcmp(value, "yes");
	return 0;
}

static int key_inline(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	static const char hint[] = "inline=yes hooks the places where the compiler inlined a "
				   "function, too, as libfoo.so:f inline=yes";

	if (strcmp(value, "yes") && strcmp(value, "no"))
		return spec_refuse(err, "the key", word, "is neither yes nor no", hint);
	if (spec->kind != SPEC_SYMBOL && spec->kind != SPEC_LITERAL)
		return spec_refuse(err, "the key", word, "belongs to the name of a native function",
				   hint);
	spec->inlined = !strcmp(value, "yes");
	return 0;
}

static int key_at(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	static const char hint[] = "at=exit counts and delays a native function as it returns, as "
				   "libfoo.so:f at=exit; at=both gives half of the delay at each "
				   "end; at=entry is the default";
	static const char *const names[] = { "entry", "exit", "both" };
	size_t at = 0;

	while (at < 3 && strcmp(value, names[at]))
		at++;
	if (at == 3)
		return spec_refuse(err, "the key", word, "is not entry, exit or both", hint);
	if (spec->kind != SPEC_SYMBOL && spec->kind != SPEC_LITERAL)
		return spec_refuse(err, "the key", word, "belongs to the name of a native function",
				   hint);
	spec->at = (enum spec_at)at;
	return 0;
}

static int key_time(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	static const char hint[] = "time=yes measures how long the calls of a function take, as "
				   "libfoo.so:f time=yes";

	if (strcmp(value, "yes") && strcmp(value, "no"))
		return spec_refuse(err, "the key", word, "is neither yes nor no", hint);
	if (spec->kind == SPEC_LINE || spec->kind == SPEC_TRACEPOINT)
		return spec_refuse(err, "the key", word, "belongs to the name of a function", hint);
	spec->timed = !strcmp(value, "yes");
	spec->time_given = true;
	return 0;
}

int spec_refuse_value(struct sb_err *err, const char *word, const char *why)
{
	return why ? spec_refuse(
			     err, "the key", word, why,
			     "write arg=NAME:N or arg=NAME:N:TYPE for the Nth integer argument (1 "
			     "to 6), "
			     "ret, ret=TYPE or ret=NAME:TYPE for what is returned, and behind them "
			     "sum=NAME; the types are i8 to i64, u8 to u64, ptr and bool, and str "
			     "behind N@exit") :
		     0;
}

static int key_arg(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	return spec_refuse_value(err, word, value_arg(spec, value));
}

static int key_kthreads(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	static const char hint[] =
		"kthreads=yes counts the calls of the kernel's own threads, too, "
		"as kernel:nvidia_isr_kthread_bh kthreads=yes";

	if (strcmp(value, "yes") && strcmp(value, "no"))
		return spec_refuse(err, "the key", word, "is neither yes nor no", hint);
	if (spec->kind != SPEC_KERNEL && spec->kind != SPEC_TRACEPOINT)
		return spec_refuse(err, "the key", word,
				   "belongs to functions and tracepoints of the kernel", hint);
	spec->kthreads = !strcmp(value, "yes");
	return 0;
}

static int key_args(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	const char *why = NULL;

	if (strcmp(value, "yes") && strcmp(value, "no"))
		why = "is neither yes nor no";
	else if (!strcmp(value, "yes"))
		why = value_args(spec);
	return why ? spec_refuse(err, "the key", word, why,
				 "args=yes records the first arguments of a C or C++ function that "
				 "has debug information, as libfoo.so:f args=yes") :
		     0;
}

static int key_ret(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	return spec_refuse_value(err, word, value_ret(spec, value));
}

static int key_sum(struct spec *spec, const char *value, const char *word, struct sb_err *err)
{
	return spec_refuse_value(err, word, value_sum(spec, value));
}

/* The keys: texts for help, completion and errors, and the function that reads the value. */
static const struct key {
	struct spec_key shown;
	int (*read)(struct spec *spec, const char *value, const char *word, struct sb_err *err);
	enum { ONCE, MANY, ALONE } form; /* times a target; ALONE: once, and may lack its value */
} keys[] = {
	{ { "every", "N", "delay each Nth hit of a thread; all are counted" }, key_every, ONCE },
	{ { "start", "TIME", "begin that long after the session" }, key_start, ONCE },
	{ { "for", "TIME", "end that long after it began" }, key_for, ONCE },
	{ { "pid", "PID", "only in this process and its descendants" }, key_pid, ONCE },
	{ { "thread", "GLOB|TID", "only calls of these threads" }, key_thread, ONCE },
	{ { "resume", "yes|no", "count each step of a generator or coroutine (py:)" },
	  key_resume,
	  ONCE },
	{ { "inline", "yes|no", "hook the copies that the compiler made, too" }, key_inline, ONCE },
	{ { "at", "entry|exit|both",
	    "delay a function as it is called, as it returns, or half each" },
	  key_at,
	  ONCE },
	{ { "time", "yes|no", "measure how long its calls take" }, key_time, ONCE },
	{ { "arg", "NAME:N[@exit][:TYPE]|NAME:caller",
	    "record the Nth integer argument of its calls, the string there, or where they are "
	    "made" },
	  key_arg,
	  MANY },
	{ { "args", "yes|no", "record its integer arguments, by its debug information" },
	  key_args,
	  ONCE },
	{ { "ret", "[NAME:]TYPE", "record what they return; also: ret" }, key_ret, ALONE },
	{ { "sum", "NAME", "add up that value over all calls" }, key_sum, MANY },
	{ { "kthreads", "yes|no", "count calls of the kernel's own threads, too (kernel:)" },
	  key_kthreads,
	  ONCE },
};

enum { N_KEYS = sizeof(keys) / sizeof(keys[0]) };
_Static_assert((int)N_KEYS <= (int)SPEC_NO_KEY, "a bit for each key");

const struct spec_key *spec_key(size_t i)
{
	return i < N_KEYS ? &keys[i].shown : NULL;
}

int spec_refuse_key(struct sb_err *err, const char *word, const char *why)
{
	char hint[320];
	size_t n = (size_t)snprintf(hint, sizeof(hint), "the keys are");

	for (size_t i = 0; i < N_KEYS; i++)
		n += (size_t)snprintf(hint + n, sizeof(hint) - n, "%s%s=%s",
				      !i	     ? " " :
				      i + 1 < N_KEYS ? ", " :
						       " and ",
				      keys[i].shown.name, keys[i].shown.arg);
	snprintf(hint + n, sizeof(hint) - n, "; arg= and sum= several times a target");
	return spec_refuse(err, "the key", word, why, hint);
}

size_t spec_key_find(const char *word)
{
	size_t len = strcspn(word, "="), i;

	for (i = 0; i < N_KEYS; i++)
		if (strlen(keys[i].shown.name) == len && !strncmp(word, keys[i].shown.name, len) &&
		    (word[len] || keys[i].form == ALONE))
			return i;
	return SPEC_NO_KEY;
}

bool spec_key_repeats(size_t key)
{
	return keys[key].form == MANY;
}

int spec_key_read(struct spec *spec, size_t key, const char *word, struct sb_err *err)
{
	const char *equals = strchr(word, '=');
	int rc = keys[key].read(spec, equals ? equals + 1 : NULL, word, err);

	return rc ? rc : spec_refuse_value(err, word, value_conflict(spec));
}

bool spec_is_key(const char *word)
{
	return spec_key_find(word) != SPEC_NO_KEY;
}

/* Targets */

void spec_clear(struct spec *spec)
{
	free(spec->text);
	free(spec->module);
	free(spec->symbol);
	free(spec->thread);
}

static char *copy(const char *text)
{
	return text ? text_dup(text) : NULL;
}

struct spec *spec_copy(const struct spec *from)
{
	struct spec *to = malloc(sizeof(*to));

	if (!to)
		abort();
	*to = *from;
	to->text = copy(from->text);
	to->module = copy(from->module);
	to->symbol = copy(from->symbol);
	to->thread = copy(from->thread);
	return to;
}

void spec_copy_free(struct spec *spec)
{
	if (!spec)
		return;
	spec_clear(spec);
	free(spec);
}

/* Sets module and symbol; each is given by its start and length. */
static int target_set(struct spec *spec, const char *module, size_t module_len, const char *symbol,
		      size_t symbol_len, struct sb_err *err)
{
	spec->module = strndup(module, module_len);
	spec->symbol = strndup(symbol, symbol_len);
	return spec->module && spec->symbol ? 0 : spec_refuse_memory(err);
}

/* MODULE:@FILE:LINE. The file's name may hold a ':'; the line is behind the last one. */
static int target_line(struct spec *spec, const char *module, size_t len, const char *place,
		       struct sb_err *err)
{
	const char *colon = strrchr(place, ':');
	uint64_t line = 0;

	if (!colon || colon == place || !read_uint(colon + 1, strlen(colon + 1), INT_MAX, &line) ||
	    !line)
		return spec_refuse(err, "target", spec->text, "names no source line",
				   "write MODULE:@FILE:LINE, as libfoo.so:@foo.c:120");
	spec->kind = SPEC_LINE;
	spec->line = (unsigned int)line;
	return target_set(spec, module, len, place, (size_t)(colon - place), err);
}

static int target_python(struct spec *spec, const char *rest, struct sb_err *err)
{
	const char *colon = strchr(rest, ':');

	if (!colon || colon == rest || !colon[1])
		return spec_refuse(err, "target", spec->text, "lacks a module or a function",
				   python_hint);
	if (strchr(colon + 1, ':'))
		return spec_refuse(err, "target", spec->text, "has a ':' too many for Python",
				   python_hint);
	spec->kind = SPEC_PYTHON;
	return target_set(spec, rest, (size_t)(colon - rest), colon + 1, strlen(colon + 1), err);
}

static int target_kernel(struct spec *spec, const char *name, struct sb_err *err)
{
	if (!*name || strchr(name, ':'))
		return spec_refuse(err, "target", spec->text, "names no function of the kernel",
				   "write kernel:NAME, as kernel:do_futex or 'kernel:*nv*sched*'");
	spec->kind = SPEC_KERNEL;
	spec->delay_ns = 0; /* the kernel is never delayed, by no default either */
	return target_set(spec, "kernel", 6, name, strlen(name), err);
}

static int target_tracepoint(struct spec *spec, const char *rest, struct sb_err *err)
{
	const char *colon = strchr(rest, ':');

	if (!colon || colon == rest || !colon[1] || strchr(colon + 1, ':'))
		return spec_refuse(err, "target", spec->text, "names no tracepoint",
				   "write tracepoint:SUBSYSTEM:NAME, as "
				   "tracepoint:sched:sched_switch");
	spec->kind = SPEC_TRACEPOINT;
	spec->delay_ns = 0;
	return target_set(spec, rest, (size_t)(colon - rest), colon + 1, strlen(colon + 1), err);
}

/* What is named by a begin or a whole, for programs in the kernel that compare so many letters. */
static const struct begun {
	const char *word;
	enum spec_kind kind;
	const char *never, *lacks, *hint; /* never: letters that no such name has */
	bool any;			  /* '*' alone means all */
} begun[] = {
	{ "ioctl", SPEC_IOCTL, "/:", "names no device",
	  "write ioctl:NAME or ioctl:BEGIN*, as 'ioctl:nvidia*': what a device in /dev is called, "
	  "14 "
	  "letters at most",
	  false },
	{ "interrupt", SPEC_INTERRUPT, "", "names no interrupt handler",
	  "write interrupt:NAME or interrupt:BEGIN*, as 'interrupt:nvidia*': the name at the end "
	  "of "
	  "its line in /proc/interrupts, 14 letters at most",
	  false },
	{ "offcpu", SPEC_OFFCPU, "", "names no threads",
	  "write offcpu:NAME, offcpu:BEGIN* or 'offcpu:*': the threads' names, 14 letters at most",
	  true },
};

/* A name, or the begin of one and '*'; that of a device may have /dev/ in front. */
static int target_begun(struct spec *spec, const struct begun *b, const char *name,
			struct sb_err *err)
{
	size_t len;

	name += b->kind != SPEC_IOCTL || strncmp(name, "/dev/", 5) ? 0 : 5;
	len = strcspn(name, "*?[]\\");
	if ((!len && !(b->any && *name)) || len > SPEC_DEVICE_MAX ||
	    strcspn(name, b->never) < len || (name[len] && strcmp(name + len, "*") != 0))
		return spec_refuse(err, "target", spec->text, b->lacks, b->hint);
	spec->kind = b->kind;
	spec->delay_ns = 0;
	return target_set(spec, b->word, strlen(b->word), name, strlen(name), err);
}

static int target_native(struct spec *spec, const char *colon, struct sb_err *err)
{
	size_t len = (size_t)(colon - spec->text);
	const char *symbol = colon + 1;

	if (*symbol == '@')
		return target_line(spec, spec->text, len, symbol + 1, err);
	spec->kind = *symbol == '=' ? SPEC_LITERAL : SPEC_SYMBOL;
	symbol += spec->kind == SPEC_LITERAL;
	if (!*symbol)
		return spec_refuse(err, "target", spec->text, "names no function", spec_form_hint);
	/* ns::f without a module would be symbol ":f" of module "ns": no name starts like this. */
	if (*symbol == ':')
		return spec_refuse(err, "target", spec->text, "has no MODULE: before the C++ name",
				   "write MODULE:ns::f, or :ns::f for the main executable");
	return target_set(spec, spec->text, len, symbol, strlen(symbol), err);
}

int spec_target_parse(struct spec *spec, const char *word, struct sb_err *err)
{
	const char *colon;

	spec->text = strdup(word);
	if (!spec->text)
		return spec_refuse_memory(err);
	spec->text_len = strlen(spec->text);
	colon = strchr(spec->text, ':');
	if (colon - spec->text == 2 && !memcmp(spec->text, "py", 2))
		return target_python(spec, colon + 1, err);
	if (colon - spec->text == 6 && !memcmp(spec->text, "kernel", 6))
		return target_kernel(spec, colon + 1, err);
	if (colon - spec->text == 10 && !memcmp(spec->text, "tracepoint", 10))
		return target_tracepoint(spec, colon + 1, err);
	for (size_t i = 0; i < sizeof(begun) / sizeof(*begun); i++)
		if ((size_t)(colon - spec->text) == strlen(begun[i].word) &&
		    !strncmp(spec->text, begun[i].word, strlen(begun[i].word)))
			return target_begun(spec, &begun[i], colon + 1, err);
	return target_native(spec, colon, err);
}

/* Pids */

#define PID_SEPARATORS ", \t\r\n"

static int pids_refuse(struct sb_err *err, const char *word, const char *why)
{
	char quoted[TEXT_QUOTE_SIZE];
	int rc = err_set(err, SB_EUSAGE, "'%s' %s", text_quote(word, quoted, sizeof(quoted)), why);

	err_hint(err, "give process ids, as -p 12,13 or -p \"$(pgrep -f NAME)\"; an empty list "
		      "often means that pgrep found nothing");
	return rc;
}

static bool pids_hold(const pid_t *pids, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* Adds one pid, unless the list has it. */
static int pids_add(const char *text, size_t len, pid_t **pids, size_t *count, struct sb_err *err)
{
	uint64_t pid;
	pid_t *grown;

	if (!read_uint(text, len, INT_MAX, &pid) || !pid)
		return pids_refuse(err, text, "is not a process id");
	if (pids_hold(*pids, *count, (pid_t)pid))
		return 0;
	grown = reallocarray(*pids, *count + 1, sizeof(**pids));
	if (!grown)
		return err_set(err, SB_ENOMEM, "no memory for the list of processes");
	*pids = grown;
	grown[(*count)++] = (pid_t)pid;
	return 0;
}

int spec_pids(const char *text, pid_t **pids, size_t *count, struct sb_err *err)
{
	const char *s = text + strspn(text, PID_SEPARATORS);
	size_t before = *count;
	int rc = 0;

	if (!*s)
		return pids_refuse(err, text, "holds no process id");
	while (*s && !rc) {
		size_t len = strcspn(s, PID_SEPARATORS);

		rc = pids_add(s, len, pids, count, err);
		s += len;
		s += strspn(s, PID_SEPARATORS);
	}
	if (rc)
		*count = before;
	return rc;
}
