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
 * What is the same in every backend is in src/session/core.c: targets, windows, changes, the frame
 * of the result. It calls the backend's table (backend.h) for what only the backend can do; an
 * owner of a session calls the functions here, and the table for the rest.
 *
 * The journey of a target in the inject backend, with the file of each step:
 *
 *   spec     src/spec/spec.c: spec_parse_words() makes a struct spec of the words. session_open()
 *            makes a struct target of it (src/session/targets.h).
 *   resolve  src/session/inject/hook.c: session_hook() looks in one process. target_resolve()
 *            (src/session/targets.c) finds addresses by resolve_target() (elf/resolve.c).
 *   plan     src/session/inject/sites.c: plans_make() scans each image once for landings and makes
 *            a plan for each site, by plan_make() (inject/plan.h, inject/arch/).
 *   plant    src/session/inject/site.c: session_hook_found() records the sites. space_plant()
 *            (inject/plant.c) maps the stubs, stops the threads and writes the jumps.
 *   count    session_windows() opens the target; src/session/inject/window.c stores that into the
 *            control page. The stub (inject/arch/x86_64/stub-code.S) counts and delays there,
 *            without the tracer.
 *   result   src/session/inject/record.c: record_end() keeps the counters of a process that ends.
 *            session_result() makes the struct result, with src/session/inject/result.c.
 *
 * The check of the backend runs the steps up to "plan" before an attach. A process that appears
 * later, and a library that is loaded later, start again at "resolve" (src/session/inject/tree.c).
 * A Python target has an agent in the interpreter instead of a plan (src/session/inject/python.c).
 *
 * The life of a session: session_open() reads what it needs of the machine (inject: the clock and
 * the cost of a hook). The backend's check() finds what can be refused without touching anything.
 * session_attach() hooks. The owner then calls the backend's step() in a loop. session_detach()
 * removes everything, always. session_result() reports. session_free() ends it.
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
	bool sweeping;	    /* the caller chooses doses with care: no warning of a slowdown */
	bool by_function;   /* also counts the hits of each function */
	bool perf_map;	    /* names of stubs in /tmp/perf-PID.map, for profilers */
	bool perf_map_keep; /* ... which stay there */
	bool evidence;	    /* the tracer watches what the kernel does with the threads */
	unsigned int evidence_groups; /* ... as evidence_groups_read(); 0: all */
	unsigned int evidence_sample; /* ... as struct evidence_config; 0: each event */
	bool timed;		      /* as the backend's time() of every target, from the start */
	bool name_threads;     /* "lanes" has the tids of threads (inject): each is stopped once */
	int trace_fd;	       /* timed calls are recorded into this pipe (trace-pipe.h); 0: none */
	int kernel_trace_fd;   /* ... those of targets in the kernel, where they have a session of
				  their own (src/run/beside.h); 0: none */
	uint32_t trace_chunks; /* of a page, for them: struct sb_page_trace */
	uint32_t trace_stacks; /* bytes of their stacks, a multiple of 8; 0: without */
	bool device_times;     /* ... with those of devices, by the device agent (inject) */
	uint64_t trace_min_ns; /* shorter ones are not recorded */
	double trace_rate;     /* so many a second at most; 0: no limit */
	double max_slowdown;   /* of a thread's time, 0.3 is 30 %; 0: not given */
	bool look_only;	       /* for the backend's list(): measures nothing */
	bool preview;	       /* the process is our own, stopped at its entry point */
	uint64_t id;	       /* random; marks what this session puts into targets */
	/* Has the user requested the end? For waits outside of step(). May be NULL: no. */
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

struct backend;
struct session_core;

/*
 * A breakpoint without a tracer ends the process that meets it: SB_EUSAGE where nothing would trace
 * all processes for as long as one is planted. session_open() refuses it, whatever the caller did.
 */
int session_check_traced(const struct session_config *cfg, struct sb_err *err);

struct session_core *session_open(const struct backend *backend, const struct session_config *cfg,
				  struct sb_err *err);
void session_free(struct session_core *s);

/*
 * Hooks. On return counters run and delays are in force (or their windows wait), and no thread is
 * stopped. On failure everything has been removed again.
 */
int session_attach(struct session_core *s, struct sb_err *err);

/* Removes everything. Safe on error paths; a second call does nothing. Problems become warnings of
 * the result. */
void session_detach(struct session_core *s);

/*
 * Changes of a running session. Only session_add() and session_remove() may stop threads of a
 * target and dispatch events; no thread is stopped on return. A change is in force when the call
 * returns. A Python target that is switched on or off is the exception: its interpreter applies the
 * change.
 */
/* SB_EEXIST: it, or one of its functions, is already a target. SB_ENOSYMBOL, SB_EREFUSED and so on:
 * as for the backend's check(); nothing has changed. SB_ENOMEM: the session holds no more
 * targets. */
int session_add(struct session_core *s, const struct spec *spec, size_t *index, struct sb_err *err);
int session_remove(struct session_core *s, size_t index, struct sb_err *err);
void session_update(struct session_core *s, size_t index, uint64_t delay_ns, uint64_t every);
void session_enable(struct session_core *s, bool on); /* all targets: counting and delays */
bool session_enabled(const struct session_core *s);
bool session_begun(const struct session_core *s); /* its window, by --start and --start-on */
void session_mute(struct session_core *s, size_t index, bool mute); /* one target */

/* Number of targets so far; removed ones keep their index. */
size_t session_targets(const struct session_core *s);
struct session_target {
	const struct spec *spec; /* valid until the session is freed */
	uint64_t delay_ns, every;
	bool removed, open, pending; /* pending: no site of it is hooked yet */
	bool seen;		     /* its module is mapped somewhere */
	const struct sb_err *why;    /* no module matches, with what was probably meant; or NULL */
	enum guess guess;	     /* how exact the hint of `why` is */
	size_t untimed;		     /* functions that are hooked, and whose calls are not timed */
	struct result_counts counts;
};
void session_target(struct session_core *s, size_t index, struct session_target *out);
/* As session_target() without the counts; this is cheap. */
void session_state(const struct session_core *s, size_t index, struct session_target *out);

/* Counters so far, one for each target, for the status line. t_s: seconds since the hooks were
 * armed. */
void session_counts(struct session_core *s, struct result_counts *counts, double *t_s);

/* After session_detach(): everything but version, argv, tags and exit, which the command line
 * fills. */
struct result *session_result(struct session_core *s);

#endif
