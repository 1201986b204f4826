/* SPDX-License-Identifier: MIT */
#ifndef SB_RUN_H
#define SB_RUN_H

#include "command.h"
#include "options.h"

/* For a verb that is a run with another meaning of its words. argv[0] of VERB_RUN is the program.
 */
int run_verb(const struct command *cmd, int argc, char **argv, enum option_verb verb);

void run_help_keys(FILE *to); /* of --help: the keys of a target */

#endif
