/* SPDX-License-Identifier: MIT */
/* `sbinject sweep`: how much of a function's delay reaches the end result? */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "command.h"
#include "sweep.h"
#include "sweep-options.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/live/job.h"
#include "src/live/load.h"
#include "src/out/out.h"
#include "src/out/place.h"
#include "src/out/sweep-plan.h"
#include "src/out/sweep.h"
#include "src/run/backends.h"
#include "src/session/launch.h"

#define DEFAULT_TIME_NS 60000000000ull

struct sweep_command {
	struct options opt;
	struct sweep_options own;
	struct sweep_job job;
	const char **spec;	       /* of the targets under test */
	struct sweep_load_ticks begin; /* of the machine, when the sweep began */
	struct sb_err err;
};

static void sweep_help(FILE *to)
{
	sweep_options_help(to);
	fputs("\n", to);
	options_help(to, VERB_SWEEP);
}

static int usage(struct sb_err *err, const char *what, const char *hint)
{
	err_set(err, SB_EUSAGE, "%s", what);
	err_hint(err, "%s", hint);
	return -SB_EUSAGE;
}

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static int check_words(struct sweep_command *c)
{
	const struct session_config *cfg = &c->opt.session;

	if (!cfg->targets.count)
		return usage(&c->err, "no target is given",
			     "sbinject sweep -p PID lib:sym --progress SOURCE");
	if (!cfg->n_pids && !c->opt.command)
		return usage(&c->err, "neither a process nor a command is given",
			     "-p PID, or -- COMMAND");
	if (c->own.runs && (!c->opt.command || cfg->n_pids))
		return usage(&c->err, "--runs needs a command that can be run repeatedly",
			     "sbinject sweep TARGET --runs 10 -- COMMAND");
	if (!c->own.runs && !c->own.progress)
		return usage(&c->err,
			     "no progress source is given: name what counts the items done",
			     "--progress TARGET (a function called once an item), "
			     "prom:URL#METRIC, file:PATH, cmd:COMMAND");
	if (out_check_standard(c->opt.command, c->opt.json, NULL, c->own.events, &c->err) < 0)
		return -(int)c->err.code;
	for (size_t i = 0; i < c->own.n_doses; i++)
		if (c->own.dose_ns[i] < SWEEP_FLOOR_NS)
			return usage(&c->err, "a dose lies below the smallest honest delay, 40ns",
				     "leave out --doses: the sweep then chooses them");
	if (c->own.evidence && c->own.runs)
		return usage(&c->err, "--evidence is read in a process that lives on, not in runs",
			     "sweep a live process; or, for one run: sbinject --evidence");
	if (c->opt.session.evidence_sample && !c->own.evidence)
		return usage(&c->err, "--evidence-sample is of --evidence, by BPF",
			     "add --evidence");
	if (c->own.quantile > 0 && !c->own.response)
		return usage(&c->err, "--quantile is of a response", "add --response SOURCE");
	if (c->own.quantile > 0 && c->own.n_adjust)
		return usage(&c->err, "--quantile: quantiles are not adjusted",
			     "leave out --adjust, or judge the mean");
	if (c->own.n_adjust && c->own.runs)
		return usage(&c->err, "--adjust is read in a process that lives on, not in runs",
			     "sweep a live process");
	if (c->own.response && c->own.runs)
		return usage(&c->err, "--response is read in a process that lives on, not in runs",
			     "sweep a live process");
	return 0;
}

static int check_response(struct sweep_command *c)
{
	enum progress_kind kind;

	if (!c->own.response)
		return 0;
	kind = progress_kind_of(c->own.response);
	if (kind != PROGRESS_PROM && kind != PROGRESS_TARGET)
		return usage(&c->err,
			     "--response needs a histogram, prom:URL#METRIC, or a function whose "
			     "calls are timed",
			     "");
	for (size_t i = 0; i < c->opt.session.targets.count; i++)
		if (!strcmp(c->opt.session.targets.spec[i].text, c->own.response))
			return usage(
				&c->err,
				"--response: the time of a call is without the call's own delay, "
				"so a "
				"target is no response",
				"name the function that serves a request, and sweep what it calls");
	return 0;
}

static int check_command(struct sweep_command *c)
{
	return c->opt.command ? launch_check(c->opt.command, &c->err) : 0;
}

