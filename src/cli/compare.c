/* SPDX-License-Identifier: MIT */
/* `sbinject compare A.json B.json`: the changes between two sweeps. */
#include <string.h>
#include "command.h"
#include "src/out/sweep.h"

static void compare_help(FILE *to)
{
	fputs("\nA and B are documents of sbinject sweep --json, before and after a change. Says "
	      "which\n"
	      "kappas and slacks differ, with the interval of the difference.\n"
	      "Exit status: 0 nothing changed, 1 something did, 2 usage or a file that cannot be "
	      "read.\n",
	      to);
}

static int compare(const char *path_a, const char *path_b, struct sb_err *err)
{
	struct sweep_result *a = NULL, *b = NULL;
	struct compare cmp;
	int status = 2;

	if (out_sweep_read(path_a, &a, err) == 0 && out_sweep_read(path_b, &b, err) == 0) {
		compare_results(a, b, &cmp);
		out_compare_table(stdout, &cmp);
		status = cmp.changed ? 1 : 0;
		compare_free(&cmp);
	}
	if (a)
		sweep_result_free(a);
	if (b)
		sweep_result_free(b);
	return status;
}

static int compare_main(const struct command *cmd, int argc, char **argv)
{
	struct sb_err err = { 0 };
	int status = 2;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		command_print_usage(stdout, cmd);
		return 0;
	}
	if (argc == 3 && argv[1][0] != '-') {
		status = compare(argv[1], argv[2], &err);
	} else {
		err_set(&err, SB_EUSAGE, "compare needs two documents of a sweep");
		err_hint(&err, "sbinject compare before.json after.json");
	}
	if (err.code)
		command_print_error(&err);
	return status;
}

const struct command cmd_compare = {
	.name = "compare",
	.summary = "what changed between two sweeps",
	.usage = "compare A.json B.json",
	.run = compare_main,
	.help = compare_help,
};
