/* SPDX-License-Identifier: MIT */
/* `sbinject find`: from a pid to what limits the program, by the steps that have verbs of their
 * own. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "command.h"
#include "find-next.h"
#include "options.h"
#include "sweep.h"
#include "src/base/must.h"
#include "src/live/candidates-names.h"
#include "src/live/explain.h"
#include "src/live/find.h"
#include "src/live/progress.h"
#include "src/out/explain.h"
#include "src/out/find.h"
#include "src/out/out.h"
#include "src/run/backends.h"
#include "src/spec/spec.h"
#include "sweep/escalate.h"

#define S		1000000000ull
#define DEFAULT_TIME_NS (70 * S)
#define LEAST_TIME_NS	(10 * S)
#define EXPLAIN_NS	(5 * S)
#define COUNT_NS	(2 * S)

enum { COUNTED_WORDS = 2 * (CANDIDATES_MOST + WAITS_MOST), WAITS_SWEPT = 2 };
enum { WORDS_MOST = 2 * FIND_SWEPT_MOST + 13 + CANDIDATES_OPTIONS, EVERY_SIZE = 32 };
#define SWEPT_LEAST 0.02

struct find {
	struct options opt;
	struct sweep_job job;
	struct out_find out;
	struct explain_result *explain;
	struct find_rates *rates;
	struct counters *page; /* --progress prom:URL: find chooses what on it counts items; NULL */
	char *pids, *progress;
	char every[FIND_SWEPT_MOST][EVERY_SIZE]; /* words of the sweep */
	char why[576];				 /* why the sweep gave no result */
	char dir[64], path[96];			 /* of the sweep's document; "": none */
	char *document;
	int status;
	struct sb_err err;
};

static void find_help(FILE *to)
{
	fputs("\n", to);
	options_help(to, VERB_FIND);
}

static int usage(struct sb_err *err, const char *what, const char *hint)
{
	err_set(err, SB_EUSAGE, "%s", what);
	err_hint(err, "%s", hint);
	return -SB_EUSAGE;
}

static int check_words(struct find *f)
{
	struct options *opt = &f->opt;

	if (opt->command || opt->session.targets.count)
		return usage(&f->err, "find looks for the functions itself, in running processes",
			     "sbinject find -p PID");
	if (!opt->session.n_pids)
		return usage(&f->err, "no process is given", "sbinject find -p PID");
	if (opt->time_ns && opt->time_ns < LEAST_TIME_NS)
		return usage(&f->err, "--time: too short to find anything", "--time 70s");
	for (size_t i = 0; i < opt->session.n_pids; i++)
		if (kill(opt->session.pids[i], 0) < 0 && errno == ESRCH)
			return err_set(&f->err, SB_ENOPROC, "there is no process %d",
				       opt->session.pids[i]);
	return out_check(opt->json, &f->err);
}

/* Signals stay pending, so that the step in progress ends, and those after it do not begin. */
static void hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static bool interrupted(void)
{
	sigset_t set;

	sigpending(&set);
	return sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) || sigismember(&set, SIGHUP);
}

static FILE *shown(const struct find *f)
{
	bool quiet = f->opt.quiet || (f->opt.json && !strcmp(f->opt.json, "-"));

	return quiet ? NULL : stdout;
}

static char *list_pids(const struct session_config *cfg)
{
	char *text = must_calloc(cfg->n_pids, 16), *to = text;

	for (size_t i = 0; i < cfg->n_pids; i++)
		to += sprintf(to, "%s%d", i ? "," : "", cfg->pids[i]);
	return text;
}

/* The processes, and how they are hooked: the same in each step. Ends the list. */
static size_t put_shared(const struct find *f, char **word, size_t n)
{
	const char *option[CANDIDATES_OPTIONS];
	size_t count = candidates_options(&f->opt, option);

	word[n++] = (char *)"-p";
	word[n++] = f->pids;
	for (size_t i = 0; i < count; i++)
		word[n++] = (char *)(uintptr_t)option[i];
	word[n] = NULL;
	return n;
}

/* ---- the steps ---- */

