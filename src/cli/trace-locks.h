/* SPDX-License-Identifier: MIT */
#ifndef SB_CLI_TRACE_LOCKS_H
#define SB_CLI_TRACE_LOCKS_H

#include <stdio.h>
#include "src/result/result.h"
#include "src/run/options.h"

/*
 * The orders of locks in what a run has just recorded, where it recorded the preset `locks`: what
 * `sbinject report` of the file has, without the second command. The file is read once more for it.
 */
struct trace_locks;

/* NULL: nothing of locks was recorded. Puts them into the result, too. */
struct trace_locks *trace_locks_read(const struct options *opt, struct result *res);
void trace_locks_print(FILE *to, const struct trace_locks *locks); /* NULL is harmless, as below */
void trace_locks_free(struct trace_locks *locks);

#endif
