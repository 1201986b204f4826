/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <ctype.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "evidence/evidence.h"
#include "inject/page-abi.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/result/cuda.h"
#include "src/run/beside.h"
#include "src/session/guess.h"
#include "src/spec/driver.h"
#include "src/spec/env.h"

/* Of --ring, bytes. */
#define TRACE_LEAST   (1ull << 18)
#define TRACE_DEFAULT (1ull << 26)
#define STACK_LEAST   512
#define STACK_DEFAULT 8192
#define STACK_MOST    65536
#define TRACE_MOST    (1ull << 32)

/* The state of a parse, besides its result. */
struct parse {
	struct options *opt;
	uint64_t delay_ns, every;
	bool delay_given;
	char *const *words; /* before --, without the first */
	size_t n_words;
	struct sb_err *err;
};

enum { SAMPLE_MOST = 1000000 };

typedef int option_fn(struct parse *p, const char *arg);

/* An option: a row of the table below, the source of --help and completion, too. */
struct option_row {
	const char *name;
	char letter; /* 0: none */
	int verbs;   /* of enum option_verb */
	enum { IS_SET, IS_CLEARED, IS_TEXT, IS_TIME, IS_READ } kind;
	size_t to;	 /* offset in struct options */
	option_fn *read; /* ... or a function that reads it */
	const char *arg; /* NULL: no argument; "[=...]": one only behind '=' */
	const char *help;
};

static int set_option(struct parse *p, const struct option_row *row, const char *arg)
{
	void *to = (char *)p->opt + row->to;

	switch (row->kind) {
	case IS_SET:
	case IS_CLEARED:
		*(bool *)to = row->kind == IS_SET;
		return 0;
	case IS_TEXT:
		free(*(char **)to);
		*(char **)to = text_dup(arg);
		return 0;
	case IS_TIME:
		return spec_duration(arg, to, p->err);
	default:
		return row->read(p, arg);
	}
}

static int opt_pid(struct parse *p, const char *arg)
{
	return spec_pids(arg, &p->opt->session.pids, &p->opt->session.n_pids, p->err);
}

static int opt_match(struct parse *p, const char *arg)
{
	return options_match(arg, &p->opt->session.pids, &p->opt->session.n_pids, p->err);
}

static int opt_targets(struct parse *p, const char *arg)
{
	return spec_read_file(arg, &p->opt->session.targets, p->err);
}

static int opt_delay(struct parse *p, const char *arg)
{
	p->delay_given = true;
	return spec_delay(arg, &p->delay_ns, p->err);
}

static int opt_every(struct parse *p, const char *arg)
{
	char *end;

	p->every = strtoull(arg, &end, 10);
	if (isdigit((unsigned char)arg[0]) && !*end && p->every)
		return 0;
	err_set(p->err, SB_EUSAGE, "--every '%s': not a number of hits", arg);
	err_hint(p->err, "--every 10 delays each tenth hit");
	return -SB_EUSAGE;
}

static int opt_evidence(struct parse *p, const char *arg)
{
	p->opt->session.evidence = true;
	return arg ? evidence_groups_read(arg, &p->opt->session.evidence_groups, p->err) : 0;
}

static int opt_evidence_sample(struct parse *p, const char *arg)
{
	char *end;
	unsigned long n = strtoul(arg, &end, 10);

	if (isdigit((unsigned char)arg[0]) && !*end && n >= 1 && n <= SAMPLE_MOST) {
		p->opt->session.evidence_sample = (unsigned int)n;
		return 0;
	}
	err_set(p->err, SB_EUSAGE, "--evidence-sample '%s': a number of events, up to %d", arg,
		SAMPLE_MOST);
	err_hint(p->err, "--evidence-sample 10 counts one of ten, as ten");
	return -SB_EUSAGE;
}

static int opt_for(struct parse *p, const char *arg)
{
	int ret = spec_duration(arg, &p->opt->session.for_ns, p->err);

	if (ret == 0 && !p->opt->session.for_ns)
		return err_set(p->err, SB_EUSAGE, "--for 0: the time must be above 0");
	return ret;
}

