/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_H
#define SB_OUT_H

#include <stdio.h>
#include "src/result/result.h"

/*
 * Writers: one file a format (out/table.c, out/json.c, out/list.c, out/status.c). They read the
 * plain result and print; they compute nothing but layout. Widths follow the contents; a
 * terminal narrower than the table gets it unclipped. No colour unless the stream is a terminal
 * and NO_COLOR is unset.
 */

/*
 * The summary of a run, as in the man page:
 *
 * target            mechanism  sites procs    hits  hits/s   asked   given   injected
 * libc.so.6:getpid  jump           1     3  120034   40011  5.00us  5.00us    600.2ms
 *
 * Below it, where there is something to say: targets that were never called, pending, not
 * found, refused sites with their reasons (at most 10 each, then "and N more"), overrun,
 * lease lapses, the process table when there is more than one process, the stop times.
 * What is unknown is "-": the hits of a target that was never hooked, a delay given that no hit
 * was given. Nine processes or more are added up by name, 20 names at most, unless by_process asks
 * for each. Warnings are not: they were told when they arose.
 */
void out_table(FILE *to, const struct result *res, bool by_process);

/*
 * The document with a newline: indented, and in place of the file in one step; or one line,
 * appended by one write (--jsonl). "-" is stdout. Returns 0 or -SB_EFILE.
 */
/* Can a result be written there later? path may be NULL or "-". Found before a run begins. */
int out_check(const char *path, struct sb_err *err);

int out_document(const char *path, const char *json, struct sb_err *err);
int out_json(const char *path, const struct result *res, bool lines, struct sb_err *err);

/*
 * `sbinject list`: target, module, symbol, address, size, mechanism or the reason why not, and
 * whose they are (at most 6 pids a row) where there are several processes.
 */
void out_list(FILE *to, const struct result *res);

/*
 * The line of --interval: time, hits in all, rate and given since the last one, for all targets.
 * On a terminal it is rewritten in place (no newline: the caller ends the last one), clipped to
 * the terminal's width; elsewhere a plain line.
 */
struct out_status {
	double t_s; /* since the hooks were armed */
	double interval_s;
	size_t n;
	struct out_status_target {
		const char *spec;
		struct result_counts total, delta;
		double given_ns; /* mean of the interval, < 0: none */
	} * target;
};
void out_status(FILE *to, const struct out_status *st, bool terminal);

/*
 * Figures for tables. A time has three significant digits below 1 ms and four from there on
 * (250ns, 5.00us, 12.3us, 600.2ms, 1.500s, whole seconds from 10000s), 0 is "0"; a rate has three,
 * and all those before the point (0.50, 12.3, 40011). What is not finite is "-". Return buf.
 */
char *out_time(double ns, char *buf, size_t size);
char *out_rate(double per_s, char *buf, size_t size);

#endif
