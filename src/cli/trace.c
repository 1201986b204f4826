/* SPDX-License-Identifier: MIT */
/* `sbinject trace`: a run in which the calls of every target are timed, and none is delayed. */
#include "command.h"
#include "options.h"
#include "run.h"

static void trace_help(FILE *to)
{
	fputs("\n  As without trace, with time=yes for every target, and the delay 0 for one "
	      "without "
	      "a delay.\n  Below the table are the functions of each pattern, by own time. KEY is "
	      "one "
	      "of\n\n",
	      to);
	run_help_keys(to);
	options_help(to, VERB_TRACE);
}

static int trace_main(const struct command *cmd, int argc, char **argv)
{
	return run_verb(cmd, argc, argv, VERB_TRACE);
}

const struct command cmd_trace = {
	.name = "trace",
	.summary = "show how long the calls of functions take",
	.usage = "trace [OPTIONS] TARGET [DELAY] [KEY=VALUE]... -p PID[,PID...]\n"
		 "trace [OPTIONS] TARGET [DELAY] [KEY=VALUE]... -- COMMAND [ARG...]",
	.run = trace_main,
	.help = trace_help,
};
