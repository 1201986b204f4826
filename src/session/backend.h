/* SPDX-License-Identifier: MIT */
#ifndef SB_BACKEND_H
#define SB_BACKEND_H

#include "session.h"

/* A function of a target and its hits. Texts are valid until the next call into the session. */
struct session_function {
	const char *module, *symbol;
	uint64_t hits;
};

/*
 * Counters at one instant, each of one target on one thread. `slot` distinguishes the threads of a
 * process (threads that share a slot count as one).
 */
struct session_lane {
	pid_t pid;
	pid_t tid; /* with session_config.name_threads, where it is known; else 0 */
	size_t target, slot;
	uint64_t hits, injected_ns, overrun_ns;
};

/*
 * Ways to make a function slower, as one table: what only the backend can do. The rest of a session
 * is in core.c, which calls the functions of the first half. The owner of a session calls those of
 * the second half.
 */
struct backend {
	const char *name;
	const char *summary;
	size_t size;	       /* of its session, which begins with SESSION_CORE */
	size_t spare_targets;  /* for session_add() */
	uint64_t delay_max_ns; /* 0: the limit of the grammar */

	/* Fills what the core has not; cfg and targets are there. close() frees only that, also
	 * after a failure of open(). */
	int (*open)(struct session_core *s, struct sb_err *err);
	void (*close)(struct session_core *s);
	/* Traces and hooks, then arms: session_arm(), session_windows(). Dispatches events. A
	 * failure is followed by detach(). */
	int (*attach)(struct session_core *s, struct sb_err *err);
	/* All targets are closed already, but that is not in force yet. Stops the threads of an
	 * address space while it is restored, and dispatches events. */
	void (*detach)(struct session_core *s);
	/* Can it be a target at all? Before anything is searched for. */
	int (*check_spec)(struct session_core *s, const struct spec *spec, struct sb_err *err);
	/* Number of targets that the session has room for now. NULL: that of its arrays. */
	size_t (*room)(const struct session_core *s);
	/* Finds and hooks a target that was entered just now; unhooks one that is closed by now. */
	int (*add)(struct session_core *s, size_t index, struct sb_err *err);
	int (*remove)(struct session_core *s, size_t index, struct sb_err *err);
	/* Puts the settings of a target in force: its delay, every=, and whether it is open. */
	void (*apply)(struct session_core *s, size_t index);
	/* The backend has a switch for all targets. NULL: each is closed. */
	void (*enable)(struct session_core *s, bool on);
	/* The counts of n targets. */
	void (*counts)(struct session_core *s, size_t first, size_t n,
		       struct result_counts *counts);
	/* The largest share of a thread's time that its delays take, over its other time; expected
	 * while slow_measuring. For session_slow(). */
	double (*slowdown)(struct session_core *s, size_t index, uint64_t now);
	/* After detach(): counts, sites, processes, and what else the result has of this
	 * backend. */
	void (*result)(struct session_core *s, struct result *res);

	/* Can this machine run it at all? 0, or negative with the reason and the remedy. */
	int (*probe)(struct sb_err *err);
	/* Finds everything that can be refused before a target is touched: processes that cannot be
	 * traced, targets whose module is mapped and lacks the symbol, sites that cannot be
	 * hooked. */
	int (*check)(struct session_core *s, struct sb_err *err);
	/* Dispatches events, renews leases, opens and closes windows. next_ms: call again by
	 * then. */
	enum session_end (*step)(struct session_core *s, int *next_ms, struct sb_err *err);
	/* Readable when step() should be called (doorbells: notices of loaded libraries). */
	int (*fd)(const struct session_core *s);
	/*
	 * How long calls of a target take, from entry to return, while this is on. Of native
	 * functions only in a session with cfg->sweeping, which hooks their exits from the start;
	 * see session_can_time(). It is in effect once timing() is true: every interpreter has
	 * applied the last time(). All three NULL: the backend cannot measure how long calls take.
	 */
	void (*time)(struct session_core *s, size_t index, bool on);
	void (*spans)(struct session_core *s, size_t index, struct result_spans *spans);
	bool (*timing)(const struct session_core *s);
	/* The times of a target's calls so far. The caller frees times->bucket. NULL: the backend
	 * cannot measure them; time=yes is refused. */
	void (*times)(struct session_core *s, size_t index, struct result_times *times);
	bool times_of_kernel; /* ... of targets in the kernel, and of no others */
	/* by_function: the count of each function of a target, functions without a call included.
	 * The caller frees the list; it is NULL if the session does not count by function. NULL:
	 * the backend cannot. */
	size_t (*functions)(struct session_core *s, size_t index, struct session_function **list);
	/* Lanes of living processes, and under pid 0 what others left: ended processes, and
	 * children that were never seen. The sum never falls. The caller frees. t_ns:
	 * CLOCK_MONOTONIC_RAW. */
	size_t (*lanes)(struct session_core *s, struct session_lane **lanes, uint64_t *t_ns);
	/* The processes that are hooked now. The caller frees. */
	size_t (*pids)(struct session_core *s, pid_t **pids);
	/* `sbinject list`: resolves and plans in all processes without touching them. */
	struct result *(*list)(struct session_core *s, struct sb_err *err);
	/* Removes what a dead tracer has left outside of processes. May be NULL. */
	void (*recover)(void);
};

/* Can the calls of such a target be timed at all, by time()? */
static inline bool session_can_time(const struct backend *backend, const struct spec *spec)
{
	return backend->time && spec->kind != SPEC_LINE && !spec->inlined;
}

extern const struct backend backend_inject, backend_uprobe, backend_kmod;

#endif