static int opt_mechanism(struct parse *p, const char *arg)
{
	static const char *const names[] = { "auto", "jump", "int3" };

	for (int i = 0; i < 3; i++) {
		if (strcmp(arg, names[i]))
			continue;
		p->opt->session.mechanism = i;
		return 0;
	}
	err_set(p->err, SB_EUSAGE, "--mechanism: unknown mechanism '%s'", arg);
	err_hint(p->err, "it is auto, jump or int3");
	return -SB_EUSAGE;
}

static int opt_max_slowdown(struct parse *p, const char *arg)
{
	char *end;
	double percent = strtod(arg, &end);

	if (isdigit((unsigned char)arg[0]) && (!strcmp(end, "%") || !*end) && percent > 0 &&
	    percent <= 1e6) {
		p->opt->session.max_slowdown = percent / 100;
		return 0;
	}
	err_set(p->err, SB_EUSAGE, "--max-slowdown '%s': not a percentage", arg);
	err_hint(p->err, "--max-slowdown 30%% lets a thread take up to 30 %% more time");
	return -SB_EUSAGE;
}

static int opt_limit_rate(struct parse *p, const char *arg)
{
	char *end;
	double rate = strtod(arg, &end);

	if (isdigit((unsigned char)arg[0]) && !*end && rate >= 1 && rate <= 1e9) {
		p->opt->session.trace_rate = rate;
		return 0;
	}
	err_set(p->err, SB_EUSAGE, "--limit-rate '%s': not a number of calls a second", arg);
	err_hint(p->err, "--limit-rate 100000 records about that many a second");
	return -SB_EUSAGE;
}

static int opt_ring(struct parse *p, const char *arg)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;
	double size = strtod(arg, &end);

	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit)
		size *= (double)(1ull << 10 * (unit - units + 1));
	end += unit ? 1 : 0;
	if (isdigit((unsigned char)arg[0]) && !*end && size >= TRACE_LEAST && size <= TRACE_MOST) {
		p->opt->trace_size = (uint64_t)size;
		return 0;
	}
	err_set(p->err, SB_EUSAGE, "--ring '%s': not a size from 256K to 4G", arg);
	err_hint(p->err, "--ring 256M keeps more calls while the disk is slow");
	return -SB_EUSAGE;
}

static int opt_stacks(struct parse *p, const char *arg)
{
	(void)arg;
	if (!p->opt->session.trace_stacks)
		p->opt->session.trace_stacks = STACK_DEFAULT;
	return 0;
}

static int opt_stack_size(struct parse *p, const char *arg)
{
	char *end;
	double size = strtod(arg, &end);

	if (toupper((unsigned char)*end) == 'K') {
		size *= 1024;
		end++;
	}
	if (isdigit((unsigned char)arg[0]) && !*end && size >= STACK_LEAST && size <= STACK_MOST) {
		p->opt->session.trace_stacks = (uint32_t)size & ~7u;
		return 0;
	}
	err_set(p->err, SB_EUSAGE, "--stack-size '%s': not a size from 512 to 64K", arg);
	err_hint(p->err, "--stack-size 16K finds callers that are further up");
	return -SB_EUSAGE;
}

static int opt_tag(struct parse *p, const char *arg)
{
	const char *eq = strchr(arg, '=');
	struct result_tag *tag;

	if (!eq || eq == arg) {
		err_set(p->err, SB_EUSAGE, "--tag '%s': not KEY=VALUE", arg);
		err_hint(p->err, "--tag build=1234");
		return -SB_EUSAGE;
	}
	p->opt->tag = realloc(p->opt->tag, (p->opt->n_tags + 1) * sizeof(*p->opt->tag));
	if (!p->opt->tag)
		abort();
	tag = &p->opt->tag[p->opt->n_tags++];
	tag->key = strndup(arg, (size_t)(eq - arg));
	tag->value = text_dup(eq + 1);
	for (size_t i = 0; i + 1 < p->opt->n_tags; i++)
		if (!strcmp(p->opt->tag[i].key, tag->key))
			return err_set(p->err, SB_EUSAGE, "--tag %s is given twice", tag->key);
	return 0;
}

static int opt_interval(struct parse *p, const char *arg)
{
	int ret = spec_duration(arg, &p->opt->interval_ns, p->err);

	if (ret == 0 && p->opt->interval_ns < 1000000)
		return err_set(p->err, SB_EUSAGE, "--interval '%s': 1ms is the shortest", arg);
	return ret;
}

