/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_H
#define SB_OUT_H

#include <stdio.h>
#include "src/result/result.h"

/*
 * Writers: one file a format (out/table.c, out/json.c, out/list.c, out/status.c). They read the
 * plain result and print it; they compute only layout. Widths follow the contents; a terminal
 * narrower than the table gets the table unclipped. No colour unless the stream is a terminal and
 * NO_COLOR is unset.
 */

/*
 * The summary of a run, as in the man page:
 *
 * target            mechanism  sites procs    hits  hits/s   asked   given   injected
 * libc.so.6:getpid  jump           1     3  120034   40011  5.00us  5.00us    600.2ms
 *
 * A second table has the targets whose calls were timed (time=yes):
 *
 * target  calls   mean    p50    p90    p99     max   total     own  missed
 * :parse  20000 29.5us 20.3us 20.5us 25.8us 5.436ms 590.1ms 401.0ms       0
 *
 * Below them, where they apply: missed calls; functions that are not timed, by reason; targets that
 * were never called, pending, not found; refused sites with their reasons (at most 10 each, then
 * "and N more"); overrun; lapses of the lease; the process table if there is more than one process;
 * the stop times. An unknown figure is "-": the hits of a target that was never hooked, the given
 * delay where no hit was delayed. Nine processes or more are added up by name, 20 names at most,
 * unless OUT_BY_PROCESS is set. Warnings are not printed here: they were printed when they arose.
 */
enum out_how {
	OUT_BY_PROCESS = 1,
	OUT_TIMES_FIRST = 2, /* the second table first, those targets first that took the most */
};
void out_table(FILE *to, const struct result *res, unsigned int how);

/* out_check(): can a result be written there later? path may be NULL or "-". Call it before a run
 * begins. out_document(), out_json(): write the document with a newline, either indented, replacing
 * the file in one step, or as one line that one write appends (--jsonl). "-" is stdout. All return
 * 0 or -SB_EFILE. */
int out_check(const char *path, struct sb_err *err);
/* Which of these are "-"? At most one may be, and none where a command has the standard output.
 * 0 or -SB_EUSAGE. */
int out_check_standard(bool command, const char *json, const char *jsonl, const char *events,
		       struct sb_err *err);

int out_document(const char *path, const char *json, struct sb_err *err);
int out_json(const char *path, const struct result *res, bool lines, struct sb_err *err);

/*
 * `sbinject list`: target, module, symbol, address, size, mechanism or the reason for a refusal,
 * and the processes concerned (at most 6 pids a row) if there are several.
 */
void out_list(FILE *to, const struct result *res);

/*
 * The line of --interval: time, total hits, rate and given delay since the previous line, for all
 * targets. On a terminal it is rewritten in place (no newline: the caller ends the last one) and
 * clipped to the terminal's width; elsewhere it is a plain line.
 */
struct out_status {
	double t_s; /* since the hooks were armed */
	double interval_s;
	size_t n;
	struct out_status_target {
		const char *spec;
		struct result_counts total, delta;
		double given_ns; /* mean of the interval, < 0: none */
		bool timed;	 /* how long its calls take is measured */
		double took_ns;	 /* mean of the calls that returned in the interval, < 0: none */
		pid_t pid;	 /* pid=; 0: not given */
	} * target;
};
void out_status(FILE *to, const struct out_status *st, bool terminal);

/*
 * Figures for tables. A time below 1 ms has three significant digits, a longer one four (250ns,
 * 5.00us, 12.3us, 600.2ms, 1.500s, whole seconds from 10000s); 0 is "0". A rate has three, and
 * always all digits before the point (0.50, 12.3, 40011). A value that is not finite is "-". Both
 * return buf.
 */
char *out_time(double ns, char *buf, size_t size);
char *out_rate(double per_s, char *buf, size_t size);

#endif
