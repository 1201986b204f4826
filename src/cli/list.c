/* SPDX-License-Identifier: MIT */
/* `sbinject list`: what a target matches, where, and by which mechanism. It changes nothing. */
#include <stdlib.h>
#include <string.h>
#include "command.h"
#include "options.h"
#include "src/base/text.h"
#include "src/out/out.h"
#include "src/run/backends.h"
#include "src/run/beside.h"
#include "src/session/launch.h"
#include "src/session/preview.h"

static void list_help(FILE *to)
{
	fputs("\n", to);
	options_help(to, VERB_LIST);
}

/* Those are of no process. */
static bool all_in_kernel(const struct spec_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (!spec_in_kernel(&list->spec[i]))
			return false;
	return list->count;
}

static int check(const struct options *opt, struct sb_err *err)
{
	bool whom = opt->session.n_pids || opt->command || all_in_kernel(&opt->session.targets);

	if (whom && opt->session.targets.count)
		return opt->command ? launch_check(opt->command, err) : 0;
	err_set(err, SB_EUSAGE,
		whom ? "no target is given" : "neither a process nor a command is given");
	err_hint(err, "sbinject list -p PID 'libc.so.6:str*'");
	return -SB_EUSAGE;
}

static bool nothing_found(const struct result *res)
{
	for (size_t i = 0; i < res->n_targets; i++)
		if (res->target[i].n_sites || res->target[i].n_refused)
			return false;
	return true;
}

static int show(const struct options *opt, struct result *res, struct sb_err *err)
{
	res->version = text_dup(SB_VERSION);
	if (!opt->json || strcmp(opt->json, "-"))
		out_list(stdout, res);
	if (opt->json && out_json(opt->json, res, false, err) < 0)
		return err_exit_status(err->code);
	return nothing_found(res) ? err_exit_status(SB_ENOSYMBOL) : 0;
}

static struct result *list_of(const struct backend *backend, const struct session_config *cfg,
			      struct sb_err *err)
{
	struct session_core *s = session_open(backend, cfg, err);
	struct result *res = s ? backend->list(s, err) : NULL;

	if (s)
		session_free(s);
	return res;
}

static int list(struct options *opt, struct sb_err *err)
{
	const struct backend *backend;
	struct session_config own, kernel;
	struct result *res, *more = NULL;
	bool beside;
	int status;

	opt->session.look_only = true;
	backend = backend_choose(opt->backend, &opt->session, err);
	if (!backend)
		return err_exit_status(err->code);
	beside = beside_split(backend, &opt->session, &own, &kernel);
	res = list_of(backend, &own, err);
	if (beside && res && !err->code && backend_uprobe.probe(err) == 0)
		more = list_of(&backend_uprobe, &kernel, err);
	if (more)
		beside_merge(res, res->n_targets, more);
	status = err->code || !res ? err_exit_status(err->code) : show(opt, res, err);
	result_free(res);
	beside_free(&own, &kernel);
	return status;
}

/* Brings the command to its entry point, examines it and ends it. */
static int list_command(struct options *opt, struct sb_err *err)
{
	struct session_config *cfg = &opt->session;
	pid_t pid;
	int status;

	if (preview_start(opt->command, &pid, err) < 0)
		return err_exit_status(err->code);
	cfg->pids = realloc(cfg->pids, sizeof(*cfg->pids));
	if (!cfg->pids)
		abort();
	cfg->pids[0] = pid;
	cfg->n_pids = 1;
	cfg->preview = true;
	status = list(opt, err);
	preview_end(pid);
	return status;
}

static int list_main(const struct command *cmd, int argc, char **argv)
{
	struct sb_err err = { 0 };
	struct options opt;
	int status;

	if (options_parse(argc, argv, VERB_LIST, &opt, &err) < 0) {
		status = err_exit_status(err.code);
	} else if (opt.help) {
		command_print_usage(stdout, cmd);
		status = 0;
	} else if (check(&opt, &err) < 0) {
		status = err_exit_status(err.code);
	} else {
		status = opt.command && !opt.session.n_pids ? list_command(&opt, &err) :
							      list(&opt, &err);
	}
	if (err.code)
		command_print_error(&err);
	options_free(&opt);
	return status;
}

const struct command cmd_list = {
	.name = "list",
	.summary = "show what a target matches, where, and by which mechanism",
	.usage = "list [OPTIONS] TARGET... -p PID[,PID...]\n"
		 "list [OPTIONS] kernel:NAME|tracepoint:SUBSYSTEM:NAME|--kernel ...\n"
		 "list [OPTIONS] TARGET... -- COMMAND [ARG...]",
	.run = list_main,
	.help = list_help,
};
