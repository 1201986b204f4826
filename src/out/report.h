/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_REPORT_H
#define SB_OUT_REPORT_H

#include <stdio.h>
#include "trace/sum.h"

/*
 * Writers of `sbinject report`. They print what a trace sums up to and compute only layout. Names
 * from the trace are made safe to show, in the form that the format asks for.
 */

/* What the trace is, the functions with the most own time, processes and threads, and what is
 * missing or not exact. */
void out_report(FILE *to, const struct sum *sum, const char *file);
/* Only the last of these: lines for what is missing or not exact. */
void out_report_notices(FILE *to, const struct sum *sum);
void out_report_slowest(FILE *to, const struct sum *sum);
void out_report_gaps(FILE *to, const struct sum *sum);
/* Of each function in the table, how many calls took how long, by powers of two. */
void out_report_histogram(FILE *to, const struct sum *sum);
/* A row for each thread, the width of the terminal. */
void out_report_timeline(FILE *to, const struct sum *sum);

/* The document sbinject.trace-report/1. The caller frees. */
char *out_report_json(const struct sum *sum, const char *file);

/* Stacks of own time, in ns: "a;b;c 1234", a line each, as flame graph tools read them. */
void out_report_folded(FILE *to, const struct sum *sum);
/* The same as a picture that needs no other file. */
void out_report_flame(FILE *to, const struct sum *sum, const char *file);

/* "name", "delay: name", "[others]": what a key of a stack stands for. The caller frees. */
char *out_report_frame(const struct sum *sum, uint32_t key);

#endif
