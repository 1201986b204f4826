/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <ctype.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "guess.h"
#include "log.h"
#include "spec-env.h"
#include "text.h"

/* What one parse knows besides its result. */
struct parse {
	struct options *opt;
	uint64_t delay_ns, every;
	bool delay_given;
	char *const *words; /* before --, without the first */
	size_t n_words;
	struct sb_err *err;
};

typedef int option_fn(struct parse *p, const char *arg);

static int opt_pid(struct parse *p, const char *arg)
{
	return spec_pids(arg, &p->opt->session.pids, &p->opt->session.n_pids, p->err);
}

static int opt_match(struct parse *p, const char *arg)
{
	return options_match(arg, &p->opt->session.pids, &p->opt->session.n_pids, p->err);
}

static int opt_all(struct parse *p, const char *arg)
{
	(void)arg;
	p->opt->session.all = true;
	return 0;
}

static int opt_no_children(struct parse *p, const char *arg)
{
	(void)arg;
	p->opt->session.children = false;
	return 0;
}

static int opt_no_follow(struct parse *p, const char *arg)
{
	(void)arg;
	p->opt->session.follow = false;
	return 0;
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

static int opt_start(struct parse *p, const char *arg)
{
	return spec_duration(arg, &p->opt->session.start_ns, p->err);
}

static int opt_start_on(struct parse *p, const char *arg)
{
	free(p->opt->session.start_on);
	p->opt->session.start_on = text_dup(arg);
	return 0;
}

static int opt_for(struct parse *p, const char *arg)
{
	int ret = spec_duration(arg, &p->opt->session.for_ns, p->err);

	if (ret == 0 && !p->opt->session.for_ns)
		return err_set(p->err, SB_EUSAGE, "--for 0: nothing would be done");
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
	err_set(p->err, SB_EUSAGE, "--mechanism: there is no '%s'", arg);
	err_hint(p->err, "it is auto, jump or int3");
	return -SB_EUSAGE;
}

static int opt_backend(struct parse *p, const char *arg)
{
	free(p->opt->backend);
	p->opt->backend = text_dup(arg);
	return 0;
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

static int opt_require_hits(struct parse *p, const char *arg)
{
	(void)arg;
	p->opt->require_hits = true;
	return 0;
}

static int opt_by_process(struct parse *p, const char *arg)
{
	(void)arg;
	p->opt->by_process = true;
	return 0;
}

static int opt_by_function(struct parse *p, const char *arg)
{
	(void)arg;
	p->opt->session.by_function = true;
	return 0;
}

static int opt_json(struct parse *p, const char *arg)
{
	free(p->opt->json);
	p->opt->json = text_dup(arg);
	return 0;
}

static int opt_jsonl(struct parse *p, const char *arg)
{
	free(p->opt->jsonl);
	p->opt->jsonl = text_dup(arg);
	return 0;
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

static int opt_from_env(struct parse *p, const char *arg)
{
	(void)arg;
	p->opt->from_env = true;
	return 0;
}

static int opt_background(struct parse *p, const char *arg)
{
	(void)arg;
	p->opt->background = true;
	return 0;
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

static int opt_metrics(struct parse *p, const char *arg)
{
	free(p->opt->metrics);
	p->opt->metrics = text_dup(arg);
	return 0;
}

static int opt_metrics_file(struct parse *p, const char *arg)
{
	free(p->opt->metrics_file);
	p->opt->metrics_file = text_dup(arg);
	return 0;
}

static int opt_metrics_by_pid(struct parse *p, const char *arg)
{
	(void)arg;
	p->opt->metrics_by_pid = true;
	return 0;
}

static int opt_events(struct parse *p, const char *arg)
{
	free(p->opt->events);
	p->opt->events = text_dup(arg);
	return 0;
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

static int opt_help(struct parse *p, const char *arg)
{
	(void)arg;
	p->opt->help = true;
	return 0;
}

static int opt_version(struct parse *p, const char *arg)
{
	(void)arg;
	p->opt->version = true;
	return 0;
}

static const struct option_row {
	const char *name;
	char letter;
	int verbs;
	option_fn *set;
	const char *arg; /* NULL: takes none */
	const char *help;
} rows[] = {
	{ "pid", 'p', VERB_ALL, opt_pid, "PID[,PID...]",
	  "the process, its descendants and all their threads; repeatable" },
	{ "match", 0, VERB_ALL, opt_match, "GLOB", "processes by their whole command line" },
	{ "all", 'a', VERB_RUN, opt_all, NULL,
	  "every process of the machine, those that start later too (uprobe)" },
	{ "no-children", 0, VERB_RUN | VERB_LIST | VERB_SWEEP | VERB_RECOVER, opt_no_children, NULL,
	  "not its descendants" },
	{ "no-follow", 0, VERB_RUN, opt_no_follow, NULL,
	  "plant and let the target run untraced; later children are not followed" },
	{ "targets", 0, VERB_RUN | VERB_LIST | VERB_SWEEP, opt_targets, "FILE",
	  "more targets, one a line (sbinject-targets(5))" },
	{ "delay", 0, VERB_RUN, opt_delay, "TIME", "for targets without one (default 1us)" },
	{ "every", 0, VERB_RUN | VERB_SWEEP, opt_every, "N", "delay each Nth hit of a thread" },
	{ "start", 0, VERB_RUN, opt_start, "TIME", "begin that long after attaching" },
	{ "start-on", 0, VERB_RUN, opt_start_on, "TARGET|FILE",
	  "begin at the target's first hit, or when the file exists" },
	{ "for", 0, VERB_RUN, opt_for, "TIME", "detach after so long" },
	{ "mechanism", 0, VERB_RUN | VERB_LIST | VERB_SWEEP, opt_mechanism, "auto|jump|int3",
	  "how a function is hooked" },
	{ "backend", 0, VERB_RUN | VERB_LIST | VERB_SWEEP, opt_backend, "auto|inject|uprobe|kmod",
	  "what does the hooking" },
	{ "max-slowdown", 0, VERB_RUN | VERB_SWEEP, opt_max_slowdown, "P%",
	  "refuse to add more than this to a thread's time" },
	{ "require-hits", 0, VERB_RUN, opt_require_hits, NULL,
	  "fail (125) when a target was never hit" },
	{ "hits-by-function", 0, VERB_RUN, opt_by_function, NULL,
	  "count each function of a target by itself as well" },
	{ "by-process", 0, VERB_RUN, opt_by_process, NULL, "show each of many processes" },
	{ "json", 0, VERB_RUN | VERB_LIST | VERB_DOCTOR | VERB_SWEEP, opt_json, "FILE|-",
	  "the result as JSON" },
	{ "jsonl", 0, VERB_RUN, opt_jsonl, "FILE", "the result as one line, appended" },
	{ "tag", 0, VERB_RUN | VERB_SWEEP, opt_tag, "K=V", "put into the JSON; repeatable" },
	{ "interval", 0, VERB_RUN, opt_interval, "TIME", "a status line so often" },
	{ "from-env", 0, VERB_RUN, opt_from_env, NULL,
	  "targets and settings of SPEED_BUMP_*, as a command without a target has them" },
	{ "daemon", 0, VERB_RUN, opt_background, NULL,
	  "return when the hooks are in force; with -p" },
	{ "status-fd", 0, VERB_RUN, opt_status_fd, "N",
	  "a line on descriptor N when attached and when ended" },
	{ "metrics", 0, VERB_RUN, opt_metrics, "[ADDR:]PORT",
	  "serve counters to Prometheus; on loopback where no address is given" },
	{ "metrics-file", 0, VERB_RUN, opt_metrics_file, "FILE",
	  "write them for the textfile collector" },
	{ "metrics-by-pid", 0, VERB_RUN, opt_metrics_by_pid, NULL,
	  "with a label for each process" },
	{ "events", 0, VERB_RUN, opt_events, "FILE",
	  "each change of state as a line of JSON, with both clocks" },
	{ "quiet", 'q', VERB_ALL, opt_quiet, NULL, "errors only" },
	{ "verbose", 'v', VERB_ALL, opt_verbose, NULL, "say what is being done" },
	{ "help", 'h', VERB_ALL, opt_help, NULL, "this text" },
	{ "version", 0, VERB_RUN, opt_version, NULL, "the version" },
};

enum { ROWS = sizeof(rows) / sizeof(*rows), FIRST_LONG = 1000 };

void options_help(FILE *to, enum option_verb verb)
{
	for (size_t i = 0; i < ROWS; i++) {
		char left[64], letter[8] = "    ";

		if (!(rows[i].verbs & verb))
			continue;
		if (rows[i].letter)
			snprintf(letter, sizeof(letter), "-%c, ", rows[i].letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, rows[i].name,
			 rows[i].arg ? " " : "", rows[i].arg ? rows[i].arg : "");
		fprintf(to, "  %-32s %s\n", left, rows[i].help);
	}
}

/* getopt's tables, from ours. */
static void getopt_tables(struct option *longs, char *shorts)
{
	char *s = shorts;

	*s++ = ':';
	for (size_t i = 0; i < ROWS; i++) {
		longs[i] = (struct option){ rows[i].name,
					    rows[i].arg ? required_argument : no_argument, NULL,
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

/* A program's name where none belongs: its options were taken for ours. */
static bool hint_command(const struct parse *p)
{
	const char *word = p->opt->command ? NULL : guess_command(p->words, p->n_words);

	if (word)
		err_hint(p->err, "if '%.100s' is the command to run, -- goes before it", word);
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
		ret = row->set(p, optarg);
	}
	return ret;
}

/* Defaults of the whole command line go to the targets that have none of their own. */
static void apply_defaults(struct parse *p)
{
	struct spec_list *list = &p->opt->session.targets;

	p->opt->default_ns = p->delay_given ? p->delay_ns : SPEC_DEFAULT_NS;

	for (size_t i = 0; i < list->count; i++) {
		if (list->spec[i].delay_ns == SPEC_DELAY_UNSET)
			list->spec[i].delay_ns = p->delay_given ? p->delay_ns : SPEC_DEFAULT_NS;
		if (!list->spec[i].every)
			list->spec[i].every = p->every ? p->every : 1;
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

/* What the environment asks for, where the line asks for nothing; its options are stronger. */
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
	/* Else what else there is in the command that honours it would do the same once more. */
	unsetenv("SPEED_BUMP_TARGETS");
	return 0;
}

/* --start-on TARGET is a counting target like any other, if it is not one already. */
static int add_start_on(struct parse *p)
{
	struct session_config *cfg = &p->opt->session;
	char *words[2] = { cfg->start_on, (char[]){ "0" } };

	if (!cfg->start_on || !strchr(cfg->start_on, ':') || access(cfg->start_on, F_OK) == 0)
		return 0;
	for (size_t i = 0; i < cfg->targets.count; i++)
		if (!strcmp(cfg->targets.spec[i].text, cfg->start_on))
			return 0;
	return spec_parse_words(words, 2, &cfg->targets, p->err);
}

static int check_together(struct parse *p)
{
	const struct session_config *cfg = &p->opt->session;

	if (cfg->mechanism == MECHANISM_INT3 && (!cfg->follow || !cfg->children)) {
		err_set(p->err, SB_EUSAGE,
			"--mechanism int3 needs the tracer for as long as it is "
			"planted: --no-%s excludes it",
			cfg->follow ? "children" : "follow");
		err_hint(p->err, "leave one of them out");
		return -SB_EUSAGE;
	}
	if (cfg->all && cfg->n_pids) {
		err_set(p->err, SB_EUSAGE, "--all and -p exclude each other");
		err_hint(p->err,
			 "pid=N after a target limits it to that process and its descendants");
		return -SB_EUSAGE;
	}
	if (p->opt->background && (p->opt->command || (!cfg->n_pids && !cfg->all))) {
		err_set(p->err, SB_EUSAGE,
			"--daemon is for running processes: -p PID, and no "
			"command");
		err_hint(p->err, "put & behind it in a shell");
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
		ret = add_start_on(&p);
	if (ret < 0)
		return ret;
	apply_defaults(&p);
	if (getrandom(&opt->session.id, sizeof(opt->session.id), 0) < 0)
		opt->session.id = (uint64_t)getpid() << 32;
	return check_together(&p);
}

void options_free(struct options *opt)
{
	for (size_t i = 0; i < opt->n_tags; i++) {
		free(opt->tag[i].key);
		free(opt->tag[i].value);
	}
	free(opt->tag);
	free(opt->json);
	free(opt->metrics);
	free(opt->metrics_file);
	free(opt->events);
	free(opt->jsonl);
	free(opt->backend);
	free(opt->session.start_on);
	free(opt->session.pids);
	free(opt->session.skip);
	spec_list_free(&opt->session.targets);
}
