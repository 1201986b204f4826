/* SPDX-License-Identifier: MIT */
#include <locale.h>
#include <string.h>
#include "command.h"
#include "src/base/caps.h"
#include "src/base/crowd.h"
#include "src/base/log.h"
#include "src/control/runtime.h"

static const struct command *const commands[] = { &cmd_run,	&cmd_trace,   &cmd_list,
						  &cmd_sweep,	&cmd_explain, &cmd_find,
						  &cmd_compare, &cmd_report,  &cmd_recover,
						  &cmd_doctor };

enum { COMMANDS = sizeof(commands) / sizeof(*commands) };

static void log_to_stderr(enum log_level level, const char *line, void *ctx)
{
	(void)ctx;
	fprintf(stderr, "sbinject: %s%s\n", level == LOG_WARN ? "warning: " : "", line);
}

int main(int argc, char **argv)
{
	struct sb_err err = { 0 };

	runtime_hold_streams();
	crowd_hurry();
	setlocale(LC_CTYPE, "");
	if (caps_spare(&err) < 0) {
		command_print_error(&err);
		return 1;
	}
	log_set_sink(log_to_stderr, NULL);
	log_set_level(LOG_NOTE);
	command_table(commands, COMMANDS);
	if (argc == 2 && !strcmp(argv[1], "help"))
		argv[1] = (char *)"--help";
	for (int i = 1; i < COMMANDS; i++)
		if (argc > 1 && !strcmp(argv[1], commands[i]->name))
			return commands[i]->run(commands[i], argc - 1, argv + 1);
	return cmd_run.run(&cmd_run, argc, argv);
}
