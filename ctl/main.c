/* SPDX-License-Identifier: MIT */
/* sbctl: changes and shows a running session. */
#include <getopt.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"
#include "src/base/caps.h"
#include "src/base/text.h"
#include "src/control/runtime.h"
#include "src/out/out.h"
#include "src/result/result.h"
#include "src/spec/spec.h"

struct ctl {
	const char *session;
	bool json, kmod;
	bool by_function;     /* list */
	bool bare;	      /* a delay had no unit */
	bool batch;	      /* verbs from standard input */
	const char *pid;      /* --pid=N */
	uint64_t interval_ns; /* watch */
	struct ctl_peer *peer;
	struct sb_err err;
	char error[16]; /* error name of an answer that refuses */
};

struct verb {
	const char *name, *args, *summary;
	int min, max; /* number of further words */
	int (*run)(struct ctl *c, int n, char **word);
};

/* A bare number is ns here; units work, too. */
static int read_delay(struct ctl *c, const char *text, uint64_t *ns)
{
	char with_unit[64];
	size_t digits = strspn(text, "0123456789");
	int ret = -1;

	if (digits && !text[digits] && digits < sizeof(with_unit) - 2) {
		snprintf(with_unit, sizeof(with_unit), "%sns", text);
		text = with_unit;
		c->bare = true;
	}
	if (digits > 20) /* more than any unit can bring into range */
		err_set(&c->err, SB_ERANGE, "the delay '%.40s...' is above 10 s", text);
	else
		ret = spec_delay(text, ns, &c->err);
	if (ret == 0)
		return 0;
	err_hint(&c->err, "5000 is in ns, 5us and 2.5ms have their unit; 10s at most");
	snprintf(c->error, sizeof(c->error), "%s", err_errno_name(c->err.code));
	return -1;
}

/* Sends a request, and prints the answer with --json. The caller drops the answer. NULL: c->err has
 * the reason. */
static json_t *ask(struct ctl *c, json_t *request)
{
	json_t *answer = ctl_ask(c->peer, request, &c->err, c->error);

	if (answer && c->json) {
		char *text = json_document(answer, true);

		puts(text);
		free(text);
	}
	return answer;
}

static int __attribute__((format(printf, 3, 4)))
say(struct ctl *c, json_t *answer, const char *fmt, ...)
{
	va_list ap;

	if (!answer)
		return -1;
	va_start(ap, fmt);
	if (!c->json)
		vprintf(fmt, ap);
	va_end(ap);
	json_decref(answer);
	return 0;
}

/* On standard error: scripts rely on the format of standard output. */
static int say_unit(const struct ctl *c, int ret, uint64_t ns)
{
	if (ret == 0 && c->bare && ns && !c->json && !c->batch)
		fprintf(stderr, "sbctl: delay_ns=%llu: a number without a unit is in nanoseconds\n",
			(unsigned long long)ns);
	return ret;
}

static json_t *with_target(struct ctl *c, const char *op, const char *target)
{
	json_t *request = json_pack("{s:s s:o}", "op", op, "target", json_name(target));

	if (request && c->pid)
		json_object_set_new(request, "pid", json_integer(strtoll(c->pid, NULL, 10)));
	return request;
}

/* Of a preset, how many functions of the list there are. */
static int say_added(struct ctl *c, json_t *answer, const char *target)
{
	size_t n = json_array_size(json_object_get(answer, "indexes"));
	json_int_t lacking = json_integer_value(json_object_get(answer, "lacking"));

	if (!n)
		return say(c, answer, "Added target: %s\n", target);
	return say(c, answer, "Added target: %s (functions: %zu of %lld)\n", target, n,
		   (long long)((json_int_t)n + lacking));
}

