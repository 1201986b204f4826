/* SPDX-License-Identifier: MIT */
/* The output of all verbs: errors, usage, the list of verbs. */
#include <stdlib.h>
#include <string.h>
#include "command.h"
#include "src/base/text.h"

static const struct command *const *verbs;
static size_t n_verbs;

void command_table(const struct command *const *table, size_t n)
{
	verbs = table;
	n_verbs = n;
}

void command_print_error(const struct sb_err *err)
{
	char *what = text_show(err->what), *remedy = text_show(err_remedy(err));

	fprintf(stderr, "sbinject: %s\n", what);
	if (remedy[0])
		fprintf(stderr, "sbinject: %s\n", remedy);
	free(what);
	free(remedy);
}

void command_print_verbs(FILE *to)
{
	for (size_t i = 1; i < n_verbs; i++)
		fprintf(to, "  sbinject %-10s %s\n", verbs[i]->name, verbs[i]->summary);
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