static int opt_status_fd(struct parse *p, const char *arg)
{
	char *end;
	long fd = strtol(arg, &end, 10);

	if (isdigit((unsigned char)arg[0]) && !*end && fd > 0 && fd <= INT_MAX &&
	    fcntl((int)fd, F_SETFD, FD_CLOEXEC) == 0) {
		p->opt->status_fd = (int)fd;
		return 0;
	}
	err_set(p->err, SB_EUSAGE, "--status-fd '%s': not an open descriptor", arg);
	err_hint(p->err, "in a shell: --status-fd 3 3>status");
	return -SB_EUSAGE;
}

static int opt_quiet(struct parse *p, const char *arg)
{
	(void)arg;
	p->opt->quiet = true;
	log_set_level(LOG_ERROR);
	return 0;
}

static int opt_verbose(struct parse *p, const char *arg)
{
	(void)arg;
	p->opt->verbose = true;
	log_set_level(LOG_DEBUG);
	return 0;
}

#define FLAG(member)	IS_SET, offsetof(struct options, member), NULL, NULL
#define NOT(member)	IS_CLEARED, offsetof(struct options, member), NULL, NULL
#define TEXT(member, a) IS_TEXT, offsetof(struct options, member), NULL, a
#define TIME(member)	IS_TIME, offsetof(struct options, member), NULL, "TIME"
#define READ(fn, a)	IS_READ, 0, fn, a

