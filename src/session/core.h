/* SPDX-License-Identifier: MIT */
#ifndef SB_SESSION_CORE_H
#define SB_SESSION_CORE_H

#include "backend.h"
#include "targets.h"
#include "warnings.h"

/*
 * The half of a session that is the same in every backend: its targets, its windows, its times, its
 * warnings. core.c has the functions of session.h, and those below, which the backends use.
 *
 * The session of a backend begins with SESSION_CORE. In it s->cfg is a field of the core, and
 * &s->core is the core itself (the member without a name needs -fms-extensions). What only the
 * backend knows of a target is in an array of its own, by the same index.
 */
struct session_core {
	const struct backend *backend;
	const struct session_config *cfg;
	struct target *target;
	size_t n_targets, max_targets; /* used entries; size of this and of all arrays by target */
	bool enabled;
	bool armed, detached;	/* hooks are in, windows may open; the detach has begun */
	size_t start_on_target; /* SIZE_MAX: none */
	uint64_t attached_ns;	/* when armed, CLOCK_MONOTONIC_RAW */
	uint64_t window_ns;	/* when the session's window opened; 0: not yet */
	uint64_t delays_ns;	/* when delays could first occur, for --max-slowdown; 0: not yet */
	uint64_t last_slow;	/* the last look of session_slow() */
	bool slow_measuring;	/* it counts first: no target delays yet */
	bool slow_warned;
	uint64_t started_real, ended_real;
	double wall_s;
	struct warnings warnings;
};

#define SESSION_CORE                      \
	union {                           \
		struct session_core core; \
		struct session_core;      \
	}

#define session_warn(s, ...) warnings_add(&(s)->warnings, __VA_ARGS__)

/* For the attach of a backend: the time of the session begins. session_windows() follows, and again
 * in each step: it opens and closes what is due, and returns the ns until the next change. */
void session_arm(struct session_core *s);
uint64_t session_windows(struct session_core *s, uint64_t now);

/* ns until --for is over, 0: it is over. UINT64_MAX: it has no end, or has not begun. */
uint64_t session_left(const struct session_core *s, uint64_t now);

/* slowdown.c: --max-slowdown. True: the delays of a target are more than it allows. */
bool session_slow(struct session_core *s, uint64_t now, struct sb_err *err);

#endif
