/* SPDX-License-Identifier: MIT */
#ifndef SB_COUNTERS_H
#define SB_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include "src/base/err.h"

/*
 * The counters of a page in Prometheus's text format: those metrics whose type is counter,
 * histogram or summary (of these the number of events), each as the sum of its series. Left out are
 * those that count no work: seconds, bytes, and what every process shows of itself (process_,
 * python_, go_).
 */
struct counter {
	char *name;   /* as behind the '#' of prom:URL#METRIC */
	bool events;  /* of a histogram or summary */
	double value; /* at the last read; NAN: it was not there */
};

struct counters {
	char *url;
	struct fetch *fetch;
	struct counter *counter;
	size_t n;
};

enum { COUNTERS_MOST = 256 };

/* Does a source name a page, and no metric of it: "prom:URL"? */
bool counters_is_page(const char *source);

/* Reads the page at such a source once. NULL: it has no answer, or no counter (SB_EFILE). */
struct counters *counters_open(const char *source, struct sb_err *err);
void counters_close(struct counters *c); /* NULL is harmless */

/* Their values by now: blocks for two seconds at most. */
int counters_read(struct counters *c, struct sb_err *err);

/* Pure: the counters of a page's text, in its order, COUNTERS_MOST at most; to be freed with their
 * names. */
struct counter *counters_list(const char *body, size_t *n);

#endif
