/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include "runtime.h"
#include "elf/symbol.h"
#include "inject/clock.h"
#include "src/base/log.h"
#include "src/base/must.h"

enum { WORDS_MAX = 16, PATH_MOST = 256 };

struct request {
	struct control_state *c;
	const json_t *in;
	json_t *out;
	struct sb_err err;
};

static int fail(struct request *r, enum sb_code code, const char *what, const char *hint)
{
	err_set(&r->err, code, "%s", what);
	if (hint)
		err_hint(&r->err, "%s", hint);
	return -1;
}

static void tell(struct request *r, const char *what, const struct session_target *t)
{
	if (r->c->changed)
		r->c->changed(r->c->ctx, what, t);
}

static void tell_target(struct request *r, const char *what, size_t index)
{
	struct session_target t;

	session_state(r->c->session, index, &t);
	tell(r, what, &t);
}

/* ---- reading requests ---- */

/* A whole number of at least 0; false: absent. */
static bool get_number(struct request *r, const char *key, uint64_t *n, int *ret)
{
	const json_t *value = json_object_get(r->in, key);

	if (!value)
		return false;
	if (!json_is_integer(value) || json_integer_value(value) < 0) {
		*ret = fail(r, SB_EUSAGE, "a number is expected", key);
		return false;
	}
	*n = (uint64_t)json_integer_value(value);
	return true;
}

static int check_delay(struct request *r, uint64_t ns)
{
	uint64_t most = r->c->backend->delay_max_ns;

	if (ns <= (most ? most : SPEC_DELAY_MAX_NS))
		return 0;
	if (most)
		return fail(r, SB_ERANGE,
			    "a delay above 10 ms is refused: this backend spends it in the kernel",
			    "--backend inject gives up to 10 s");
	return fail(r, SB_ERANGE, "a delay above 10 s is refused", NULL);
}

/* The number of targets in force with this text, of any process; *index: the last of them. */
static size_t count_named(struct request *r, const char *name, size_t *index)
{
	size_t n = 0;

	for (size_t i = 0; i < session_targets(r->c->session); i++) {
		struct session_target t;

		session_state(r->c->session, i, &t);
		if (t.removed || strcmp(t.spec->text, name) != 0)
			continue;
		*index = i;
		n++;
	}
	return n;
}

static bool find_exactly(struct request *r, const char *name, uint64_t pid, size_t *index)
{
	for (size_t i = 0; i < session_targets(r->c->session); i++) {
		struct session_target t;

		session_state(r->c->session, i, &t);
		if (t.removed || (uint64_t)t.spec->pid != pid || strcmp(t.spec->text, name) != 0)
			continue;
		*index = i;
		return true;
	}
	return false;
}

/* By text and pid; a target whose text is unique needs no pid. */
static int find_target(struct request *r, const char *name, size_t *index)
{
	uint64_t pid = 0;
	size_t alike;
	bool given;
	int ret = 0;

	given = get_number(r, "pid", &pid, &ret);
	if (ret < 0)
		return ret;
	if (!name)
		return fail(r, SB_EUSAGE, "no target is named", NULL);
	if (find_exactly(r, name, pid, index))
		return 0;
	alike = given ? 0 : count_named(r, name, index);
	if (alike == 1)
		return 0;
	err_set(&r->err, alike ? SB_EUSAGE : SB_ENOTARGET,
		alike ? "several processes have a target '%.200s'" :
			"target '%.200s' is not in this session",
		name);
	err_hint(&r->err, alike ? "--pid=N says which is meant" : "sbctl list shows what is");
	return -1;
}

/* The target that a request names. */
static int get_target(struct request *r, size_t *index)
{
	char *name = json_name_of(r->in, "target");
	int ret = find_target(r, name, index);

	free(name);
	return ret;
}

/* ---- requests ---- */

/* A target that waits for its module, and the reason. */
static void put_pending(struct request *r, size_t index)
{
	struct session_target t = { 0 };
	char *why;

	session_state(r->c->session, index, &t);
	if (!t.pending || !(t.why || t.spec->listed))
		return;
	json_put(r->out, "state", json_string("pending"));
	if (!t.why)
		return;
	if (asprintf(&why, "%s%s%s", t.why->what, t.why->hint[0] ? "; " : "", t.why->hint) < 0)
		abort();
	json_put(r->out, "why", json_name(why));
	free(why);
}

