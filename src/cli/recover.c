/* SPDX-License-Identifier: MIT */
/* `sbinject recover`: restores processes that a killed sbinject left hooked. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "command.h"
#include "options.h"
#include "inject/space.h"
#include "inject/tree-task.h"
#include "src/session/inject/recover.h"
#include "src/session/processes.h"

enum { END_TRIES = 100 };

static void recover_help(FILE *to)
{
	fputs("\n", to);
	options_help(to, VERB_RECOVER);
}

/* A tracer that was killed just now may need a while to end, on a busy machine. */
static bool lives_on(pid_t tracer)
{
	for (int i = 0; i < END_TRIES && task_is_tracer(tracer); i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	return task_is_tracer(tracer);
}

/* A living session detaches by itself. */
static int check_pid(pid_t pid, struct sb_err *err)
{
	pid_t tracer;

	if (kill(pid, 0) < 0 && !space_is_hooked(pid, &tracer)) {
		err_set(err, SB_ENOPROC, "no such process: %d", pid);
		return -SB_ENOPROC;
	}
	if (!space_is_hooked(pid, &tracer) || !lives_on(tracer))
		return 0;
	err_set(err, SB_EHOOKED, "process %d is hooked by an sbinject that lives (pid %d)", pid,
		tracer);
	err_hint(err, "end it with kill %d: it restores the process itself", tracer);
	return -SB_EHOOKED;
}

/* Left by a dead session, dormant or not. *living: a tracer that is known to live. */
static bool left_hooked(pid_t pid, pid_t *living)
{
	pid_t tracer;
	bool agent;

	if (!space_is_hooked(pid, &tracer))
		return space_has_dormant(pid, &agent);
	if (tracer == *living)
		return false;
	if (!lives_on(tracer))
		return true;
	*living = tracer; /* waited for once */
	return false;
}

/*
 * The named processes and, without --no-children, their descendants: a tree is hooked as a whole. A
 * descendant that a living session has hooked belongs to that session. The first *named of the list
 * are the named ones.
 */
static size_t list_pids(const struct options *opt, pid_t **pids, size_t *named, struct sb_err *err)
{
	const struct session_config *cfg = &opt->session;
	struct sb_err why = { 0 };
	size_t all, n = 0;
	pid_t living = -1;

	*named = 0;
	processes_descendants(cfg, pids, &all);
	for (size_t i = 0; i < all; i++) {
		pid_t pid = (*pids)[i];
		bool listed = processes_listed(cfg->pids, cfg->n_pids, pid);

		/* A process of the list may have ended by now: that does not keep another one
		 * hooked. */
		if (listed ? check_pid(pid, err->code ? &why : err) < 0 :
			     !left_hooked(pid, &living))
			continue;
		(*pids)[n++] = pid;
		*named += listed;
	}
	return n;
}

/* *err: the first failure; the others are tried all the same. */
static int recover(struct options *opt, struct sb_err *err)
{
	struct sb_err why = { 0 };
	pid_t *pids;
	sigset_t chld;
	size_t restored = 0, n, named;

	/* The tree receives its stops by this signal. */
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	n = list_pids(opt, &pids, &named, err);
	recover_processes(pids, n, named, &restored, err->code ? &why : err);
	free(pids);
	if (restored)
		printf("restored %zu process%s\n", restored, restored == 1 ? "" : "es");
	else if (!err->code)
		printf("nothing to restore\n");
	return err->code ? err_exit_status(err->code) : 0;
}

static int recover_main(const struct command *cmd, int argc, char **argv)
{
	struct sb_err err = { 0 };
	struct options opt;
	int status;

	if (options_parse(argc, argv, VERB_RECOVER, &opt, &err) < 0) {
		status = err_exit_status(err.code);
	} else if (opt.help) {
		command_print_usage(stdout, cmd);
		status = 0;
	} else if (!opt.session.n_pids) {
		err_set(&err, SB_EUSAGE, "no process is given");
		err_hint(&err, "sbinject recover -p PID");
		status = err_exit_status(err.code);
	} else {
		status = recover(&opt, &err);
	}
	if (err.code)
		command_print_error(&err);
	options_free(&opt);
	return status;
}

const struct command cmd_recover = {
	.name = "recover",
	.summary = "restore a process that a killed sbinject left hooked",
	.usage = "recover -p PID[,PID...] [--no-children]",
	.run = recover_main,
	.help = recover_help,
};
