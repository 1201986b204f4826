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
 * A session brings targets and processes together, from attach to the last clean detach. It lives
 * in the tracer process, is single-threaded and never blocks on output.
 *
 * The journey of a target in the inject backend, with the file of each step:
 *
 *   spec     src/spec/spec.c: spec_parse_words() makes a struct spec of the words. session_open()
 *            (src/session/inject/session.c) makes a struct target of it (src/session/targets.h).
 *   resolve  src/session/inject/hook.c: session_hook() looks in one process. target_resolve()
 *            (src/session/targets.c) finds addresses by resolve_target() (elf/resolve.c).
 *   plan     src/session/inject/sites.c: plans_make() scans each image once for landings and makes
 *            a plan for each site, by plan_make() (inject/plan.h, inject/arch/).
 *   plant    src/session/inject/site.c: session_hook_found() records the sites. space_plant()
 *            (inject/plant.c) maps the stubs, stops the threads and writes the jumps.
 *   count    src/session/inject/window.c: window_apply() opens the target in the control page. The
 *            stub (inject/arch/x86_64/stub-code.S) counts and delays there, without the tracer.
 *   result   src/session/inject/record.c: record_end() keeps the counters of a process that ends.
 *            session_result() (src/session/inject/result.c) makes the struct result.
 *
 * session_check() runs the steps up to "plan" before an attach. A process that appears later, and a
 * library that is loaded later, start again at "resolve" (src/session/inject/tree.c). A Python
 * target has an agent in the interpreter instead of a plan (src/session/inject/python.c).
 *
 * The life of a session: session_open() reads the machine's clock and the cost of a hook.
 * session_check() finds what can be refused without touching anything. session_attach() hooks. The
 * owner then calls session_step() in a loop. session_detach() removes everything, always.
 * session_result() reports. session_free() ends it.
 *
 * No function returns with an address space stopped: tree_stop() and tree_resume() come in pairs
 * within one call (inject/tree.h).
 */
enum mechanism { MECHANISM_AUTO, MECHANISM_JUMP, MECHANISM_INT3 };