/* A target like the others, counted in every arm, unless it is one of them. */
static int add_target(struct sweep_command *c, const char *option, char *text, size_t *index)
{
	struct spec_list *list = &c->opt.session.targets;
	char *words[2] = { text, (char[]){ "0" } };
	char what[96];
	int ret;

	for (*index = 0; *index < list->count; (*index)++)
		if (!strcmp(list->spec[*index].text, text))
			return 0;
	ret = spec_parse_words(words, 2, list, &c->err);
	if (ret < 0 || list->count == *index + 1)
		return ret;
	snprintf(what, sizeof(what), "%s: the word stands for several functions", option);
	return usage(&c->err, what, "name one of them, as cuda:cuLaunchKernel");
}

static int open_progress(struct sweep_command *c)
{
	const char *text = c->own.progress ? c->own.progress : "end";
	enum progress_kind kind = progress_kind_of(text);

	c->job.progress_text = text;
	c->job.progress_index = DRIVE_NONE;
	if (kind == PROGRESS_END && c->own.runs)
		return 0;
	if (kind == PROGRESS_END)
		return usage(&c->err, "the end of a command is progress of whole runs only",
			     "--runs N");
	if (c->own.runs && kind != PROGRESS_STDOUT)
		return usage(&c->err, "whole runs are measured by their time, or by stdout:REGEX",
			     "leave --progress out, or sweep a live process");
	if (kind == PROGRESS_STDOUT && !c->own.runs)
		return usage(&c->err, "stdout: is for --runs N -- COMMAND",
			     "for a live process: file:, cmd:, prom: or a TARGET");
	if (kind == PROGRESS_CPU)
		return usage(&c->err, "the time that a process runs is no count of items",
			     "--adjust rate:cpu:PID takes out what another process does");
	if (kind == PROGRESS_TARGET && c->own.progress)
		return add_target(c, "--progress", c->own.progress, &c->job.progress_index);
	return progress_open(text, false, &c->job.progress, &c->err);
}

/* A published histogram, or a function whose calls are timed in every arm. */
static int open_response(struct sweep_command *c)
{
	struct sweep_job *job = &c->job;

	job->response_text = c->own.response;
	if (!c->own.response)
		return 0;
	if (progress_kind_of(c->own.response) == PROGRESS_PROM)
		return progress_open(c->own.response, true, &job->response, &c->err);
	if (add_target(c, "--response", c->own.response, &job->response_index) < 0)
		return -1;
	job->response_calls = true;
	c->opt.session.targets.spec[job->response_index].timed = true;
	return 0;
}

/* A count of its own, or the hits of a target, which then counts in every arm. */
static int open_covariate(struct sweep_command *c, char *text, struct sweep_covariate *to)
{
	char *source = strncmp(text, "rate:", 5) ? text : text + 5;
	enum progress_kind kind = progress_kind_of(source);

	to->text = text;
	if (kind == PROGRESS_STDOUT || kind == PROGRESS_END)
		return usage(&c->err, "--adjust: the command's own output or end is no source",
			     "file:, cmd:, prom:, cpu:PID or a TARGET");
	if (kind == PROGRESS_TARGET)
		return add_target(c, "--adjust", source, &to->index);
	return progress_open(source, false, &to->source, &c->err);
}

static int open_adjust(struct sweep_command *c)
{
	struct drive_cfg *d = &c->job.cfg;
	int ret = 0;

	d->n_adjust = c->own.n_adjust;
	for (size_t i = 0; i < d->n_adjust && ret == 0; i++) {
		d->adjust_rate[i] = !strncmp(c->own.adjust[i], "rate:", 5);
		ret = open_covariate(c, c->own.adjust[i], &c->job.covariate[i]);
	}
	return ret;
}

static uint64_t choose_seed(const struct sweep_options *own)
{
	uint32_t seed = 1;

	if (own->seed_given)
		return own->seed;
	if (getrandom(&seed, sizeof(seed), 0) < 0)
		seed = (uint32_t)getpid();
	return seed;
}

/* Whether requests arrive at a rate of their own is tested on the progress function, if there is
 * one and no busy thread decides it. */
static void look_for_open_loop(struct sweep_command *c, struct drive_cfg *d)
{
	d->control = c->job.progress_index;
	d->control_auto = d->control != DRIVE_NONE;
	d->control_too = d->control_auto && d->control < d->n_targets;
	if (d->control_auto && !d->control_too)
		d->n_targets++;
}

/* Unasked what costs nothing: /proc. */
static void ask_for_evidence(struct sweep_command *c)
{
	struct sides_about *sides = &c->job.sides;

	for (int i = 0; i < GROUP_COUNT; i++)
		sides->groups_named |= c->own.groups & 1u << i;
	for (int i = 0; i < GROUP_COUNT; i++)
		sides->group[i] = (sides->groups_named ? c->own.groups : EVIDENCE_ALL) & 1u << i;
	sides->asked = c->own.evidence;
	c->job.sides_off = c->own.no_evidence || c->own.runs;
	c->job.cfg.n_counters = c->job.sides_off ? 0 : SIDES_COUNTERS;
}