static int step_explain(struct find *f)
{
	char *word[WORDS_MOST] = { (char *)"explain", (char *)"--time", (char *)"5s" };
	FILE *to = shown(f);

	put_shared(f, word, 3);
	f->out.command[0] = find_join(word);
	if (to)
		out_find_step(to, 1, "Where do the threads spend a second, and in which functions?",
			      f->out.command[0]);
	f->job.progress_index = DRIVE_NONE;
	f->job.ends = interrupted;
	f->explain = explain_live(&f->job, EXPLAIN_NS, &f->err);
	f->out.explain = f->explain;
	if (!f->explain && interrupted()) { /* before enough was measured */
		f->err = (struct sb_err){ 0 };
		f->out.ended_early = true;
		return 0;
	}
	if (!f->explain)
		return -1;
	if (!f->explain->sweep)
		f->explain->sweep_why = "what counts the items is looked for next";
	if (to)
		out_explain_table(to, f->explain);
	return 0;
}

/* Processes that begin later, too; for a breakpoint they are always followed. */
static bool hooks_later(const struct find *f)
{
	return f->opt.follow || f->opt.session.mechanism == MECHANISM_INT3 ||
	       f->job.backend != &backend_inject;
}

/* Those that can be hooked, once. */
static size_t put_counted(const struct explain_candidate *from, size_t count, char **word, size_t n)
{
	for (size_t i = 0; i < count && n < COUNTED_WORDS; i++) {
		bool there = false;

		for (size_t k = 0; k < n; k += 2)
			there |= !strcmp(word[k], from[i].target);
		if (there || !from[i].hookable)
			continue;
		word[n++] = from[i].target;
		word[n++] = (char *)"0";
	}
	return n;
}

static char *count_command(const struct find *f)
{
	char *word[COUNTED_WORDS + WORDS_MOST];
	size_t n = put_counted(f->explain->candidate, f->explain->n_candidates, word, 0);

	n = put_counted(f->explain->wait, f->explain->n_waits, word, n);
	if (!n)
		return NULL;
	word[n++] = (char *)"--for";
	word[n++] = (char *)"2s";
	if (!hooks_later(f))
		word[n++] = (char *)"--no-follow";
	put_shared(f, word, n);
	return find_join(word);
}

static void choose_progress(struct find *f)
{
	const struct find_rates *rates = f->rates;

	f->out.given = f->opt.progress && !f->page;
	if (f->out.given)
		f->progress = must_strdup(f->opt.progress);
	else if (f->page && rates->counter_point != FIND_NONE)
		f->progress = must_strdup(rates->counter[rates->counter_point].target);
	else if (!f->page && rates->point != FIND_NONE)
		f->progress = must_strdup(rates->rate[rates->point].target);
	f->out.progress = f->progress;
	f->out.is_call = f->progress && progress_kind_of(f->progress) == PROGRESS_TARGET;
	if (f->progress)
		return;
	if (f->page)
		f->out.why = "no counter of the page grows regularly: name the one that counts the "
			     "items, --progress prom:URL#METRIC";
	else if (rates->unhooked > 0)
		f->out.why = "no candidate is called regularly in the processes that are hooked, "
			     "and others began after the attach: --follow hooks these";
	else
		f->out.why =
			"no candidate is called regularly: give what counts the items, --progress";
}

static int step_count(struct find *f)
{
	FILE *to = shown(f);

	f->out.command[1] = count_command(f);
	if (!f->out.command[1]) {
		f->out.why = "no function that can be hooked has 1 % of the samples";
		return 0;
	}
	if (to)
		out_find_step(to, 2,
			      f->page ?
				      "How often are these called, and what on the page counts the "
				      "work?" :
				      "How often are these called, and which calls count the work?",
			      f->out.command[1]);
	f->rates = find_count(&f->job, f->explain, f->page, COUNT_NS, &f->err);
	f->out.rates = f->rates;
	if (!f->rates && f->err.code == SB_EINTERRUPTED) { /* while their names were looked up */
		f->err = (struct sb_err){ 0 };
		f->out.ended_early = true;
		return 0;
	}
	if (!f->rates)
		return -1;
	f->out.ended_early |= f->rates->ended;
	if (to)
		out_find_rates(to, f->rates);
	choose_progress(f);
	return 0;
}

/*
 * Of a function that is called so often that a delay of each call, even the smallest, is a large
 * part of the time, each Nth call is delayed: "every=N", to text. False: each call can be.
 */