static int verb_add(struct ctl *c, int n, char **word)
{
	json_t *words = json_array(), *answer;
	char text[64], shown[TEXT_QUOTE_SIZE], *why;
	uint64_t ns = 0;

	json_add(words, json_name(word[0]));
	for (int i = 1; i < n; i++) {
		if (!strchr(word[i], '=') && !spec_is_key(word[i])) {
			if (read_delay(c, word[i], &ns) < 0) {
				json_decref(words);
				return -1;
			}
			snprintf(text, sizeof(text), "%lluns", (unsigned long long)ns);
			json_add(words, json_string(ns ? text : "0"));
		} else {
			json_add(words, json_name(word[i]));
		}
	}
	if (c->pid) {
		snprintf(text, sizeof(text), "pid=%s", c->pid);
		json_add(words, json_string(text));
	}
	answer = ask(c, json_pack("{s:s s:o}", "op", "add", "words", words));
	why = json_object_get(answer, "why") ? ctl_shown(answer, "why") : NULL;
	if (json_object_get(answer, "state") && !c->json)
		fprintf(stderr, "sbctl: %s is pending: %s\n",
			text_quote(word[0], shown, sizeof(shown)),
			why ? why : "no process has its library mapped");
	free(why);
	return say_unit(c, say_added(c, answer, word[0]), ns);
}

static int verb_remove(struct ctl *c, int n, char **word)
{
	(void)n;
	return say(c, ask(c, with_target(c, "remove", word[0])), "Removed target: %s\n", word[0]);
}

static int verb_update(struct ctl *c, int n, char **word)
{
	json_t *request;
	uint64_t ns;

	(void)n;
	if (read_delay(c, word[1], &ns) < 0)
		return -1;
	request = with_target(c, "update", word[0]);
	json_object_set_new(request, "delay_ns", json_integer((json_int_t)ns));
	return say_unit(c,
			say(c, ask(c, request), "Updated target: %s delay=%llu ns\n", word[0],
			    (unsigned long long)ns),
			ns);
}

static int verb_clear(struct ctl *c, int n, char **word)
{
	(void)n;
	(void)word;
	return say(c, ask(c, json_pack("{s:s}", "op", "clear")), "All targets cleared\n");
}

static int verb_enable(struct ctl *c, int n, char **word)
{
	(void)n;
	(void)word;
	return say(c, ask(c, json_pack("{s:s}", "op", "enable")), "Probes enabled\n");
}

static int verb_disable(struct ctl *c, int n, char **word)
{
	(void)n;
	(void)word;
	return say(c, ask(c, json_pack("{s:s}", "op", "disable")), "Probes disabled\n");
}

static int verb_delay(struct ctl *c, int n, char **word)
{
	json_t *request = json_pack("{s:s}", "op", "delay"), *answer;
	uint64_t ns = 0;

	if (n && read_delay(c, word[0], &ns) < 0) {
		json_decref(request);
		return -1;
	}
	if (n)
		json_object_set_new(request, "delay_ns", json_integer((json_int_t)ns));
	answer = ask(c, request);
	if (!answer)
		return -1;
	if (!c->json && n)
		printf("Default delay set to %llu ns\n", (unsigned long long)ns);
	else if (!c->json)
		printf("%lld\n",
		       (long long)json_integer_value(json_object_get(answer, "delay_ns")));
	json_decref(answer);
	return say_unit(c, 0, ns);
}

static int by_hits(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	json_int_t n = json_integer_value(json_object_get(x, "hits"));
	json_int_t m = json_integer_value(json_object_get(y, "hits"));

	if (n != m)
		return n < m ? 1 : -1;
	return strcmp(json_string_value(json_object_get(x, "name")),
		      json_string_value(json_object_get(y, "name")));
}

/* The called functions, the most called first. False: the session does not count them. */
static bool print_functions(const json_t *list)
{
	size_t n = json_array_size(list);
	json_t **sorted = calloc(n + 1, sizeof(*sorted));

	for (size_t i = 0; sorted && i < n; i++)
		sorted[i] = json_array_get(list, i);
	if (sorted)
		qsort(sorted, n, sizeof(*sorted), by_hits);
	for (size_t i = 0; sorted && i < n; i++) {
		json_int_t hits = json_integer_value(json_object_get(sorted[i], "hits"));
		char *name = ctl_shown(sorted[i], "name");

		if (hits)
			printf("  %lld %s\n", (long long)hits, name);
		else
			n = i;
		free(name);
	}
	if (n < json_array_size(list))
		printf("  0 %zu more\n", json_array_size(list) - n);
	free(sorted);
	return list;
}