static int fill_job(struct sweep_command *c)
{
	struct session_config *cfg = &c->opt.session;
	struct drive_cfg *d = &c->job.cfg;

	*d = drive_defaults();
	d->n_targets = cfg->targets.count;
	if (open_progress(c) < 0 || open_response(c) < 0 || open_adjust(c) < 0)
		return -1;
	c->spec = calloc(cfg->targets.count + 1, sizeof(*c->spec));
	if (!c->spec)
		abort();
	for (size_t i = 0; i < cfg->targets.count; i++) {
		c->spec[i] = cfg->targets.spec[i].text;
		cfg->targets.spec[i].delay_ns = 0;
	}
	d->spec = c->spec;
	d->control = DRIVE_NONE;
	if (c->own.self_check && c->job.progress_index == DRIVE_NONE)
		return usage(&c->err,
			     "--self-check delays the progress function: that must be a TARGET",
			     "--progress lib:sym --self-check");
	if (c->own.self_check) {
		d->control = c->job.progress_index;
		d->control_too = d->control < d->n_targets;
		if (!d->control_too)
			d->n_targets++;
	}
	if (!c->own.self_check && !c->own.runs && !c->own.response)
		look_for_open_loop(c, d);
	d->seed = choose_seed(&c->own);
	d->dose_ns = c->own.dose_ns;
	d->n_doses = c->own.n_doses;
	if (cfg->max_slowdown > 0)
		d->max_slowdown = cfg->max_slowdown;
	cfg->max_slowdown = 0; /* doses are chosen within it */
	cfg->sweeping = true;
	if (c->own.threshold > 0)
		d->threshold = c->own.threshold;
	d->runs = c->own.runs != 0;
	d->n_runs = c->own.runs;
	d->time_ns = c->own.time_ns ? c->own.time_ns : d->runs ? 0 : DEFAULT_TIME_NS;
	d->guard_ns = c->own.guard_ns;
	d->response = c->own.response != NULL;
	d->quantile = c->own.quantile;
	d->lane_mode = c->own.lane;
	ask_for_evidence(c);
	return 0;
}

/* Tests the outputs before the target is touched, rather than after an hour. */
static int open_outputs(struct sweep_command *c)
{
	const char *path[] = { c->opt.json, c->own.csv, c->own.html, c->own.plot };

	for (size_t i = 0; i < sizeof(path) / sizeof(*path); i++)
		if (out_check(path[i], &c->err) < 0)
			return -1;
	if (c->own.plot && !out_sweep_can_plot())
		return usage(&c->err, "--plot: gnuplot not found", "install gnuplot");
	if (!c->own.events)
		return 0;
	c->job.events = is_stdout(c->own.events) ? stdout : out_place_stream(c->own.events);
	return c->job.events ? 0 : err_sys(&c->err, SB_EFILE, "cannot write %s", c->own.events);
}

/* The parts of one command line, for the documents. */
static void describe(const struct sweep_command *c, int argc, char **argv,
		     struct out_sweep_about *about)
{
	*about = (struct out_sweep_about){
		.argc = argc,
		.argv = argv,
		.progress = c->job.progress_text,
		.response = c->own.response,
		.quantile = c->own.quantile,
		.n_targets = c->job.cfg.n_targets,
		.sides = c->job.sides_off ? NULL : &c->job.sides,
		.ended = time(NULL),
	};
	for (size_t i = 0; i < c->own.n_adjust; i++)
		about->adjust[i] = c->own.adjust[i];
	sweep_load_between(c->begin, sweep_load_read(), &about->busy, &about->steal);
}

static int write_all(struct sweep_command *c, const struct sweep_result *res,
		     const struct out_sweep_about *about)
{
	int ret = 0;

	if (!is_stdout(c->opt.json))
		out_sweep_table(is_stdout(c->own.events) ? stderr : stdout, res, about);
	if (c->opt.json)
		ret = out_sweep_json(c->opt.json, res, about, &c->err);
	if (ret == 0 && c->own.csv)
		ret = out_sweep_csv(c->own.csv, res, about, &c->err);
	if (ret == 0 && c->own.plot)
		ret = out_sweep_plot(c->own.plot, res, about, &c->err);
	if (ret == 0 && c->own.html)
		ret = out_sweep_html(c->own.html, res, about, &c->err);
	return ret;
}

/* The least number of blocks in whose orders of arms chance makes a response of that size in less
 * than 5 %: (arms!)^blocks of them, and each has its mirror image. */
