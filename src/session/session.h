/* SPDX-License-Identifier: MIT */
#ifndef SB_SESSION_H
#define SB_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "guess.h"
#include "src/base/err.h"
#include "src/result/result.h"
#include "src/spec/spec.h"

/*
 * A session: targets and processes brought together, from attach to the last clean detach. It
 * lives in the tracer process, is single-threaded and never blocks on output.
 *
 * Life: session_open() reads the machine's clock and what a hook costs; session_check() finds
 * what can be found wrong without touching anything; session_attach() hooks; then the owner
 * calls session_step() in a loop; session_detach() takes everything out, always;
 * session_result() says what happened; session_free().
 */
enum mechanism { MECHANISM_AUTO, MECHANISM_JUMP, MECHANISM_INT3 };

struct session_config {
	struct spec_list targets;
	pid_t *pids; /* to attach to, with their descendants */
	size_t n_pids;
	pid_t launched; /* instead: our command, waiting for its exec; 0: none */
	pid_t *skip;	/* never to be touched: sbinject's own processes */
	size_t n_skip;
	char *const *command; /* of launched; NULL */
	bool all;	      /* every process of the machine (pids: none) */
	bool follow, children;
	enum mechanism mechanism;
	uint64_t start_ns, for_ns; /* of the whole session; 0: at once, without end */
	char *start_on;		   /* a target or a file; NULL */
	bool sweeping;		   /* doses are chosen with care: no warning of a slowdown */
	bool by_function;	   /* hits of each function are counted, too */
	bool timed;		   /* as session_time() of every target, from the start on */
	double max_slowdown;	   /* of a thread's time, 0.3 is 30 %; 0: not given */
	bool look_only;		   /* for session_list(): nothing is measured */
	bool preview;		   /* the process is ours, stopped at its entry point */
	uint64_t id;		   /* random, marks what is ours in targets */
	/* Has the user asked for the end? For what waits outside of session_step(). NULL: no. */
	bool (*ends)(void *ctx);
	void *ends_ctx;
	struct strays *strays; /* who carries hooks of this session; NULL: no stray is looked for */
};

enum session_end {
	SESSION_RUNS,
	SESSION_END_FOR,      /* --for is over */
	SESSION_END_TARGET,   /* the last process (or the launched command) has ended */
	SESSION_END_SLOWDOWN, /* --max-slowdown was exceeded */
};

struct session;

struct session *session_open(const struct session_config *cfg, struct sb_err *err);

/*
 * Everything that can be refused before the target is touched: processes that cannot be traced,
 * targets whose module is mapped and lacks the symbol, sites that cannot be hooked.
 */
int session_check(struct session *s, struct sb_err *err);

/*
 * Traces and hooks; on return counters run and delays are in force (or their windows wait).
 * On failure everything has been taken out again.
 */
int session_attach(struct session *s, struct sb_err *err);

/* Dispatches what happened, keeps leases and windows. next_ms: call again by then. */
enum session_end session_step(struct session *s, int *next_ms, struct sb_err *err);

/* Readable when session_step() should be called (doorbells). */
int session_fd(const struct session *s);

/*
 * Changes of a session that runs. None but adding and removing stops a thread of the target; what
 * is changed is in force when the call returns (Python targets that are switched on or off: when
 * the interpreter has taken it over).
 */
/* SB_EEXIST: it, or one of its functions, is a target already; SB_ENOSYMBOL, SB_EREFUSED and so on:
 * as for session_check(), and nothing has changed; SB_ENOMEM: the session's control pages hold no
 * more targets. */
int session_add(struct session *s, const struct spec *spec, size_t *index, struct sb_err *err);
int session_remove(struct session *s, size_t index, struct sb_err *err);
void session_update(struct session *s, size_t index, uint64_t delay_ns, uint64_t every);
void session_enable(struct session *s, bool on); /* all of them: counting and delays */
bool session_enabled(const struct session *s);
void session_mute(struct session *s, size_t index, bool mute); /* one of them */

/*
 * How long calls of a target take, from entry to return, while that is asked for. Only an agent can
 * tell: native entries are hooked, returns are not. It takes effect when session_timing() says so.
 */
void session_time(struct session *s, size_t index, bool on);
void session_spans(struct session *s, size_t index, struct result_spans *spans);
/* Whether every interpreter has taken over what was asked of it. */
bool session_timing(const struct session *s);

/* How many targets there have been; removed ones keep their index. */
size_t session_targets(const struct session *s);
struct session_target {
	const struct spec *spec; /* valid until the session is freed */
	uint64_t delay_ns, every;
	bool removed, open, pending; /* pending: nothing of it has been hooked yet */
	const struct sb_err *why;    /* no module matches, with what was probably meant; or NULL */
	enum guess guess;	     /* of its hint */
	struct result_counts counts;
};
void session_target(struct session *s, size_t index, struct session_target *out);
/* The same without its counts, which is cheap. */
void session_state(const struct session *s, size_t index, struct session_target *out);

/* by_function: what each function of a target has counted so far, those that were never called
 * included. Texts are valid until the next call into the session; the caller frees the list. NULL:
 * the session does not count so. */
struct session_function {
	const char *module, *symbol;
	uint64_t hits;
};
size_t session_functions(struct session *s, size_t index, struct session_function **list);

/*
 * Counters at one instant, each of one target on one thread: `slot` tells threads of a process
 * apart (threads that share one are counted as one).
 */
struct session_lane {
	pid_t pid;
	size_t target, slot;
	uint64_t hits, injected_ns, overrun_ns;
};
/* Lanes of living processes, and under pid 0 what others left: those that ended, and children that
 * nobody saw. The sum never falls. The caller frees; t_ns: CLOCK_MONOTONIC_RAW. */
size_t session_lanes(struct session *s, struct session_lane **lanes, uint64_t *t_ns);

/* The processes that are hooked now; the caller frees. */
size_t session_pids(struct session *s, pid_t **pids);

/* Counters so far, one a target; for the status line. t_s: seconds since the hooks were armed. */
void session_counts(struct session *s, struct result_counts *counts, double *t_s);

/* Also from error paths; a second call does nothing. Problems become warnings of the result. */
void session_detach(struct session *s);

/* Fills everything but version, argv, tags, exit: those are the command line's. */
struct result *session_result(struct session *s);

/* `sbinject list`: resolves and plans in all processes without touching them. */
struct result *session_list(struct session *s, struct sb_err *err);

void session_free(struct session *s);

#endif
