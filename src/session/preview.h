/* SPDX-License-Identifier: MIT */
#ifndef SB_PREVIEW_H
#define SB_PREVIEW_H

#include <sys/types.h>
#include "src/base/err.h"

/*
 * Brings a command to its entry point and no further, for `list -- COMMAND`: its libraries are
 * mapped and relocated, main has not begun. The command is stopped on return; preview_end() ends
 * it. SIGCHLD is blocked from then on.
 */
int preview_start(char *const *command, pid_t *pid, struct sb_err *err);
void preview_end(pid_t pid);

#endif
