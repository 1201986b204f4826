/* SPDX-License-Identifier: MIT */
#ifndef SB_CANDIDATES_H
#define SB_CANDIDATES_H

#include "job.h"
#include "src/result/explain.h"

/*
 * Which functions are worth a sweep: those in which the threads of the processes of a job are while
 * they are on a processor (evidence/samples.h), as targets, with their share of the samples and
 * whether sbinject can hook them. Of a thread that runs Python it is the Python function
 * (python-samples.h), instead of one of the interpreter's file. Nothing is changed in the
 * processes.
 */
struct candidates;

/* time_ns: of the whole measurement, in so many blocks. */
struct candidates *candidates_open(const struct session_config *cfg, uint64_t time_ns,
				   size_t blocks);
void candidates_close(struct candidates *c); /* NULL is harmless */

/* Empties the buffers, and looks at which functions Python threads are in: call it again after
 * candidates_wait_ns(), about 10 ms where there is Python, else 50 ms. */
void candidates_take(struct candidates *c);
uint64_t candidates_wait_ns(struct candidates *c);
/* A block ends; looks for new threads and processes. */
void candidates_edge(struct candidates *c);

/* Fills candidates, sweep and samples of the result; slow. Call it once, after the last edge, with
 * no session open on the processes. */
void candidates_fill(struct candidates *c, struct sweep_job *job, struct explain_result *res);

#endif