static const struct option_row rows[] = {
	{ "pid", 'p', VERB_ALL, READ(opt_pid, "PID[,PID...]"),
	  "the process, its descendants and all their threads; repeatable" },
	{ "match", 0, VERB_ALL, READ(opt_match, "GLOB"), "processes by their whole command line" },
	{ "all", 'a', VERB_RUN, FLAG(session.all),
	  "every process of the machine, those that start later too (uprobe)" },
	{ "no-children", 0,
	  VERB_RUNS | VERB_LIST | VERB_SWEEP | VERB_EXPLAIN | VERB_FIND | VERB_RECOVER,
	  NOT(session.children), "not its descendants" },
	{ "no-follow", 0, VERB_RUNS, NOT(session.follow),
	  "plant and let the target run untraced; later children are not followed" },
	{ "follow", 0, VERB_SWEEP | VERB_FIND, FLAG(follow),
	  "hook processes that begin later, too: the target is traced meanwhile" },
	{ "targets", 0, VERB_RUNS | VERB_LIST | VERB_SWEEP, READ(opt_targets, "FILE"),
	  "more targets, one a line (sbinject-targets(5))" },
	{ "delay", 0, VERB_RUNS, READ(opt_delay, "TIME"), "for targets without one (default 1us)" },
	{ "every", 0, VERB_RUNS | VERB_SWEEP, READ(opt_every, "N"),
	  "delay each Nth hit of a thread" },
	{ "start", 0, VERB_RUNS, TIME(session.start_ns), "begin that long after attaching" },
	{ "start-on", 0, VERB_RUNS, TEXT(session.start_on, "TARGET|FILE"),
	  "begin at the target's first hit, or when the file exists" },
	{ "for", 0, VERB_RUNS, READ(opt_for, "TIME"), "detach after so long" },
	{ "mechanism", 0, VERB_RUNS | VERB_LIST | VERB_SWEEP | VERB_EXPLAIN | VERB_FIND,
	  READ(opt_mechanism, "auto|jump|int3"), "how a function is hooked" },
	{ "progress", 0, VERB_EXPLAIN | VERB_FIND, TEXT(progress, "SOURCE"),
	  "what counts items, as of sweep; without it: a second, or (find) a function is "
	  "proposed; with a prom:URL alone find proposes a metric of that page" },
	{ "time", 0, VERB_EXPLAIN | VERB_FIND, TIME(time_ns),
	  "how long to watch (default 10s); of all steps of find (70s)" },
	{ "dry-run", 0, VERB_FIND, FLAG(no_sweep), "stop before the sweep: nothing is delayed" },
	{ "no-sweep", 0, VERB_FIND, FLAG(no_sweep), "as --dry-run" },
	{ "backend", 0, VERB_RUNS | VERB_LIST | VERB_SWEEP | VERB_EXPLAIN | VERB_FIND,
	  TEXT(backend, "auto|inject|uprobe|kmod"), "what does the hooking" },
	{ "max-slowdown", 0, VERB_RUNS | VERB_SWEEP, READ(opt_max_slowdown, "P%"),
	  "refuse to add more than this to a thread's time" },
	{ "require-hits", 0, VERB_RUNS, FLAG(require_hits),
	  "fail (125) when a target was never hit" },
	{ "hits-by-function", 0, VERB_RUNS, FLAG(session.by_function),
	  "count each function of a target by itself as well" },
	{ "evidence", 0, VERB_RUNS | VERB_EXPLAIN, READ(opt_evidence, "[=GROUPS]"),
	  "also what the threads wait for, switches, page faults (sbinject-evidence(5))" },
	{ "evidence-sample", 0, VERB_RUNS | VERB_SWEEP | VERB_EXPLAIN,
	  READ(opt_evidence_sample, "N"),
	  "count one of N frequent events, chosen at random, as N" },
	{ "by-process", 0, VERB_RUNS, FLAG(by_process), "show each of many processes" },
	{ "json", 0, VERB_RUNS | VERB_LIST | VERB_DOCTOR | VERB_SWEEP | VERB_EXPLAIN | VERB_FIND,
	  TEXT(json, "FILE|-"), "the result as JSON" },
	{ "jsonl", 0, VERB_RUNS, TEXT(jsonl, "FILE"), "the result as one line, appended" },
	{ "tag", 0, VERB_RUNS | VERB_SWEEP, READ(opt_tag, "K=V"), "put into the JSON; repeatable" },
	{ "interval", 0, VERB_RUNS, READ(opt_interval, "TIME"), "a status line so often" },
	{ "from-env", 0, VERB_RUN, FLAG(from_env),
	  "targets and settings of SPEED_BUMP_*, as a command without a target has them" },
	{ "daemon", 0, VERB_RUNS, FLAG(background), "return when the hooks are in force; with -p" },
	{ "status-fd", 0, VERB_RUNS, READ(opt_status_fd, "N"),
	  "a line on descriptor N when attached and when ended" },
	{ "metrics", 0, VERB_RUNS, TEXT(metrics, "[ADDR:]PORT"),
	  "serve counters to Prometheus; on loopback where no address is given" },
	{ "metrics-file", 0, VERB_RUNS, TEXT(metrics_file, "FILE"),
	  "write them for the textfile collector" },
	{ "report", 0, VERB_RUNS, TEXT(report, "FILE"),
	  "write the run so far as JSON, as /report of --metrics" },
	{ "metrics-by-pid", 0, VERB_RUNS, FLAG(metrics_by_pid), "with a label for each process" },
	{ "events", 0, VERB_RUNS, TEXT(events, "FILE"),
	  "each change of state as a line of JSON, with both clocks; with --evidence each wait" },
	{ "output", 'o', VERB_TRACE, TEXT(trace_path, "FILE"),
	  "record each call in FILE: .pftrace (Perfetto), .json (Chrome), .jsonl" },
	{ "format", 0, VERB_TRACE, TEXT(trace_format, "pftrace|json|jsonl"),
	  "of FILE, whatever its name" },
	{ "min", 0, VERB_TRACE, TIME(session.trace_min_ns), "record no call that takes less" },
	{ "limit-rate", 0, VERB_TRACE, READ(opt_limit_rate, "N"),
	  "record about N calls a second at most" },
	{ "kernel", 0, VERB_TRACE | VERB_LIST, FLAG(kernel),
	  "also what the kernel sees: each ioctl() on /dev/nvidia*, the driver, interrupts" },
	{ "device-times", 0, VERB_TRACE, FLAG(session.device_times),
	  "also when each kernel, copy and memset ran on its device, by CUPTI (needs -o)" },
	{ "stacks", 0, VERB_TRACE, READ(opt_stacks, NULL),
	  "with the callers of each call that is recorded (needs --min or every=)" },
	{ "stack-size", 0, VERB_TRACE, READ(opt_stack_size, "SIZE"),
	  "of a stack, of which callers are found (--stacks; default 8K)" },
	{ "ring", 0, VERB_TRACE, READ(opt_ring, "SIZE"),
	  "of the buffer in the target for recorded calls (default 64M)" },
	{ "perf-map", 0, VERB_RUNS, FLAG(session.perf_map),
	  "names for perf report: of the stubs, in /tmp/perf-PID.map, until the end" },
	{ "perf-map-keep", 0, VERB_RUNS, FLAG(session.perf_map_keep),
	  "as --perf-map, and the files stay" },
	{ "quiet", 'q', VERB_ALL, READ(opt_quiet, NULL), "errors only" },
	{ "verbose", 'v', VERB_ALL, READ(opt_verbose, NULL), "say what is being done" },
	{ "help", 'h', VERB_ALL, FLAG(help), "this text" },
	{ "version", 0, VERB_RUN, FLAG(version), "the version" },
};

