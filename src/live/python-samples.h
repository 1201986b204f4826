/* SPDX-License-Identifier: MIT */
#ifndef SB_PYTHON_SAMPLES_H
#define SB_PYTHON_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/maps.h"

/*
 * In which Python functions threads are: those that run, and those that wait (python-frames.h).
 *
 * A function in C that Python calls is part of the Python function that calls it. Where a thread
 * waits within the standard library's modules for that (threading, queue, asyncio and the like) the
 * function that called these is the one that waits; what waits in a loop of theirs alone is none.
 */
struct python_samples;

struct python_samples *python_samples_open(size_t blocks);
void python_samples_close(struct python_samples *s); /* NULL is harmless */

/* A process of this number, for the caller to choose; after an exec it has another one. False: it
 * has no such interpreter (yet). *runtime: an address in the interpreter. */
bool python_samples_watch(struct python_samples *s, size_t number, pid_t pid,
			  const struct maps *maps, uint64_t *runtime);
/* Reads anew which threads there are: call it now and then. */
void python_samples_threads(struct python_samples *s);

/* Is this a thread that has run Python, of a watched process of that number? */
bool python_samples_has(const struct python_samples *s, size_t number, pid_t tid);

/* If the thread runs at this moment, this is one look at it, whether it runs Python or not. number:
 * of its process, which need not be watched. */
void python_samples_look(struct python_samples *s, size_t number, pid_t pid, pid_t tid,
			 size_t block);

/* One look at each thread of the watched processes: in which functions do they wait? */
void python_samples_round(struct python_samples *s, size_t block);

struct python_function {
	char *target; /* python_code_target() */
	double *in;   /* looks with the function innermost, by block */
	uint64_t looks;
	double *wait; /* rounds in which a thread waited in it, by block */
	uint64_t waits;
	uint64_t last_round; /* ... the last of them */
	bool wait_helper;    /* of a module for waiting, or a module's own code */
};

struct python_looks {
	const struct python_function *function;
	size_t n;
	const double *all;    /* looks at threads that ran, of all processes, by block */
	uint64_t looks;	      /* the sum */
	const double *rounds; /* calls of python_samples_round(), by block */
};

/* Valid until the next call. */
struct python_looks python_samples_looks(const struct python_samples *s);

#endif
