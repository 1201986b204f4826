/* SPDX-License-Identifier: MIT */
/* `sbinject explain`: where does the time of an item go? */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "command.h"
#include "evidence/evidence.h"
#include "options.h"
#include "src/base/must.h"
#include "src/live/explain.h"
#include "src/out/explain.h"
#include "src/out/out.h"
#include "src/run/backends.h"

#define DEFAULT_TIME_NS 10000000000ull
#define LEAST_TIME_NS	100000000ull

static void explain_help(FILE *to)
{
	fputs("\n", to);
	options_help(to, VERB_EXPLAIN);
}

static int usage(struct sb_err *err, const char *what, const char *hint)
{
	err_set(err, SB_EUSAGE, "%s", what);
	err_hint(err, "%s", hint);
	return -SB_EUSAGE;
}

static int check_words(const struct options *opt, struct sb_err *err)
{
	if (opt->command || opt->session.targets.count)
		return usage(err, "explain watches running processes, and slows no function",
			     "sbinject explain -p PID --progress SOURCE");
	if (!opt->session.n_pids)
		return usage(err, "no process is given", "sbinject explain -p PID");
	if (opt->time_ns && opt->time_ns < LEAST_TIME_NS)
		return usage(err, "--time: too short to measure anything", "--time 10s");
	return out_check(opt->json, err);
}

static int open_progress(struct sweep_job *job, char *text, struct sb_err *err)
{
	char *words[2] = { text, (char[]){ "0" } };

	job->progress_index = DRIVE_NONE;
	job->progress_text = text;
	if (!text)
		return 0;
	switch (progress_kind_of(text)) {
	case PROGRESS_TARGET:
		job->progress_index = 0;
		return spec_parse_words(words, 2, &job->opt->session.targets, err);
	case PROGRESS_CPU:
		return usage(err, "the time that a process runs is no count of items",
			     "file:, cmd:, prom: or a TARGET");
	case PROGRESS_END:
	case PROGRESS_STDOUT:
		return usage(err, "this source is for a command that sbinject starts itself",
			     "file:, cmd:, prom: or a TARGET");
	default:
		return progress_open(text, false, &job->progress, err);
	}
}

static int check_alive(const struct session_config *cfg, struct sb_err *err)
{
	for (size_t i = 0; i < cfg->n_pids; i++)
		if (kill(cfg->pids[i], 0) < 0 && errno == ESRCH)
			return err_set(err, SB_ENOPROC, "there is no process %d", cfg->pids[i]);
	return 0;
}

static int explain(struct sweep_job *job, int argc, char **argv, struct sb_err *err)
{
	struct options *opt = job->opt;
	struct explain_result *res;
	int ret = 0;

	if (check_words(opt, err) < 0 || check_alive(&opt->session, err) < 0 ||
	    open_progress(job, opt->progress, err) < 0)
		return -1;
	job->backend = backend_choose(opt->backend, &opt->session, err);
	if (!job->backend)
		return -1;
	res = explain_live(job, opt->time_ns ? opt->time_ns : DEFAULT_TIME_NS, err);
	if (!res)
		return -1;
	if (!opt->quiet && (!opt->json || strcmp(opt->json, "-") != 0))
		out_explain_table(stdout, res);
	if (opt->json)
		ret = out_explain_json(opt->json, res, argc, argv, err);
	explain_free(res);
	return ret;
}

/* It has all that costs nothing in any case, and the session beside it none of its own. */
static void ask_for_evidence(struct session_config *cfg)
{
	if (cfg->evidence)
		cfg->evidence_groups |= EVIDENCE_ALL;
	cfg->evidence = false;
}

static int explain_main(const struct command *cmd, int argc, char **argv)
{
	char **whole = must_calloc((size_t)argc + 1, sizeof(*whole));
	struct options opt = { 0 };
	struct sweep_job job = { .opt = &opt };
	struct sb_err err = { 0 };
	int status = 0;

	memcpy(whole, argv, (size_t)argc * sizeof(*whole));
	if (options_parse(argc, argv, VERB_EXPLAIN, &opt, &err) == 0 && opt.help)
		command_print_usage(stdout, cmd);
	ask_for_evidence(&opt.session);
	if (!err.code && !opt.help)
		explain(&job, argc, whole, &err);
	if (err.code) {
		command_print_error(&err);
		status = err_exit_status(err.code);
	}
	progress_close(job.progress);
	options_free(&opt);
	free(whole);
	return status;
}

const struct command cmd_explain = {
	.name = "explain",
	.summary = "show where the time of an item goes: processor, run queue, waiting, for what",
	.usage = "explain [--progress SOURCE] [--time TIME] [OPTIONS] -p PID[,PID...]",
	.run = explain_main,
	.help = explain_help,
};