enum { ROWS = sizeof(rows) / sizeof(*rows), FIRST_LONG = 1000 };

static bool is_optional(const struct option_row *row)
{
	return row->arg && row->arg[0] == '[' && row->arg[1] == '=';
}

static int argument_of(const struct option_row *row)
{
	if (!row->arg)
		return no_argument;
	return is_optional(row) ? optional_argument : required_argument;
}

void options_help(FILE *to, enum option_verb verb)
{
	for (size_t i = 0; i < ROWS; i++) {
		char left[64], letter[8] = "    ";

		if (!(rows[i].verbs & verb))
			continue;
		if (rows[i].letter)
			snprintf(letter, sizeof(letter), "-%c, ", rows[i].letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, rows[i].name,
			 rows[i].arg && !is_optional(&rows[i]) ? " " : "",
			 rows[i].arg ? rows[i].arg : "");
		fprintf(to, "  %-32s %s\n", left, rows[i].help);
	}
}

/* Makes getopt's tables from ours. */
static void getopt_tables(struct option *longs, char *shorts)
{
	char *s = shorts;

	*s++ = ':';
	for (size_t i = 0; i < ROWS; i++) {
		longs[i] = (struct option){ rows[i].name, argument_of(&rows[i]), NULL,
					    FIRST_LONG + (int)i };
		if (!rows[i].letter)
			continue;
		*s++ = rows[i].letter;
		if (rows[i].arg)
			*s++ = ':';
	}
	*s = '\0';
	longs[ROWS] = (struct option){ 0 };
}

static const struct option_row *row_of(int code)
{
	for (size_t i = 0; i < ROWS; i++)
		if (code == FIRST_LONG + (int)i || (rows[i].letter && code == rows[i].letter))
			return &rows[i];
	return NULL;
}

/* A program's name in a wrong place: the program's options were taken for ours. */
static bool hint_command(const struct parse *p)
{
	const char *word = p->opt->command ? NULL : guess_command(p->words, p->n_words);

	if (word)
		err_hint(p->err, "if '%.100s' is the command to run, write -- before it", word);
	return word;
}

static int bad_option(struct parse *p, int code, const char *last)
{
	char letter[] = { '-', (char)optopt, '\0' };
	const char *word = optopt > 0 && optopt < 128 ? letter : last;

	if (code == ':')
		err_set(p->err, SB_EUSAGE, "%s needs a value", word);
	else
		err_set(p->err, SB_EUSAGE, "unknown option %s", word);
	if (hint_command(p))
		return -SB_EUSAGE;
	err_hint(p->err, isdigit((unsigned char)word[1]) ? "a delay cannot be negative" :
							   "sbinject --help lists them");
	return -SB_EUSAGE;
}

static int parse_options(struct parse *p, int argc, char **argv, enum option_verb verb)
{
	struct option longs[ROWS + 1];
	char shorts[2 * ROWS + 2];
	int code, ret = 0;

	getopt_tables(longs, shorts);
	optind = 0;
	opterr = 0;
	while (ret == 0 && (code = getopt_long(argc, argv, shorts, longs, NULL)) >= 0) {
		const struct option_row *row = row_of(code);

		if (!row)
			return bad_option(p, code, argv[optind - 1]);
		if (!(row->verbs & verb))
			return err_set(p->err, SB_EUSAGE, "--%s does not belong to this command",
				       row->name);
		ret = set_option(p, row, optarg);
	}
	return ret;
}

/* A copy of its stack for each of a million calls a second is what no one wants. */
static int check_stacks(struct parse *p)
{
	const struct session_config *cfg = &p->opt->session;
	bool some = cfg->trace_min_ns || p->every > 1;

	if (!cfg->trace_stacks || !p->opt->trace_path)
		return 0;
	for (size_t i = 0; i < cfg->targets.count && !some; i++)
		some = cfg->targets.spec[i].every > 1;
	if (some)
		return 0;
	err_set(p->err, SB_EUSAGE,
		"--stacks copies the stack of each call that is recorded, and all are");
	err_hint(p->err, "--min 1ms, or every=1000 of a target, leaves calls out");
	return -SB_EUSAGE;
}