/* The limit of the kernel module applies here, too, so that scripts see one and the same error. */
static int check_length(struct request *r, const struct spec *spec)
{
	if (spec->kind == SPEC_PYTHON || spec->module[0] != '/' || glob_is_pattern(spec->module) ||
	    strlen(spec->module) <= PATH_MOST)
		return 0;
	return fail(r, SB_ETOOLONG, "a path of more than 256 bytes",
		    "a pattern names the file: '*/NAME:SYMBOL'");
}

/* Parses the words of a request into a target. SB_EUSAGE, SB_ESPEC and so on. */
static int read_words(struct request *r, const json_t *words, struct spec_list *list)
{
	size_t n = json_array_size(words), i = 0;
	char *word[WORDS_MAX];
	int ret = 0;

	if (!n || n > WORDS_MAX)
		return fail(r, SB_EUSAGE, "no target is named", NULL);
	for (; i < n && ret == 0; i++) {
		word[i] = json_name_take(json_array_get(words, i));
		if (!word[i])
			ret = fail(r, SB_EUSAGE, "words are strings", NULL);
		else if (strlen(word[i]) > 4096)
			ret = fail(r, SB_ETOOLONG, "a word is longer than 4096 bytes", NULL);
	}
	if (ret == 0)
		ret = spec_parse_words(word, n, list, &r->err);
	while (i > 0)
		free(word[--i]);
	if (ret == 0 && list->count != 1 && !(list->count && list->spec[0].listed))
		ret = fail(r, SB_EUSAGE, "one target at a time", NULL);
	for (i = 0; i < list->count && ret == 0; i++) {
		spec_take_row(&list->spec[i]);
		ret = check_length(r, &list->spec[i]);
	}
	return ret;
}

/* Of a list, a program has some. */
static bool may_lack(const struct spec *spec, const struct sb_err *why)
{
	return spec->listed && (why->code == SB_ENOSYMBOL || why->code == SB_ENOMODULE ||
				why->code == SB_EREFUSED || why->code == SB_EEXIST);
}

/* All that the words name, with their indexes. After an error none of them is there. */
static int add_all(struct request *r, const struct spec_list *list, size_t *index, size_t *n)
{
	struct sb_err first = { 0 }, why;
	int ret = 0;

	for (size_t i = 0; i < list->count && ret == 0; i++) {
		why = (struct sb_err){ 0 };
		ret = session_add(r->c->session, &list->spec[i], &index[*n], &why);
		*n += ret == 0;
		if (ret < 0 && !first.code)
			first = why;
		if (ret < 0 && !may_lack(&list->spec[i], &why))
			r->err = why;
		else
			ret = 0;
	}
	if (ret == 0 && !*n) {
		r->err = first;
		return -(int)first.code;
	}
	while (ret < 0 && *n > 0) {
		why = (struct sb_err){ 0 };
		session_remove(r->c->session, index[--*n], &why);
	}
	return ret;
}

/* What was added: of a list, all of it. */
static void put_added(struct request *r, const struct spec_list *list, const size_t *index,
		      size_t n)
{
	json_t *all = json_must(json_array());

	json_put(r->out, "index", json_integer((json_int_t)index[0]));
	json_put(r->out, "target", json_name(list->spec[0].text));
	json_put(r->out, "delay_ns", json_integer((json_int_t)list->spec[0].delay_ns));
	for (size_t i = 0; i < n; i++) {
		json_add(all, json_integer((json_int_t)index[i]));
		tell_target(r, "add", index[i]);
	}
	if (list->spec[0].listed) {
		json_put(r->out, "indexes", all);
		json_put(r->out, "lacking", json_integer((json_int_t)(list->count - n)));
	} else {
		json_decref(all);
	}
	put_pending(r, index[0]);
}

