/* SPDX-License-Identifier: MIT */
#include <locale.h>
#include <string.h>
#include "command.h"
#include "src/base/log.h"
#include "src/control/runtime.h"

static const struct command *const commands[] = { &cmd_run,	&cmd_list,    &cmd_sweep,
						  &cmd_compare, &cmd_recover, &cmd_doctor };

enum { COMMANDS = sizeof(commands) / sizeof(*commands) };

void command_print_error(const struct sb_err *err)
{
	const char *remedy = err_remedy(err);

	fprintf(stderr, "sbinject: %s\n", err->what);
	if (remedy[0])
		fprintf(stderr, "sbinject: %s\n", remedy);
}

void command_print_verbs(FILE *to)
{
	for (int i = 1; i < COMMANDS; i++)
		fprintf(to, "  sbinject %-10s %s\n", commands[i]->name, commands[i]->summary);
}

void command_print_usage(FILE *to, const struct command *cmd)
{
	const char *line = cmd->usage, *end;

	for (; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		fprintf(to, "%s sbinject %.*s\n", line == cmd->usage ? "usage:" : "      ",
			(int)(end - line), line);
	}
	if (cmd->help)
		cmd->help(to);
}

static void log_to_stderr(enum log_level level, const char *line, void *ctx)
{
	(void)ctx;
	fprintf(stderr, "sbinject: %s%s\n", level == LOG_WARN ? "warning: " : "", line);
}

int main(int argc, char **argv)
{
	struct sb_err err = { 0 };

	runtime_hold_streams();
	setlocale(LC_CTYPE, "");
	if (runtime_refuse_gained(&err) < 0) {
		command_print_error(&err);
		return 1;
	}
	log_set_sink(log_to_stderr, NULL);
	log_set_level(LOG_NOTE);
	if (argc == 2 && !strcmp(argv[1], "help"))
		argv[1] = (char *)"--help";
	for (int i = 1; i < COMMANDS; i++)
		if (argc > 1 && !strcmp(argv[1], commands[i]->name))
			return commands[i]->run(commands[i], argc - 1, argv + 1);
	return cmd_run.run(&cmd_run, argc, argv);
}