/* -o: the chunks of a page. Their number is a power of two. */
static int size_trace(struct parse *p)
{
	struct session_config *cfg = &p->opt->session;
	uint64_t size = p->opt->trace_size ? p->opt->trace_size : TRACE_DEFAULT;

	if (check_stacks(p) < 0)
		return -SB_EUSAGE;
	if (p->opt->trace_path && !strcmp(p->opt->trace_path, "-")) {
		err_set(p->err, SB_EUSAGE, "-o -: a trace needs a file");
		err_hint(p->err, "-o /dev/stdout --format jsonl writes to standard output");
		return -SB_EUSAGE;
	}
	if (p->opt->trace_path) {
		for (cfg->trace_chunks = 1; cfg->trace_chunks * 2ull * 4096 <= size;)
			cfg->trace_chunks *= 2;
		return 0;
	}
	if (!p->opt->trace_format && !cfg->trace_min_ns && !cfg->trace_rate &&
	    !p->opt->trace_size && !cfg->trace_stacks && !cfg->device_times)
		return 0;
	err_set(p->err, SB_EUSAGE, "--%s needs -o FILE: nothing is recorded without it",
		p->opt->trace_format ? "format" :
		cfg->trace_min_ns    ? "min" :
		cfg->trace_rate	     ? "limit-rate" :
		cfg->trace_stacks    ? "stacks" :
		cfg->device_times    ? "device-times" :
				       "ring");
	err_hint(p->err, "-o trace.pftrace records each call");
	return -SB_EUSAGE;
}

/* Times have a number of one byte for each native target. */
static int check_number_timed(struct parse *p)
{
	const struct spec_list *list = &p->opt->session.targets;
	const char *preset = NULL;
	size_t n = 0;

	for (size_t i = 0; i < list->count; i++) {
		n += list->spec[i].timed && list->spec[i].kind != SPEC_PYTHON &&
		     !spec_in_kernel(&list->spec[i]);
		preset = list->spec[i].listed ? list->spec[i].row->preset->name : preset;
	}
	if (n <= SB_PAGE_SPAN_TARGETS || !preset)
		return 0;
	err_set(p->err, SB_EUSAGE,
		"%zu native targets are timed, and at most %d can be: a pattern is one target", n,
		SB_PAGE_SPAN_TARGETS);
	err_hint(p->err, "name kinds of a preset, as %s:launch %s:sync, or leave one preset out",
		 preset, preset);
	return -SB_EUSAGE;
}

/* --kernel: the targets of it that were not typed. */
static int add_kernel(struct parse *p)
{
	struct spec_list *list = &p->opt->session.targets;
	char word[] = RESULT_IOCTLS;
	bool typed = false;
	int ret = 0;

	if (!p->opt->kernel)
		return 0;
	for (size_t i = 0; i < list->count; i++)
		typed |= !strcmp(list->spec[i].text, word);
	if (!typed)
		ret = spec_parse_words(&(char *){ word }, 1, list, p->err);
	return ret < 0 ? ret : driver_targets(list, p->err);
}

/* All targets of a trace are timed, except those that say time=no, and not delayed by default. */
static int time_targets(struct parse *p)
{
	struct spec_list *list = &p->opt->session.targets;

	for (size_t i = 0; i < list->count; i++) {
		struct spec *spec = &list->spec[i];

		if (spec->kind == SPEC_LINE) {
			err_set(p->err, SB_EUSAGE,
				"target '%s': only calls of a function can be timed", spec->text);
			err_hint(p->err, "name the function: sbinject trace libfoo.so:f");
			return -SB_EUSAGE;
		}
		spec->timed |= !spec->time_given;
		/* One function is a row of the table already. */
		p->opt->session.by_function |= spec->kind == SPEC_SYMBOL &&
					       strpbrk(spec->symbol, "*?[");
	}
	if (!p->delay_given)
		p->delay_ns = 0;
	p->delay_given = true;
	return 0;
}

