/* SPDX-License-Identifier: MIT */
#ifndef SB_SOURCE_H
#define SB_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include "rhythm.h"
#include "src/base/err.h"

/*
 * The sources of a sweep: does each answer, does it move, and how. These wait until it does, for
 * source_limit_ns() at most, and return -1 with the reason in *err. For a process that runs they
 * come before it is touched. A launched command has to start first: until it has written its file
 * or serves its page, an error of the source is no answer yet, and it may begin to count anew.
 */
struct sweep_job;

struct source_look {
	const struct sweep_job *job;
	bool starting; /* the command was launched just now */
	/* False: the user, or the end of the command, has ended the wait; *err is then empty, or
	 * SB_EINTERRUPTED before there is a session. */
	bool (*wait)(void *of, uint64_t ns);
	void *of;
};

/* Of the progress. A source that grows at every look is up to date. */
int source_probe(const struct source_look *look, struct source_rhythm *out, struct sb_err *err);
/* Without an item there is no latency: at least one completes meanwhile. */
int source_probe_response(const struct source_look *look, struct sb_err *err);
/* That they answer; whether they move is seen in the windows. */
int source_probe_covariates(const struct source_look *look, struct sb_err *err);

/* A quarter of the sweep's time, 2 s to 30 s. */
uint64_t source_limit_ns(const struct sweep_job *job);
/* Sets the error of a progress that was `was` for so long; -1. */
int source_does_not_move(const struct sweep_job *job, double was, uint64_t limit_ns,
			 struct sb_err *err);

#endif