static unsigned int least_runs(size_t doses)
{
	return doses == 1 ? 6 : doses == 2 ? 3 : 2;
}

static void say_runs(const struct sweep_command *c)
{
	unsigned int least = least_runs(c->own.n_doses);

	if (c->own.runs && c->own.runs < least)
		log_warn("--runs %u with %zu dose%s cannot show that a delay is felt: at least "
			 "--runs %u, or more doses",
			 c->own.runs, c->own.n_doses, c->own.n_doses == 1 ? "" : "s", least);
}

static void show_plan(const struct sweep_job *job, const struct sweep_plan *plan)
{
	if (!job->quiet)
		out_sweep_plan(stderr, plan, job->cfg.spec);
}

static int sweep(struct sweep_command *c, int argc, char **argv)
{
	struct out_sweep_about about;
	struct sweep_result *res;
	struct sb_err why = { 0 }, late = { 0 };
	int status;

	c->job.opt = &c->opt;
	c->job.quiet = c->opt.quiet;
	c->job.planned = show_plan;
	c->job.backend = backend_choose(c->opt.backend, &c->opt.session, &c->err);
	if (!c->job.backend || fill_job(c) < 0 || open_outputs(c) < 0)
		return err_exit_status(c->err.code);
	/* A living process is untraced during measurements, unless the user asks for it; children
	 * of a launched command are followed. A breakpoint needs its tracer. */
	c->opt.session.follow = c->opt.follow || (c->opt.command && !c->opt.session.n_pids) ||
				c->opt.session.mechanism == MECHANISM_INT3;
	say_runs(c);
	c->begin = sweep_load_read();
	res = c->own.runs ? sweep_runs(&c->job, &why) : sweep_live(&c->job, &why);
	if (!res) {
		if (why.code && c->opt.command) /* it may run for long after that */
			command_print_error(&why);
		else
			c->err = why;
		if (sweep_live_end(&c->job, &late) < 0 && !why.code)
			c->err = why = late;
		return err_exit_status(why.code);
	}
	describe(c, argc, argv, &about);
	status = sweep_exit_status(res);
	if (write_all(c, res, &about) < 0)
		status = err_exit_status(c->err.code);
	fflush(NULL);
	if (sweep_live_end(&c->job, &why) < 0 && !c->err.code) {
		c->err = why;
		status = err_exit_status(why.code);
	}
	sweep_result_free(res);
	sides_futex_free(&c->job.sides);
	return status;
}

int sweep_by_words(int argc, char **argv, struct sb_err *err)
{
	struct sweep_command c = { 0 };
	char **whole = malloc((size_t)(argc + 1) * sizeof(*whole));
	int status, whole_argc = argc;

	if (!whole)
		abort();
	memcpy(whole, argv, (size_t)(argc + 1) * sizeof(*whole));
	if (sweep_options_take(&argc, argv, &c.own, &c.err) < 0 ||
	    options_parse(argc, argv, VERB_SWEEP, &c.opt, &c.err) < 0) {
		status = err_exit_status(c.err.code);
	} else if (c.opt.help) {
		command_print_usage(stdout, &cmd_sweep);
		status = 0;
	} else if (check_words(&c) < 0 || check_response(&c) < 0 || check_command(&c) < 0) {
		status = err_exit_status(c.err.code);
	} else {
		status = sweep(&c, whole_argc, whole);
	}
	*err = c.err;
	progress_close(c.job.progress);
	progress_close(c.job.response);
	for (size_t i = 0; i < SWEEP_ADJUST; i++)
		progress_close(c.job.covariate[i].source);
	if (c.job.events && c.job.events != stdout)
		fclose(c.job.events);
	sweep_options_free(&c.own);
	options_free(&c.opt);
	free(c.job.can_time);
	free(c.spec);
	free(whole);
	return status;
}

static int sweep_main(const struct command *cmd, int argc, char **argv)
{
	struct sb_err err = { 0 };
	int status = sweep_by_words(argc, argv, &err);

	(void)cmd;
	if (err.code)
		command_print_error(&err);
	return status;
}

const struct command cmd_sweep = {
	.name = "sweep",
	.summary = "measure how much of a function's delay reaches the end result",
	.usage = "sweep TARGET... --progress SOURCE [OPTIONS] -p PID[,PID...]\n"
		 "sweep TARGET... --progress SOURCE [OPTIONS] -- COMMAND [ARG...]\n"
		 "sweep TARGET... --runs N [OPTIONS] -- COMMAND [ARG...]",
	.run = sweep_main,
	.help = sweep_help,
};