static int op_add(struct request *r)
{
	struct spec_list list = { 0 };
	size_t *index = NULL, n = 0;
	int ret = read_words(r, json_object_get(r->in, "words"), &list);

	for (size_t i = 0; i < list.count; i++)
		if (list.spec[i].delay_ns == SPEC_DELAY_UNSET)
			list.spec[i].delay_ns = r->c->default_ns;
	if (ret == 0) {
		index = must_calloc(list.count, sizeof(*index));
		ret = add_all(r, &list, index, &n);
	}
	if (r->err.code == SB_EEXIST)
		err_hint(&r->err, "sbctl update changes it, sbctl remove removes it");
	if (ret == 0)
		put_added(r, &list, index, n);
	free(index);
	spec_list_free(&list);
	return ret;
}

static int op_remove(struct request *r)
{
	size_t index = 0;
	int ret = get_target(r, &index);

	if (ret < 0)
		return ret;
	ret = session_remove(r->c->session, index, &r->err);
	if (ret == 0)
		tell_target(r, "remove", index);
	return ret;
}

static int op_update(struct request *r)
{
	struct session_target t;
	uint64_t every, delay;
	size_t index = 0;
	int ret = get_target(r, &index);

	if (ret < 0)
		return ret;
	session_state(r->c->session, index, &t);
	every = t.every;
	delay = t.delay_ns;
	get_number(r, "delay_ns", &delay, &ret);
	get_number(r, "every", &every, &ret);
	if (ret == 0)
		ret = check_delay(r, delay);
	if (ret < 0)
		return ret;
	session_update(r->c->session, index, delay, every);
	tell_target(r, "update", index);
	json_put(r->out, "delay_ns", json_integer((json_int_t)delay));
	return 0;
}

static int op_clear(struct request *r)
{
	int ret = 0;

	for (size_t i = 0; i < session_targets(r->c->session) && ret == 0; i++) {
		struct session_target t;

		session_state(r->c->session, i, &t);
		if (!t.removed)
			ret = session_remove(r->c->session, i, &r->err);
	}
	tell(r, "clear", NULL);
	return ret;
}

static int op_delay(struct request *r)
{
	uint64_t ns = r->c->default_ns;
	bool given;
	int ret = 0;

	given = get_number(r, "delay_ns", &ns, &ret);
	if (given)
		ret = check_delay(r, ns);
	if (ret < 0)
		return ret;
	r->c->default_ns = ns;
	if (given)
		tell(r, "delay", &(struct session_target){ .delay_ns = ns });
	json_put(r->out, "delay_ns", json_integer((json_int_t)ns));
	return 0;
}

static int op_enable(struct request *r)
{
	session_enable(r->c->session, true);
	tell(r, "enable", NULL);
	return 0;
}

static int op_disable(struct request *r)
{
	session_enable(r->c->session, false);
	tell(r, "disable", NULL);
	return 0;
}

static int op_list(struct request *r)
{
	const struct backend *b = r->c->backend;
	bool histogram = json_is_true(json_object_get(r->in, "histogram"));
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < session_targets(r->c->session); i++) {
		struct session_target t;

		json_t *o;

		session_target(r->c->session, i, &t);
		if (t.removed)
			continue;
		o = control_target(&t, i);
		control_times(b, r->c->session, i, histogram, o);
		if (json_is_true(json_object_get(r->in, "functions")))
			control_functions(b, r->c->session, i, o);
		json_add(list, o);
	}
	json_put(r->out, "targets", list);
	return 0;
}

static int op_status(struct request *r)
{
	const struct backend *b = r->c->backend;
	uint64_t hits = 0, injected = 0;
	json_t *pids = json_must(json_array());
	json_int_t targets = 0;
	pid_t *pid;
	size_t n;

	for (size_t i = 0; i < session_targets(r->c->session); i++) {
		struct session_target t;

		session_target(r->c->session, i, &t);
		targets += !t.removed;
		hits += t.counts.hits;
		injected += t.counts.injected_ns;
	}
	n = b->pids(r->c->session, &pid);
	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(pids, json_must(json_integer(pid[i]))))
			abort();
	free(pid);
	json_put(r->out, "enabled", json_boolean(session_enabled(r->c->session)));
	json_put(r->out, "targets", json_integer(targets));
	json_put(r->out, "total_hits", json_integer((json_int_t)hits));
	json_put(r->out, "total_delay_ns", json_integer((json_int_t)injected));
	json_put(r->out, "backend", json_string(b->name));
	json_put(r->out, "pids", pids);
	json_put(r->out, "pid_namespace", json_integer((json_int_t)runtime_namespace()));
	if (r->c->evidence) {
		json_t *evidence = json_must(json_object());

		control_evidence(r->c->evidence, evidence);
		json_put(r->out, "evidence", evidence);
	}
	return 0;
}