/* Of the values of its calls, those that are added up. */
static void print_sums(const json_t *values)
{
	const json_t *value, *sum;
	size_t i;

	json_array_foreach((json_t *)values, i, value)
	{
		const char *name = json_string_value(json_object_get(value, "name"));

		sum = json_object_get(value, "sum");
		if (!name || !sum)
			continue;
		if (json_is_string(sum))
			printf(" %s_sum=%s", name, json_string_value(sum));
		else if (json_is_integer(sum))
			printf(" %s_sum=%lld", name, (long long)json_integer_value(sum));
		else
			printf(" %s_sum=-", name);
	}
}

/* How long the calls of a timed target took, in the order and by the names of the JSON. */
static void print_spans(const json_t *spans)
{
	const json_t *value;
	const char *name;

	json_object_foreach((json_t *)spans, name, value)
	{
		if (json_is_integer(value))
			printf(" %s=%lld", name, (long long)json_integer_value(value));
		else if (json_is_null(value))
			printf(" %s=-", name);
		else if (!strcmp(name, "values"))
			print_sums(value);
	}
}

static int verb_list(struct ctl *c, int n, char **word)
{
	json_t *answer = ask(c, json_pack("{s:s s:b}", "op", "list", "functions", c->by_function)),
	       *t;
	bool counted = true;
	size_t i;

	(void)n;
	(void)word;
	if (!answer)
		return -1;
	json_array_foreach(json_object_get(answer, "targets"), i, t)
	{
		json_t *pid = json_object_get(t, "pid");
		char *target;

		if (c->json)
			break;
		target = ctl_shown(t, "target");
		printf("%s delay_ns=%lld hits=%lld", target,
		       (long long)json_integer_value(json_object_get(t, "delay_ns")),
		       (long long)json_integer_value(json_object_get(t, "hits")));
		if (pid)
			printf(" pid=%lld", (long long)json_integer_value(pid));
		print_spans(json_object_get(t, "spans"));
		if (json_object_get(t, "untimed"))
			printf(" untimed=%lld",
			       (long long)json_integer_value(json_object_get(t, "untimed")));
		putchar('\n');
		free(target);
		if (c->by_function)
			counted &= print_functions(json_object_get(t, "functions"));
	}
	json_decref(answer);
	if (counted)
		return 0;
	err_set(&c->err, SB_EUSAGE, "this session does not count by function");
	err_hint(&c->err, "start it with sbinject --hits-by-function");
	snprintf(c->error, sizeof(c->error), "EINVAL");
	return -1;
}

/* What has counted anything, or is not known. */
static void print_counters(const json_t *counters, const char *before)
{
	const json_t *value;
	const char *name;

	json_object_foreach((json_t *)counters, name, value)
	{
		if (json_is_null(value))
			printf("%s%s: -\n", before, name);
		else if (json_integer_value(value))
			printf("%s%s: %lld\n", before, name, (long long)json_integer_value(value));
	}
}

static void print_evidence(const json_t *evidence)
{
	print_counters(json_object_get(evidence, "counters"), "");
	print_counters(json_object_get(evidence, "machine"), "machine_");
	print_counters(json_object_get(evidence, "cgroup"), "cgroup_");
}

static int verb_status(struct ctl *c, int n, char **word)
{
	json_t *answer = ask(c, json_pack("{s:s}", "op", "status"));

	(void)n;
	(void)word;
	if (!answer)
		return -1;
	if (!c->json)
		printf("enabled: %d\ntargets: %lld\ntotal_hits: %lld\ntotal_delay_ns: %lld\n",
		       json_is_true(json_object_get(answer, "enabled")),
		       (long long)json_integer_value(json_object_get(answer, "targets")),
		       (long long)json_integer_value(json_object_get(answer, "total_hits")),
		       (long long)json_integer_value(json_object_get(answer, "total_delay_ns")));
	if (!c->json)
		print_evidence(json_object_get(answer, "evidence"));
	json_decref(answer);
	return 0;
}

static void show_result(const struct ctl *c, const json_t *end)
{
	char *text = json_document(end, c->json);
	struct result *res = NULL;
	struct sb_err err = { 0 };

	if (c->json)
		puts(text);
	else if (result_from_json(text, &res, &err) == 0)
		out_table(stdout, res, 0);
	result_free(res);
	free(text);
}