static bool often(const struct find_rate *r, double floor_ns, char text[EVERY_SIZE])
{
	double every = escalate_every(r->per_s * floor_ns / S, drive_defaults().max_slowdown);

	snprintf(text, EVERY_SIZE, "every=%.0f", every);
	return every > 1;
}

static size_t put_swept(const struct find_rates *rates, bool waits, size_t most,
			const struct find_rate **swept, size_t n)
{
	for (size_t i = 0; i < rates->n && n < most; i++) {
		const struct find_rate *r = &rates->rate[i];

		if (r->waits == waits && r->calls && r->share >= SWEPT_LEAST &&
		    !(r->cost > FIND_COST_MOST))
			swept[n++] = r;
	}
	return n;
}

/* The first ones by the time on a processor, and room for those in which a thread waits: what is
 * hardly on a processor may set the pace. */
static size_t choose_swept(const struct find_rates *rates,
			   const struct find_rate *swept[FIND_SWEPT_MOST])
{
	size_t waits = put_swept(rates, true, WAITS_SWEPT, swept, 0);
	size_t n = put_swept(rates, false, FIND_SWEPT_MOST - waits, swept, 0);

	return put_swept(rates, true, FIND_SWEPT_MOST, swept, n);
}

static size_t sweep_words(struct find *f, char **word, char *time)
{
	double floor_ns = (double)sweep_floor_ns(f->job.backend);
	const struct find_rate *swept[FIND_SWEPT_MOST];
	size_t n = 0, targets = choose_swept(f->rates, swept);

	if (!targets)
		return 0;
	word[n++] = (char *)"sweep";
	for (size_t i = 0; i < targets; i++) {
		word[n++] = swept[i]->target;
		if (often(swept[i], floor_ns, f->every[i]))
			word[n++] = f->every[i];
	}
	word[n++] = (char *)"--progress";
	word[n++] = f->progress;
	word[n++] = (char *)"--time";
	word[n++] = time;
	if (f->opt.follow)
		word[n++] = (char *)"--follow";
	return put_shared(f, word, n);
}

/* The document, or why there is none. An interrupt before the first window is no error: the answer
 * has what is known. */
static void read_document(struct find *f, const struct sb_err *swept)
{
	struct sb_err err = { 0 };
	size_t len;

	if (swept->code == SB_EINTERRUPTED) {
		f->status = 0;
		f->out.ended_early = true;
		f->out.why = "ended before its first window";
		return;
	}
	if (swept->code)
		command_print_error(swept);
	snprintf(f->why, sizeof(f->why), "it gave no result%s%s", swept->code ? ": " : "",
		 swept->code ? swept->what : "");
	f->out.why = f->why;
	if (spec_read_bytes(f->path, "find", &f->document, &len, &err) < 0)
		return;
	f->document = must_realloc(f->document, len + 1);
	f->document[len] = '\0';
	f->out.sweep = f->document;
}

static void run_sweep(struct find *f, char **word, size_t n)
{
	struct sb_err err = { 0 };

	snprintf(f->dir, sizeof(f->dir), "/tmp/sbinject-find.XXXXXX");
	if (!mkdtemp(f->dir)) {
		err_sys(&f->err, SB_EFILE, "cannot make a folder in /tmp");
		f->dir[0] = '\0';
		return;
	}
	snprintf(f->path, sizeof(f->path), "%s/sweep.json", f->dir);
	word[n++] = (char *)"--json";
	word[n++] = f->path;
	if (!shown(f))
		word[n++] = (char *)"-q";
	word[n] = NULL;
	f->status = sweep_by_words((int)n, word, &err);
	read_document(f, &err);
	unlink(f->path);
	rmdir(f->dir);
}

/* The same, with processes that begin later. */
static void propose_follow(struct find *f)
{
	char *word[WORDS_MOST] = { (char *)"find", (char *)"--follow" }, time[32];
	size_t n = 2;

	if (f->opt.progress) {
		word[n++] = (char *)"--progress";
		word[n++] = f->opt.progress;
	}
	if (f->opt.time_ns) {
		snprintf(time, sizeof(time), "%llus", (unsigned long long)(f->opt.time_ns / S));
		word[n++] = (char *)"--time";
		word[n++] = time;
	}
	put_shared(f, word, n);
	find_next_add(&f->out, "processes that begin later, too", find_join(word));
}