/* The duration of calls, if any of the targets was timed. */
static void put_spans(struct request *r)
{
	const struct backend *b = r->c->backend;
	json_t *list = json_must(json_array());

	for (size_t i = 0; b->spans && i < session_targets(r->c->session); i++) {
		struct result_spans s;

		b->spans(r->c->session, i, &s);
		if ((s.calls || s.missed) &&
		    json_array_append_new(
			    list, json_must(json_pack("[I,I,I,I]", (json_int_t)i, (json_int_t)s.ns,
						      (json_int_t)s.calls, (json_int_t)s.missed))))
			abort();
	}
	json_put(r->out, "spans", list);
	json_put(r->out, "timing", json_boolean(!b->timing || b->timing(r->c->session)));
}

/* Handles "times", if the request has it: the calls of that target, if they are timed. */
static int put_times(struct request *r)
{
	const json_t *times = json_object_get(r->in, "times");
	json_int_t index = json_integer_value(times);
	json_t *o;

	if (!times)
		return 0;
	if (!json_is_integer(times) || index < 0 || (size_t)index >= session_targets(r->c->session))
		return fail(r, SB_ENOTARGET, "no target has that index", NULL);
	o = json_must(json_object());
	control_times(r->c->backend, r->c->session, (size_t)index, true, o);
	if (json_object_get(o, "spans"))
		json_put(r->out, "times", json_incref(json_object_get(o, "spans")));
	json_decref(o);
	return 0;
}

static uint64_t hits_of(struct request *r, size_t index)
{
	struct session_target t;

	session_target(r->c->session, index, &t);
	return t.counts.hits;
}

/* False: there was no call in that time. The timer slack is reduced: by default it is about as long
 * as these sleeps. */
static bool await_call(struct request *r, size_t index, uint64_t poll_ns)
{
	uint64_t was = hits_of(r, index), limit = clock_ns() + CONTROL_AFTER_NS;
	int slack = prctl(PR_GET_TIMERSLACK);
	bool moved = false;

	prctl(PR_SET_TIMERSLACK, 1);
	while (!moved && clock_ns() < limit) {
		nanosleep(&(struct timespec){ .tv_nsec = (long)poll_ns }, NULL);
		moved = hits_of(r, index) != was;
	}
	prctl(PR_SET_TIMERSLACK, slack > 0 ? slack : 0);
	return moved;
}

/* Handles "after", if the request has it. */
static int lanes_after(struct request *r)
{
	const json_t *after = json_object_get(r->in, "after");
	json_int_t index = json_integer_value(json_object_get(after, "index"));
	json_int_t poll_ns = json_integer_value(json_object_get(after, "poll_ns"));

	if (!after)
		return 0;
	if (!json_is_integer(json_object_get(after, "index")) || index < 0 ||
	    (size_t)index >= session_targets(r->c->session))
		return fail(r, SB_ENOTARGET, "no target has that index", NULL);
	if (poll_ns < 1 || poll_ns > CONTROL_AFTER_NS)
		return fail(r, SB_ERANGE, "poll_ns lies between 1 and 5000000", NULL);
	json_put(r->out, "moved", json_boolean(await_call(r, (size_t)index, (uint64_t)poll_ns)));
	return 0;
}