/* Defaults of the whole command line apply to the targets without a value of their own. */
static void apply_defaults(struct parse *p)
{
	struct spec_list *list = &p->opt->session.targets;

	p->opt->default_ns = p->delay_given ? p->delay_ns : SPEC_DEFAULT_NS;

	for (size_t i = 0; i < list->count; i++) {
		if (list->spec[i].delay_ns == SPEC_DELAY_UNSET)
			list->spec[i].delay_ns = p->delay_given ? p->delay_ns : SPEC_DEFAULT_NS;
		if (!list->spec[i].every)
			list->spec[i].every = p->every ? p->every : 1;
		spec_take_row(&list->spec[i]);
	}
}

static void say_env(const struct parse *p, const struct spec_env *env, size_t n)
{
	const struct session_config *cfg = &p->opt->session;
	char shown[TEXT_QUOTE_SIZE], delay[32], start[32], span[32];

	log_note("SPEED_BUMP_TARGETS: %zu target%s from %s; delay %s, every %" PRIu64
		 ", start %s, for %s",
		 n, n == 1 ? "" : "s", text_quote(env->path, shown, sizeof(shown)),
		 spec_format_ns(p->delay_ns, delay, sizeof(delay)), p->every,
		 spec_format_ns(cfg->start_ns, start, sizeof(start)),
		 cfg->for_ns ? spec_format_ns(cfg->for_ns, span, sizeof(span)) : "ever");
}

/* Uses the environment if the command line has no targets. Options of the command line win. */
static int take_env(struct parse *p, enum option_verb verb)
{
	struct session_config *cfg = &p->opt->session;
	bool launch = p->opt->command && !cfg->n_pids;
	struct spec_env env;
	int ret;

	if (verb != VERB_RUN || cfg->targets.count || (!launch && !p->opt->from_env))
		return 0;
	ret = spec_env_read(getenv, &env, p->err);
	if (ret < 0 || !env.path)
		return ret;
	ret = spec_env_patterns(&env, &cfg->targets, p->err);
	if (ret < 0)
		return ret;
	if (!cfg->targets.count) {
		log_warn("SPEED_BUMP_TARGETS: there is no pattern in %s", env.path);
		return 0;
	}
	p->delay_ns = p->delay_given ? p->delay_ns : env.delay_ns;
	p->every = p->every ? p->every : env.every;
	p->delay_given = true;
	if (!cfg->start_ns && !cfg->start_on)
		cfg->start_ns = env.start_ns;
	if (!cfg->for_ns)
		cfg->for_ns = env.for_ns;
	say_env(p, &env, cfg->targets.count);
	/* Otherwise other software in the command that honours it would apply it a second time. */
	unsetenv("SPEED_BUMP_TARGETS");
	return 0;
}

/* --start-on TARGET becomes a counting target, unless it is a target already. */
static int add_start_on(struct parse *p)
{
	struct session_config *cfg = &p->opt->session;
	char *words[2] = { cfg->start_on, (char[]){ "0" } };
	size_t before = cfg->targets.count;
	int ret;

	if (!cfg->start_on || !strchr(cfg->start_on, ':') || access(cfg->start_on, F_OK) == 0)
		return 0;
	for (size_t i = 0; i < cfg->targets.count; i++)
		if (!strcmp(cfg->targets.spec[i].text, cfg->start_on))
			return 0;
	ret = spec_parse_words(words, 2, &cfg->targets, p->err);
	if (ret < 0 || cfg->targets.count == before + 1)
		return ret;
	err_set(p->err, SB_EUSAGE, "--start-on '%s' stands for %zu functions", cfg->start_on,
		cfg->targets.count - before);
	err_hint(p->err, "name one of them: --start-on %s", cfg->targets.spec[before].text);
	return -SB_EUSAGE;
}

static int check_evidence(struct parse *p, enum option_verb verb)
{
	const struct session_config *cfg = &p->opt->session;

	if (cfg->all && cfg->evidence) {
		err_set(p->err, SB_EUSAGE, "--evidence is of processes that are named: -p PID");
		err_hint(p->err, "leave --all or --evidence out");
		return -SB_EUSAGE;
	}
	if ((verb & VERB_RUNS) && cfg->evidence_sample && !cfg->evidence) {
		err_set(p->err, SB_EUSAGE, "--evidence-sample is of --evidence");
		err_hint(p->err, "add --evidence");
		return -SB_EUSAGE;
	}
	return 0;
}

