/* SPDX-License-Identifier: MIT */
#ifndef SB_PROGRESS_H
#define SB_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "src/base/err.h"

/*
 * Where a program shows its progress: a number that only grows, read again and again.
 *
 *	prom:URL#METRIC{label="value",...}	a metric in Prometheus's text format, over HTTP; the
 *						name may hold ':'. Without labels, or with some,
 *						all matching series are added up. The name of a
 *						histogram or summary stands for its _count (and
 *						_sum, for a response)
 *	stdout:REGEX				the launched command's standard output: a matching
 *						line is one item; with a group, the group's number
 *						is the count so far
 *	file:PATH				the last number in a file
 *	cmd:COMMAND				the last number that a shell command prints
 *	cpu:PID					for how many seconds a process has run; once it has
 *ended, what it had at the last read
 *
 * Anything else is a TARGET; the session itself counts its hits (exact, and at no cost). "end" is
 * no source either: the end of the launched command is the one item.
 *
 * A source may block for as long as its timeout (prom, cmd: a second); the target is not stopped
 * meanwhile. Texts from outside are bounded and parsed as data.
 */
enum progress_kind {
	PROGRESS_TARGET,
	PROGRESS_PROM,
	PROGRESS_STDOUT,
	PROGRESS_FILE,
	PROGRESS_CMD,
	PROGRESS_CPU,
	PROGRESS_END,
};

struct progress;

/* By the prefix; a text without one of these prefixes is a TARGET. */
enum progress_kind progress_kind_of(const char *text);

/* PROGRESS_TARGET and PROGRESS_END are the caller's own: SB_EUSAGE. response: also read the sum and
 * count of a histogram. Reads nothing yet. */
int progress_open(const char *text, bool response, struct progress **out, struct sb_err *err);
void progress_close(struct progress *p);

#define PROGRESS_BUCKETS 192
struct progress_value {
	double count; /* items so far */
	double sum;   /* total of a response, in the source's unit (seconds); else 0 */
	/* Of a response: how many were at most so long, rising; 0: it has no buckets, or more. */
	struct progress_bucket {
		double le, count;
	} bucket[PROGRESS_BUCKETS];
	size_t n_buckets;
};

/* SB_EFILE with the reason: unreachable, an error status, no such metric, no number in it. */
int progress_read(struct progress *p, struct progress_value *value, struct sb_err *err);

/* The time to wait between two reads that look for a change, ns: short for cheap sources. */
uint64_t progress_poll_ns(const struct progress *p);

/* PROGRESS_STDOUT: passes on bytes of the command's output. */
void progress_feed(struct progress *p, const char *bytes, size_t len);

const char *progress_text(const struct progress *p);

/* Adds up the series of a metric with these labels ("" or `a="b",c="d"`) in Prometheus's text
 * format. False: there is none. No side effects; for prom sources and tests. */
bool progress_prom_sum(const char *body, const char *metric, const char *labels, double *sum);
/* How many a metric counts: the series of METRIC_count if there is a METRIC_sum (a histogram's, a
 * summary's), else its own, or those of METRIC_count, or of METRIC_total (a counter's in
 * OpenMetrics). */
bool progress_prom_count(const char *body, const char *metric, const char *labels, double *count);
/* The sum of each bound of a histogram's buckets (METRIC_bucket), into *value. */
void progress_prom_buckets(const char *body, const char *metric, const char *labels,
			   struct progress_value *value);

#endif