static int op_lanes(struct request *r)
{
	json_t *list = json_must(json_array());
	struct session_lane *lane;
	uint64_t t_ns;
	size_t n;

	if (lanes_after(r) < 0) {
		json_decref(list);
		return -1;
	}
	n = r->c->backend->lanes(r->c->session, &lane, &t_ns);
	for (size_t i = 0; i < n; i++) {
		json_t *o = json_must(json_pack("[I,i,I,I,I,I,i]", (json_int_t)lane[i].target,
						(int)lane[i].pid, (json_int_t)lane[i].slot,
						(json_int_t)lane[i].hits,
						(json_int_t)lane[i].injected_ns,
						(json_int_t)lane[i].overrun_ns, (int)lane[i].tid));

		json_add(list, o);
	}
	free(lane);
	put_spans(r);
	json_put(r->out, "t_ns", json_integer((json_int_t)t_ns));
	json_put(r->out, "lanes", list);
	return put_times(r);
}

/* One entry of an arm: all entries are checked first, then applied. */
static int arm_one(struct request *r, const json_t *entry, bool doit)
{
	const struct backend *b = r->c->backend;
	json_int_t index = json_integer_value(json_object_get(entry, "index"));
	const json_t *delay = json_object_get(entry, "delay_ns");
	struct session_target t;

	if (!json_is_integer(json_object_get(entry, "index")) || index < 0 ||
	    (size_t)index >= session_targets(r->c->session))
		return fail(r, SB_ENOTARGET, "no target has that index", NULL);
	session_state(r->c->session, (size_t)index, &t);
	if (t.removed)
		return fail(r, SB_ENOTARGET, "the target of that index was removed", NULL);
	if (delay && (!json_is_integer(delay) || json_integer_value(delay) < 0 ||
		      check_delay(r, (uint64_t)json_integer_value(delay)) < 0))
		return fail(r, SB_ERANGE, "a delay is out of range", NULL);
	if (!doit)
		return 0;
	if (delay)
		session_update(r->c->session, (size_t)index, (uint64_t)json_integer_value(delay),
			       t.every);
	if (b->time)
		b->time(r->c->session, (size_t)index, json_is_true(json_object_get(entry, "time")));
	session_mute(r->c->session, (size_t)index, json_is_false(json_object_get(entry, "on")));
	return 0;
}

static int op_arm(struct request *r)
{
	const json_t *list = json_object_get(r->in, "targets");

	for (int doit = 0; doit < 2; doit++)
		for (size_t i = 0; i < json_array_size(list); i++)
			if (arm_one(r, json_array_get(list, i), doit) < 0)
				return -1;
	return 0;
}

static int op_evidence(struct request *r)
{
	if (!r->c->evidence)
		return fail(r, SB_EUSAGE, "the session has no evidence", "run it with --evidence");
	control_evidence(r->c->evidence, r->out);
	return 0;
}

static int op_stop(struct request *r)
{
	r->c->stop = true;
	return 0;
}

static const struct op {
	const char *name;
	int (*run)(struct request *r);
} ops[] = {
	{ "add", op_add },	     { "remove", op_remove }, { "update", op_update },
	{ "clear", op_clear },	     { "delay", op_delay },   { "enable", op_enable },
	{ "disable", op_disable },   { "list", op_list },     { "status", op_status },
	{ "lanes", op_lanes },	     { "arm", op_arm },	      { "stop", op_stop },
	{ "evidence", op_evidence },
};

static int run(struct request *r)
{
	const char *name = json_string_value(json_object_get(r->in, "op"));

	for (size_t i = 0; name && i < sizeof(ops) / sizeof(*ops); i++)
		if (!strcmp(ops[i].name, name))
			return ops[i].run(r);
	return fail(r, SB_EUSAGE, "unknown request", NULL);
}

char *control_answer(struct control_state *c, const char *request, size_t len)
{
	json_error_t why;
	json_t *in = json_loadb(request, len, JSON_REJECT_DUPLICATES, &why);
	struct request r = { .c = c, .in = in, .out = json_must(json_object()) };
	char *answer;
	int ret = in ? run(&r) : fail(&r, SB_EUSAGE, "this is not JSON", why.text);

	json_put(r.out, "ok", json_boolean(ret >= 0));
	if (ret < 0) {
		json_put(r.out, "error", json_string(err_errno_name(r.err.code)));
		json_put(r.out, "what", json_name(r.err.what));
		json_put(r.out, "hint", json_name(err_remedy(&r.err)));
	}
	answer = json_document(r.out, false);
	json_decref(r.out);
	json_decref(in);
	return answer;
}