struct session_config {
	struct spec_list targets;
	pid_t *pids; /* to attach to, with their descendants */
	size_t n_pids;
	pid_t launched; /* instead of pids: our command, which waits for its exec; 0: none */
	pid_t *skip;	/* never touched: sbinject's own processes */
	size_t n_skip;
	char *const *command; /* of launched; NULL */
	bool all;	      /* every process of the machine (pids: none) */
	bool follow, children;
	enum mechanism mechanism;
	uint64_t start_ns, for_ns; /* of the whole session; 0: at once, no end */
	char *start_on;		   /* a target or a file; NULL */
	bool sweeping;	     /* the caller chooses doses with care: no warning of a slowdown */
	bool by_function;    /* also counts the hits of each function */
	bool perf_map;	     /* names of stubs in /tmp/perf-PID.map, for profilers */
	bool perf_map_keep;  /* ... which stay there */
	bool timed;	     /* as session_time() of every target, from the start */
	double max_slowdown; /* of a thread's time, 0.3 is 30 %; 0: not given */
	bool look_only;	     /* for session_list(): measures nothing */
	bool preview;	     /* the process is our own, stopped at its entry point */
	uint64_t id;	     /* random; marks what this session puts into targets */
	/* Has the user requested the end? For waits outside of session_step(). May be NULL: no. */
	bool (*ends)(void *ctx);
	void *ends_ctx;
	struct strays *strays; /* processes that carry hooks of this session; NULL: strays are not
				  searched for */
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
 * Finds everything that can be refused before a target is touched: processes that cannot be traced,
 * targets whose module is mapped and lacks the symbol, sites that cannot be hooked.
 */
int session_check(struct session *s, struct sb_err *err);

/*
 * Traces and hooks. On return counters run and delays are in force (or their windows wait). Threads
 * are stopped only while an address space is changed; none is stopped on return. Dispatches events.
 * On failure everything has been removed again.
 */
int session_attach(struct session *s, struct sb_err *err);

/* Dispatches events, renews leases, opens and closes windows. next_ms: call again by then. */
enum session_end session_step(struct session *s, int *next_ms, struct sb_err *err);

/* Readable when session_step() should be called (doorbells: notices of loaded libraries). */
int session_fd(const struct session *s);

/*
 * Changes of a running session. Only session_add() and session_remove() stop threads of a target
 * and dispatch events; no thread is stopped on return. A change is in force when the call returns.
 * A Python target that is switched on or off is the exception: its interpreter applies the change.
 */
/* SB_EEXIST: it, or one of its functions, is already a target. SB_ENOSYMBOL, SB_EREFUSED and so on:
 * as for session_check(); nothing has changed. SB_ENOMEM: the control pages of the session hold no
 * more targets. */
int session_add(struct session *s, const struct spec *spec, size_t *index, struct sb_err *err);
int session_remove(struct session *s, size_t index, struct sb_err *err);
void session_update(struct session *s, size_t index, uint64_t delay_ns, uint64_t every);
void session_enable(struct session *s, bool on); /* all targets: counting and delays */
bool session_enabled(const struct session *s);
void session_mute(struct session *s, size_t index, bool mute); /* one target */

/*
 * How long calls of a target take, from entry to return, while this is on. Only an agent can
 * measure it: of native functions only the entry is hooked. It is in effect once session_timing()
 * is true.
 */
void session_time(struct session *s, size_t index, bool on);
void session_spans(struct session *s, size_t index, struct result_spans *spans);
/* Has every interpreter applied the last session_time()? */
bool session_timing(const struct session *s);

/* Number of targets so far; removed ones keep their index. */
size_t session_targets(const struct session *s);
struct session_target {
	const struct spec *spec; /* valid until the session is freed */
	uint64_t delay_ns, every;
	bool removed, open, pending; /* pending: no site of it is hooked yet */
	const struct sb_err *why;    /* no module matches, with what was probably meant; or NULL */
	enum guess guess;	     /* how exact the hint of `why` is */
	struct result_counts counts;
};
void session_target(struct session *s, size_t index, struct session_target *out);
/* As session_target() without the counts; this is cheap. */
void session_state(const struct session *s, size_t index, struct session_target *out);

/* by_function: the count of each function of a target, functions without a call included. Texts are
 * valid until the next call into the session; the caller frees the list. NULL: the session does not
 * count by function. */
struct session_function {
	const char *module, *symbol;
	uint64_t hits;
};
size_t session_functions(struct session *s, size_t index, struct session_function **list);

/*
 * Counters at one instant, each of one target on one thread. `slot` distinguishes the threads of a
 * process (threads that share a slot count as one).
 */
struct session_lane {
	pid_t pid;
	size_t target, slot;
	uint64_t hits, injected_ns, overrun_ns;
};
/* Lanes of living processes, and under pid 0 what others left: ended processes, and children that
 * were never seen. The sum never falls. The caller frees. t_ns: CLOCK_MONOTONIC_RAW. */
size_t session_lanes(struct session *s, struct session_lane **lanes, uint64_t *t_ns);

/* The processes that are hooked now. The caller frees. */
size_t session_pids(struct session *s, pid_t **pids);

/* Counters so far, one for each target, for the status line. t_s: seconds since the hooks were
 * armed. */
void session_counts(struct session *s, struct result_counts *counts, double *t_s);

/* Removes everything. Safe on error paths; a second call does nothing. Stops the threads of an
 * address space while it is restored, and dispatches events. Problems become warnings of the
 * result. */
void session_detach(struct session *s);

/* Fills everything but version, argv, tags and exit, which the command line fills. */
struct result *session_result(struct session *s);

/* `sbinject list`: resolves and plans in all processes without touching them. */
struct result *session_list(struct session *s, struct sb_err *err);

void session_free(struct session *s);

#endif
