/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_SAMPLES_H
#define SB_EVIDENCE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * Where threads are while they are on a processor: the kernel (perf_event_open, its software clock)
 * takes a sample of each watched thread every period_ns of that thread's own time on a processor.
 * sbinject stops and writes to no process; what is open ends with its descriptors. It needs the
 * permission to trace the process; where the kernel shows no more, samples inside the kernel are
 * left out (samples_user_only()).
 *
 * A thread that ends between two calls of samples_watch() that both miss it is not seen.
 */
struct samples;

enum { SAMPLES_DEPTH = 16 };

/* A sample: addresses in the program, the innermost function first, then return addresses as far as
 * frame pointers lead, which only a program that keeps frame pointers has right. n: 1 or more. */
typedef void samples_fn(void *ctx, pid_t pid, pid_t tid, const uint64_t *ip, size_t n);

struct samples *samples_open(uint64_t period_ns);
void samples_close(struct samples *s); /* NULL is harmless */

/* Watches the threads of a process that are not watched yet. */
void samples_watch(struct samples *s, pid_t pid);
/* Hands on what was sampled since the last call; forgets threads that have ended. At least every
 * ten periods, so that the buffers, of two hundred samples and more, do not fill up. */
void samples_drain(struct samples *s, samples_fn *fn, void *ctx);

/* NULL: a thread could be watched, or none was tried. Else why none can be. */
const struct sb_err *samples_limit(const struct samples *s);
bool samples_user_only(const struct samples *s);
uint64_t samples_lost(const struct samples *s);	     /* the buffers were full */
uint64_t samples_unwatched(const struct samples *s); /* threads beyond the limit of 256 */

#endif