static int verb_stop(struct ctl *c, int n, char **word)
{
	json_t *answer = ctl_ask(c->peer, json_pack("{s:s}", "op", "stop"), &c->err, c->error),
	       *end;

	(void)n;
	(void)word;
	if (!answer)
		return -1;
	json_decref(answer);
	end = ctl_wait_end(c->peer);
	if (end)
		show_result(c, end);
	json_decref(end);
	return 0;
}

static int verb_watch(struct ctl *c, int n, char **word)
{
	(void)n;
	(void)word;
	return ctl_watch(c->peer, c->interval_ns);
}

static int verb_sessions(struct ctl *c, int n, char **word)
{
	(void)n;
	(void)word;
	return ctl_sessions(c->json, &c->err);
}

static const struct verb verbs[] = {
	{ "add", "TARGET [DELAY] [KEY=VALUE]...", "add a target", 1, 16, verb_add },
	{ "remove", "TARGET", "remove a target", 1, 1, verb_remove },
	{ "update", "TARGET DELAY", "change its delay: 5 is 5 ns, 5us has its unit", 2, 2,
	  verb_update },
	{ "clear", "", "remove every target", 0, 0, verb_clear },
	{ "delay", "[DELAY]", "the default delay of what is added", 0, 1, verb_delay },
	{ "enable", "", "count and delay", 0, 0, verb_enable },
	{ "disable", "", "neither count nor delay", 0, 0, verb_disable },
	{ "list", "", "targets, a line each", 0, 0, verb_list },
	{ "status", "", "totals", 0, 0, verb_status },
	{ "watch", "", "a live table; q ends it", 0, 0, verb_watch },
	{ "stop", "", "detach, end the session, show its summary", 0, 0, verb_stop },
	{ "sessions", "", "what is running", 0, 0, verb_sessions },
};

enum { VERBS = sizeof(verbs) / sizeof(*verbs), LINE_WORDS = 16 };

static void usage(FILE *to)
{
	fputs("usage: sbctl [-s SESSION|PID] [--json] VERB [ARG...]\n"
	      "       sbctl [-s SESSION|PID] -\t\tverbs from standard input, a line each\n\n",
	      to);
	for (int i = 0; i < VERBS; i++)
		fprintf(to, "  %-8s %-30s %s\n", verbs[i].name, verbs[i].args, verbs[i].summary);
	fputs("\n  -s, --session N    a session's number, or a process that it has hooked\n"
	      "  --pid=N            add, remove, update: a target of that process's tree alone\n"
	      "  --interval T       watch: between two looks (1s)\n"
	      "  --hits-by-function list: each target's functions by their own hits\n"
	      "  --kmod             the kernel module, even where sessions run\n"
	      "  --json             the answer as it came\n"
	      "  --help, --version\n\n"
	      "A DELAY without a unit is in nanoseconds (sbinject demands one).\n"
	      "Where no session runs, the kernel module is meant.\n",
	      to);
}

static int complain(const struct ctl *c)
{
	char *what = text_show(c->err.what), *remedy = text_show(err_remedy(&c->err));
	const char *name = c->err.code == SB_EPERM ? "EPERM" : c->error;

	fprintf(stderr, "sbctl: %s%s%s\n", name, *name ? ": " : "", what);
	if (remedy[0])
		fprintf(stderr, "sbctl: %s\n", remedy);
	free(what);
	free(remedy);
	return c->err.code == SB_EUSAGE ? 2 : 1;
}

