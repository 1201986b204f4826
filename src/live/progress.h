/* SPDX-License-Identifier: MIT */
#ifndef SB_PROGRESS_H
#define SB_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "src/base/err.h"

/*
 * Where a program says how far it is: a number that only grows, read again and again.
 *
 *	prom:URL#METRIC{label="value",...}	a metric in Prometheus's text format, over HTTP; the
 *						name may hold ':'. Without labels, or with some, all
 *						series that fit are added up. A histogram's or
 *summary's own name stands for its _count (and _sum, for a response)
 *	stdout:REGEX				the launched command's standard output: a line that
 *						matches is one item; with a group, the group's
 *number is the count so far file:PATH				the last number in a file
 *cmd:COMMAND the last number that a shell command prints
 *
 * Anything else is a TARGET, whose hits are counted by the session itself (exact, and free). So is
 * what is "end": the launched command's end is the one item.
 *
 * A source may block for as long as its timeout (prom, cmd: a second); the target is not stopped
 *for it. Texts from outside are bounded and parsed as data.
 */
enum progress_kind {
	PROGRESS_TARGET,
	PROGRESS_PROM,
	PROGRESS_STDOUT,
	PROGRESS_FILE,
	PROGRESS_CMD,
	PROGRESS_END,
};

struct progress;

/* By its prefix; a TARGET is everything that has none of these. */
enum progress_kind progress_kind_of(const char *text);

/* PROGRESS_TARGET and PROGRESS_END are the caller's own: SB_EUSAGE. response: sum and count of a
 * histogram are wanted. Nothing is read yet. */
int progress_open(const char *text, bool response, struct progress **out, struct sb_err *err);
void progress_close(struct progress *p);

struct progress_value {
	double count; /* items so far */
	double sum;   /* a response's total, in the source's unit (seconds); 0 otherwise */
};

/* SB_EFILE with the reason: unreachable, an error status, no such metric, no number in it. */
int progress_read(struct progress *p, struct progress_value *value, struct sb_err *err);

/* How long to wait between two reads that look for a change, ns: cheap sources often. */
uint64_t progress_poll_ns(const struct progress *p);

/* PROGRESS_STDOUT: bytes of the command's output, as they come. */
void progress_feed(struct progress *p, const char *bytes, size_t len);

const char *progress_text(const struct progress *p);

/* Of Prometheus's text format: adds up the series of a metric with these labels ("" or
 * `a="b",c="d"`). False where there is none. Pure; for prom sources and tests. */
bool progress_prom_sum(const char *body, const char *metric, const char *labels, double *sum);

#endif