static void sweep_and_propose(struct find *f, char **word, size_t n, double time_s)
{
	char *plain[WORDS_MOST];
	struct find_next_about about = { .word = plain, .time_s = time_s };

	memcpy(plain, word, (n + 1) * sizeof(*plain));
	run_sweep(f, word, n);
	if (!f->document && f->out.ended_early)
		find_next_add(&f->out, FIND_NEXT_WHOLE, find_join(plain));
	about.document = f->document;
	about.is_target = f->out.is_call;
	if (f->rates->response_point != FIND_NONE)
		about.response = f->rates->counter[f->rates->response_point].target;
	find_next(&about, &f->out);
	f->out.ended_early |= find_ended_early(f->document);
}

static void leave_out_sweep(struct find *f)
{
	f->out.ended_early = true;
	f->out.why = "not run: ended before it";
	find_next_add(&f->out, FIND_NEXT_WHOLE, must_strdup(f->out.command[2]));
}

static void step_sweep(struct find *f)
{
	uint64_t left = (f->opt.time_ns ? f->opt.time_ns : DEFAULT_TIME_NS) - EXPLAIN_NS - COUNT_NS;
	uint64_t left_s = left / S; /* the command has whole seconds */
	char *word[WORDS_MOST], time[32];
	FILE *to = shown(f);
	size_t n;

	snprintf(time, sizeof(time), "%" PRIu64 "s", left_s);
	n = sweep_words(f, word, time);
	if (!n) {
		f->out.why =
			"no function that is called, and is not left out, has 2 % of the samples";
		return;
	}
	f->out.command[2] = find_join(word);
	if (to)
		out_find_step(to, 3,
			      "Which of them sets the pace? Each is delayed a little, now and then",
			      f->out.command[2]);
	if (f->opt.no_sweep)
		f->out.why = "not run: --dry-run";
	else if (f->out.ended_early || interrupted())
		leave_out_sweep(f);
	else
		sweep_and_propose(f, word, n, (double)left_s);
}

static void find(struct find *f)
{
	if (check_words(f) < 0)
		return;
	f->job.opt = &f->opt;
	f->job.backend = backend_choose(f->opt.backend, &f->opt.session, &f->err);
	if (!f->job.backend)
		return;
	f->pids = list_pids(&f->opt.session);
	if (f->opt.progress && counters_is_page(f->opt.progress)) {
		f->page = counters_open(f->opt.progress, &f->err);
		if (!f->page)
			return;
	}
	hold_signals();
	if (step_explain(f) < 0)
		return;
	f->out.ended_early |= f->explain && f->explain->ended_early;
	f->out.why = "ended before a progress point was found";
	if (!f->out.ended_early && step_count(f) < 0)
		return;
	if (f->rates && f->rates->unhooked > 0)
		propose_follow(f);
	if (f->rates && f->progress)
		step_sweep(f);
	if (shown(f))
		out_find_page(stdout, &f->out);
	if (f->opt.json && !f->err.code)
		out_find_json(f->opt.json, &f->out, &f->err);
}

static int find_main(const struct command *cmd, int argc, char **argv)
{
	char **whole = must_calloc((size_t)argc + 1, sizeof(*whole));
	struct find f = { .out = { .argc = argc, .argv = whole } };

	memcpy(whole, argv, (size_t)argc * sizeof(*whole));
	if (options_parse(argc, argv, VERB_FIND, &f.opt, &f.err) == 0 && f.opt.help)
		command_print_usage(stdout, cmd);
	else if (!f.err.code)
		find(&f);
	if (f.err.code) {
		command_print_error(&f.err);
		f.status = err_exit_status(f.err.code);
	}
	for (int i = 0; i < FIND_STEPS; i++)
		free(f.out.command[i]);
	find_next_free(&f.out);
	explain_free(f.explain);
	find_rates_free(f.rates);
	counters_close(f.page);
	free(f.pids);
	free(f.progress);
	free(f.document);
	options_free(&f.opt);
	free(whole);
	return f.status;
}

const struct command cmd_find = {
	.name = "find",
	.summary = "find what limits a running program: its busy functions, what counts its work, "
		   "a sweep",
	.usage = "find [--progress SOURCE] [--time TIME] [--dry-run] [OPTIONS] -p PID[,PID...]",
	.run = find_main,
	.help = find_help,
};