static int check_together(struct parse *p)
{
	const struct session_config *cfg = &p->opt->session;

	if (session_check_traced(cfg, p->err) < 0)
		return -SB_EUSAGE;
	if (cfg->all && cfg->n_pids) {
		err_set(p->err, SB_EUSAGE, "--all and -p exclude each other");
		err_hint(p->err,
			 "pid=N after a target limits it to that process and its descendants");
		return -SB_EUSAGE;
	}
	if (p->opt->background && (p->opt->command || (!cfg->n_pids && !cfg->all))) {
		err_set(p->err, SB_EUSAGE,
			"--daemon needs running processes (-p PID) and takes no command");
		err_hint(p->err, "in a shell, append &");
		return -SB_EUSAGE;
	}
	return 0;
}

/* A sweep chooses the delays: one that is given for a target would be ignored. It may be a second
 * dose, behind a blank. */
static int check_swept(const struct parse *p)
{
	const struct spec_list *list = &p->opt->session.targets;

	for (size_t i = 0; i < list->count; i++) {
		const struct spec *spec = &list->spec[i];
		char name[TEXT_QUOTE_SIZE], delay[32];

		if (spec_in_kernel(spec)) {
			err_set(p->err, SB_EUSAGE,
				"target '%s': a sweep delays its targets, and the kernel is never "
				"delayed",
				spec->text);
			err_hint(p->err, "sbinject trace times its calls");
			return -SB_EUSAGE;
		}
		if (spec->delay_ns == SPEC_DELAY_UNSET || !spec->delay_ns)
			continue;
		spec_format_ns(spec->delay_ns, delay, sizeof(delay));
		err_set(p->err, SB_EUSAGE, "%s %s: a sweep delays each target by doses of its own",
			text_quote(spec->text, name, sizeof(name)), delay);
		err_hint(p->err, "leave %s out, or name all doses in one word: --doses %s,...",
			 delay, delay);
		return -SB_EUSAGE;
	}
	return 0;
}

int options_parse(int argc, char **argv, enum option_verb verb, struct options *opt,
		  struct sb_err *err)
{
	struct parse p = { .opt = opt, .err = err, .words = argv + 1 };
	int left = 0, ret;

	memset(opt, 0, sizeof(*opt));
	opt->session.follow = opt->session.children = true;
	opt->trace = verb == VERB_TRACE;
	while (left < argc && strcmp(argv[left], "--"))
		left++;
	if (left < argc)
		opt->command = &argv[left + 1];
	p.n_words = left > 0 ? (size_t)left - 1 : 0;
	ret = parse_options(&p, left, argv, verb);
	if (ret == 0 && optind < left)
		ret = spec_parse_words(&argv[optind], (size_t)(left - optind),
				       &opt->session.targets, err);
	if (ret == -SB_ESPEC)
		hint_command(&p);
	if (ret == 0)
		ret = take_env(&p, verb);
	if (ret == 0)
		ret = add_kernel(&p);
	if (ret == 0 && verb == VERB_TRACE)
		ret = time_targets(&p);
	if (ret == 0 && verb == VERB_SWEEP)
		ret = check_swept(&p);
	if (ret == 0)
		ret = check_number_timed(&p);
	if (ret == 0)
		ret = size_trace(&p);
	if (ret == 0)
		ret = add_start_on(&p);
	if (ret < 0)
		return ret;
	apply_defaults(&p);
	beside_order(&opt->session.targets);
	if (getrandom(&opt->session.id, sizeof(opt->session.id), 0) < 0)
		opt->session.id = (uint64_t)getpid() << 32;
	ret = check_evidence(&p, verb);
	return ret < 0 ? ret : check_together(&p);
}

void options_free(struct options *opt)
{
	for (size_t i = 0; i < opt->n_tags; i++) {
		free(opt->tag[i].key);
		free(opt->tag[i].value);
	}
	free(opt->tag);
	free(opt->json);
	free(opt->progress);
	free(opt->metrics);
	free(opt->metrics_file);
	free(opt->report);
	free(opt->events);
	free(opt->trace_path);
	free(opt->trace_format);
	free(opt->typed);
	free(opt->jsonl);
	free(opt->backend);
	free(opt->session.start_on);
	free(opt->session.pids);
	free(opt->session.skip);
	spec_list_free(&opt->session.targets);
}