static const struct verb *verb_of(const char *name)
{
	for (int i = 0; i < VERBS; i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static int run_verb(struct ctl *c, int n, char **word)
{
	const struct verb *verb = n ? verb_of(word[0]) : NULL;

	c->err = (struct sb_err){ 0 };
	c->error[0] = '\0';
	c->bare = false;
	if (!verb || n - 1 < verb->min || n - 1 > verb->max) {
		if (verb)
			err_set(&c->err, SB_EUSAGE, "sbctl %s %s", verb->name, verb->args);
		else
			err_set(&c->err, SB_EUSAGE, "unknown verb '%s'", n ? word[0] : "");
		err_hint(&c->err, "sbctl --help lists them");
		return complain(c);
	}
	if (!c->peer && verb->run != verb_sessions)
		c->peer = c->kmod ? ctl_open_kmod(&c->err) : ctl_open(c->session, &c->err);
	if ((!c->peer && verb->run != verb_sessions) || verb->run(c, n - 1, word + 1) < 0)
		return complain(c);
	return 0;
}

static int check_pid(struct ctl *c)
{
	if (!c->pid || (c->pid[0] && !c->pid[strspn(c->pid, "0123456789")]))
		return 0;
	err_set(&c->err, SB_EUSAGE, "--pid takes a process id, not '%s'", c->pid);
	return complain(c);
}

/* A verb and its words; --pid=N applies to this line alone. */
static int run_line(struct ctl *c, char *line)
{
	char *word[LINE_WORDS], *save = NULL;
	const char *pid = c->pid;
	int n = 0, status;

	for (char *w = strtok_r(line, " \t\r\n", &save); w && n < LINE_WORDS;
	     w = strtok_r(NULL, " \t\r\n", &save)) {
		if (!strncmp(w, "--pid=", 6))
			c->pid = w + 6;
		else
			word[n++] = w;
	}
	if (!n || word[0][0] == '#')
		return c->pid = pid, 0;
	c->error[0] = '\0';
	status = check_pid(c);
	if (!status)
		status = run_verb(c, n, word);
	c->pid = pid;
	return status;
}

/* Many verbs over one connection; returns the worst exit status. */
static int run_lines(struct ctl *c)
{
	char *line = NULL;
	size_t cap = 0;
	int worst = 0;

	c->batch = true;
	while (getline(&line, &cap, stdin) > 0) {
		int status = run_line(c, line);

		worst = status > worst ? status : worst;
	}
	free(line);
	return worst;
}

/* A negative delay would be taken for options. */
static int refuse_negative(struct ctl *c, int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (argv[i][0] != '-' || !argv[i][1] || argv[i][1] < '0' || argv[i][1] > '9' ||
		    !strcmp(argv[i - 1], "-s") || !strcmp(argv[i - 1], "--session"))
			continue;
		snprintf(c->error, sizeof(c->error), "EINVAL");
		err_set(&c->err, SB_ESPEC, "'%s' is below 0", argv[i]);
		return complain(c);
	}
	return -1;
}

static int options(struct ctl *c, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "session", 1, NULL, 's' },
		{ "pid", 1, NULL, 'p' },
		{ "json", 0, NULL, 'j' },
		{ "kmod", 0, NULL, 'k' },
		{ "interval", 1, NULL, 'i' },
		{ "help", 0, NULL, 'h' },
		{ "version", 0, NULL, 'V' },
		{ "hits-by-function", 0, NULL, 'f' },
		{ 0 },
	};
	int code = refuse_negative(c, argc, argv);

	if (code >= 0)
		return code;
	while ((code = getopt_long(argc, argv, "s:", longs, NULL)) >= 0) {
		if (code == 's')
			c->session = optarg;
		else if (code == 'p')
			c->pid = optarg;
		else if (code == 'j')
			c->json = true;
		else if (code == 'k')
			c->kmod = true;
		else if (code == 'i' && spec_duration(optarg, &c->interval_ns, &c->err) < 0)
			return complain(c);
		else if (code == 'f')
			c->by_function = true;
		else if (code == 'h')
			return usage(stdout), 0;
		else if (code == 'V')
			return puts("sbctl " SB_VERSION), 0;
		else if (code == '?')
			return fputs("sbctl: see sbctl --help\n", stderr), 2;
	}
	return check_pid(c) ? 2 : -1;
}

int main(int argc, char **argv)
{
	struct ctl c = { .interval_ns = 1000000000 };
	int status;

	runtime_hold_streams();
	setlocale(LC_CTYPE, "");
	if (caps_spare(&c.err) < 0) {
		fprintf(stderr, "sbctl: %s\nsbctl: %s\n", c.err.what, c.err.hint);
		return 1;
	}
	status = options(&c, argc, argv);
	if (status >= 0)
		return status;
	if (optind == argc) {
		usage(stderr);
		return 2;
	}
	status = !strcmp(argv[optind], "-") ? run_lines(&c) :
					      run_verb(&c, argc - optind, argv + optind);
	ctl_close(c.peer);
	return fflush(stdout) ? 1 : status;
}
