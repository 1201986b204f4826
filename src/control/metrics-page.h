/* SPDX-License-Identifier: MIT */
#ifndef SB_METRICS_PAGE_H
#define SB_METRICS_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include "steady.h"

/*
 * The text is OpenMetrics, or the older format, which the textfile collector reads. The older
 * format names a counter as its samples, knows no state sets (a single one makes it reject the
 * whole file) and takes units for comments.
 */
struct page {
	FILE *f;
	bool openmetrics;
	struct steady *steady;
};

/* The lines before the samples of a metric. unit: NULL: none. */
void page_head(const struct page *p, const char *name, const char *type, const char *unit,
	       const char *help);

/* The counters of the evidence, as control.h has them; NULL: the session has none. */
void page_evidence(const struct page *p, const json_t *counters);
/* What is counted for no thread: "machine" of the answer with the evidence; NULL: there is none. A
 * number that is not known has no sample. */
void page_rows(const struct page *p, const json_t *evidence);
void page_sample(const struct page *p, const json_t *sample);

#endif
