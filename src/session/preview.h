/* SPDX-License-Identifier: MIT */
#ifndef SB_PREVIEW_H
#define SB_PREVIEW_H

#include <sys/types.h>
#include "src/base/err.h"

/*
 * A command brought to its entry point and no further, for `list -- COMMAND`: its libraries are
 * mapped and relocated, main has not begun. It is stopped, and ended by preview_end().
 * SIGCHLD is blocked from then on.
 */
int preview_start(char *const *command, pid_t *pid, struct sb_err *err);
void preview_end(pid_t pid);

#endif
