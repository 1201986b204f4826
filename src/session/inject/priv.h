/* SPDX-License-Identifier: MIT */
#ifndef SB_SESSION_PRIV_H
#define SB_SESSION_PRIV_H

#include "device-read.h"
#include "sites.h"
#include "trace.h"
#include "inject/doorbell.h"
#include "inject/clock.h"
#include "inject/region.h"
#include "inject/space.h"
#include "src/session/core.h"
#include "src/session/foreign.h"
#include "src/session/processes.h"

/* Shared by the files of this folder only. */

/* The agent of a process with an interpreter; see python.h. `mailbox` is the agent's mailbox in the
 * target's memory (inject/mailbox.h). */
struct mailbox;
struct python {
	struct mailbox *mailbox; /* NULL: no agent in this process (yet) */
	bool looked;		 /* an interpreter was found and handled */
	bool belled;		 /* doorbells wait for its start */
	bool rung;		 /* ... and one of them has rung */
	bool starting;	    /* not initialized: only a thread at a doorbell can carry a command */
	uint64_t again_ns;  /* ... but that one may have been missed: any thread, at this time */
	unsigned int again; /* how often that was tried */
	bool dirty;	    /* settings have changed since the last APPLY */
	bool relist;	    /* ... and so has the list of targets */
	uint64_t on;	    /* hash of the targets that were on at that time */
	bool said;	    /* the message about a wait has been printed */
	bool applied;	    /* the agent works */
	bool leaving;	    /* it is being removed */
	uint32_t ends;	    /* of its interpreters, when the last command was given */
	unsigned int loads; /* number of failed loads */
	bool at_work;	    /* a command is in progress in its interpreter */
	bool stays;	    /* it could not be removed */
	uint32_t warned;    /* flags already reported, enum sb_mailbox_flags */
	uint64_t peeked;    /* time of the last look at its chain */
	uint64_t unsteady;  /* frequent looks until then: another tool had removed it */
};

/* The delay of each slot at the last two looks (slow.c). */
struct slow_look {
	uint64_t at[2]; /* ns; the older one first */
	struct page_spent *spent[2];
};

/* One program image of one process, living or ended: a row of the result's processes. */
/* A thread by what the owner of a slot is made of. It may have ended. */
struct named_thread {
	pid_t tid;
	uint64_t pointer;
};

struct record {
	pid_t pid;
	unsigned int generation;
	char comm[64];
	char *exe;
	struct space *space;	      /* while it lives */
	bool *in_scope;		      /* by target: pid= matches */
	struct result_counts *counts; /* by target, once it has ended */
	struct region **regions;      /* counted references: the regions that held its sites */
	size_t n_regions;
	uint64_t since_ns;	/* when the session first saw it */
	uint64_t ended_ns;	/* when it was found to be gone; 0: it lives */
	struct slow_look *slow; /* by target; NULL: no look yet */
	struct python python;
	struct device *device;	    /* device.c; NULL: it was not looked at */
	bool device_stays;	    /* a thread that was lent is in its agent's memory */
	uint64_t code;		    /* code_of_maps() at the last complete look; 0: none */
	uint64_t looked;	    /* last round of the search for targets that was done here */
	bool looking;		    /* a search for targets is in progress */
	struct mapfile *mapfile;    /* perfmap.c; NULL: none */
	size_t n_mapped;	    /* regions whose names are in it */
	unsigned int part_tries;    /* failed tries of session_part(); see ids.c */
	struct named_thread *named; /* for lanes(); with session_config.name_threads */
	size_t n_named;
	bool ended;
	struct record *next;
};

/* What only this backend knows of a target. */
struct own_target {
	bool can_time;		       /* its exits are hooked as well, or it is Python's */
	bool timed, timed_once;	       /* the duration of its calls is measured, or was */
	uint8_t span_bit;	       /* its own among the timed targets */
	struct page_sums past;	       /* of processes that have ended */
	struct page_spans *past_spans; /* the same; NULL: none yet */
};

/* A site as the result shows it; the journal's cookie is its index. */
struct site_record {
	size_t target;
	char *module, *symbol, *build_id;
	uint64_t address, size;
	uint64_t function; /* of an exit: the function's entry; else 0 */
	uint32_t each;	   /* number of its own counter, from 1; 0: none */
	bool int3, doorbell, start;
	bool end;	  /* an exit that ends timed calls: the result does not show it */
	size_t next_free; /* in a free entry: number of the next free one, from 1 */
};

struct inject_session {
	SESSION_CORE;
	struct tree tree;
	struct clock clk;
	struct hook_cost cost;
	uint64_t value_cost[2]; /* of struct value_cost, ticks; see struct page */
	bool value_cost_known;
	struct hook_bench *bench; /* measures cost again; NULL: cost cannot be measured */
	bool clock_ok;
	char clock_why[160];
	struct own_target *own; /* by target */
	struct site_record *site;
	size_t n_sites;
	struct record *records;
	uint64_t round;	  /* of the search for targets in every process */
	size_t n_folded;  /* records that record_fold() has dropped */
	size_t free_site; /* number of a free entry of site[], from 1; 0: none */
	struct image_plans *plans;
	struct foreign foreign; /* uprobes of other tools, once they are needed */
	bool foreign_known;
	struct doorbells *doorbells;
	struct aside *aside; /* work in progress beside the stops; aside.c */
	bool aside_over;     /* it should end, since the session does */
	void (*answer_rings)(
		struct inject_session *s); /* session_rings(), for files below tree.c */
	bool filtered;			   /* a target has thread= */
	bool spans;			   /* pages have space for the times of calls */
	bool spans_full;		   /* that space was used up, and a warning was given */
	uint8_t span_bits;		   /* targets that are or were timed */
	bool gil;			   /* an interpreter with a GIL was watched */
	uint64_t gil_ns[2]; /* longest hold of a GIL by an agent: at attach, at detach */
	uint64_t last_tick, last_refine;
	uint64_t lapsed;
	uint64_t doorbells_lost; /* doorbells that gave up waiting, on pages that are gone */
	uint64_t stalled_ns;	 /* time in which the session could not serve its processes */
	uint64_t last_step;
	uint64_t left_behind; /* processes in which something of sbinject had to stay */
	uint64_t hold_attach_ns, hold_detach_ns;
	struct python_site *pysite; /* functions that agents found */
	size_t n_pysites;
	uint32_t *pysite_slot; /* pysite[] by hash: number from 1, 0 free */
	size_t pysite_slots;
	struct each *each; /* functions with a counter of their own; session/inject/each.c */
	size_t n_each;
	uint32_t *each_slot; /* each[] by hash: number from 1, 0 free */
	size_t each_slots;
	bool each_full;
	struct unrecorded *unrecorded; /* agents in processes without a record */
	size_t n_unrecorded;
	uint64_t look;		   /* of page_walk_begin(), to visit each page once */
	const struct record *walk; /* position of page_walk_next() */
	size_t ids_turn;	   /* position of ids_step() */
	struct mapfiles *mapfiles; /* perfmap.c; NULL: without --perf-map */
	struct tracing *tracing;   /* NULL: calls are not recorded */
	struct tracing_sums traced;
	struct device_reader *device_reader; /* --device-times; NULL: not begun */
	struct device_sums device_sums;
	char *device_why; /* the first reason why a process has none */
};

#define NO_IMAGE (-1u) /* generation of a launched process before the image of its command */

static inline struct inject_session *session_of(const struct session_core *core)
{
	return (struct inject_session *)core;
}

/*
 * The files of this folder, from below to above. A file calls only files of earlier lines;
 * test/case/object-circles.sh refuses circles.
 *
 *	mapfile trace-clock trace-threads
 *	mapfiles trace
 *	device-read
 *	state walk sites same unseen release recover
 *	aside each doorbell unrecorded perfmap
 *	notes untraced
 *	record
 *	sums site window
 *	times
 *	result
 *	python ids slow device
 *	hook leave
 *	check detach tree
 *	change list session
 *	backend
 *
 * A lower file that must wait calls session_wait(), which answers doorbells through
 * s->answer_rings. It reports ends through the callbacks of the tree, s->tree.ops.
 */

/* state.c: used by all others. */
/* Has the user requested the end? The callback also sends waiting messages to the command line. */
bool session_ends(const struct inject_session *s);
/* Renews the leases, and adds up the time in which the session could not do so. */
void session_alive(struct inject_session *s);
/* Sleeps for half a millisecond, then dispatches events, answers doorbells and buries ended
 * processes. Hold no pointer to a process across it; hold a counted reference to its space. */
void session_wait(struct inject_session *s);
bool session_interrupted(void); /* a signal is pending that would end or stop `list` */
void session_hurry(bool on);	/* real-time priority */
/* Another tool that has uprobes in that module of the process: "NAME (pid N)"; "" if the kernel
 * names none. */
void session_probes_in(struct inject_session *s, pid_t pid, const char *module, char *buf,
		       size_t size);
struct record *record_of(const struct inject_session *s,
			 const struct space *space); /* NULL: none */

/* walk.c: visits the page of each living process once (forks share pages). page_walk_next() returns
 * the next one, then NULL. No record may be added or removed during a walk. */
void page_walk_begin(struct inject_session *s);
const struct page *page_walk_next(struct inject_session *s);

/*
 * aside.c: all that reads files of a target runs in it. aside_run() runs fn(arg) in a thread of its
 * own and returns at its end. Meanwhile it serves the stops of the session's processes, except
 * those that can only be answered with names (an exec, a fork of a process whose record is
 * `looking`). So it dispatches events; no thread is stopped by it. fn may use images, targets and
 * the maps and the memory of a process whose space the caller holds; neither the tree nor records,
 * nor what a stop changes. Where nothing is traced it just calls fn.
 *
 * aside_ends(): for fn, at intervals: has the user requested the end? Outside, it is
 * session_alive() and session_ends().
 */
void aside_run(struct inject_session *s, void (*fn)(void *arg), void *arg);
bool aside_ends(struct inject_session *s);

/*
 * each.c: counters of single functions.
 *
 * - each_number(): the number of a function's counter, from 1. 0: the session has no such counters,
 *   or not for this target (thread=), or no more of them. address: 0 for Python's functions.
 * - each_keep(): keeps the counts of a page that no process uses any more.
 * - each_sums(): the count of each function, by number. The caller frees. NULL: none.
 * - each_list(): the counters of a target, as the functions() of the backend.
 */
uint32_t each_number(struct inject_session *s, size_t target, const char *module,
		     const char *symbol, uint64_t address);
void each_keep(struct inject_session *s, const struct page *page);
uint64_t *each_sums(struct inject_session *s);
/* How long the calls of the function of that number took. False: none returned. */
bool each_times(struct inject_session *s, uint32_t number, struct sb_page_function *times);
size_t each_list(struct inject_session *s, size_t target, struct session_function **list);
void each_free(struct inject_session *s);

/*
 * perfmap.c: the names of stubs, for profilers; nothing without --perf-map. perfmap_step() writes
 * those of new processes and regions, perfmap_end() removes those of a record that ends, or leaves
 * them (--perf-map-keep), perfmap_close() waits for that, at most two seconds. No thread is stopped
 * for it. mapfile.h has the rules for the files.
 */
void perfmap_open(struct inject_session *s);
void perfmap_step(struct inject_session *s);
void perfmap_end(struct inject_session *s, struct record *rec);
void perfmap_close(struct inject_session *s);

/*
 * record.c: program images of processes, and their counts. record_new() adds one at the head of the
 * list, with the scope of its parent's record (NULL: none). The session owns records until
 * record_drop(). None of these functions stops a thread or dispatches events.
 */
struct record *record_new(struct inject_session *s, struct proc *proc, struct record *parent);
/* The next record that has not ended and that this round of the search has not visited; NULL: none.
 * Forks join at the head meanwhile. A fork of a visited process counts as visited. */
struct record *record_next(const struct inject_session *s);
void record_end(struct inject_session *s,
		struct record *rec); /* takes its counters, frees its slot */
/* The process at this index of the page has left the page, and lives. */
void record_left_page(struct inject_session *s, struct control *control, uint32_t proc);
/* Adds what a living process has counted of a target. */
void record_counts(const struct inject_session *s, const struct record *rec, size_t target,
		   struct page_sums *sums);
void record_keep_regions(struct record *rec); /* references, for the result */
void record_drop(struct inject_session *s,
		 struct record *rec); /* frees it; it is out of the list */
void record_free_site(struct inject_session *s,
		      uint32_t cookie);	    /* its index is free for another */
void record_fold(struct inject_session *s); /* drops the oldest ended records */
/* The part of a hook's cost that its own measurement does not see. Agents measure all of theirs. */
/* How many delays one call is given: 2 of at=both, of half the length. */
int target_delays(const struct spec *spec);
double target_cost_ticks(const struct inject_session *s, size_t target);
void counts_from_sums(const struct inject_session *s, size_t target, const struct page_sums *sums,
		      struct result_counts *counts);

/* session.c: what this backend keeps of a target, for a new one. */
void own_init(struct inject_session *s, size_t target);

/* Adds how long a target's calls took in a living process. */
void record_spans(const struct record *rec, size_t target, struct page_spans *spans);

/*
 * values.c: the values of a target's calls (arg=, ret, sum=), as its cells, traces and the result
 * have them. values_measure(): what they cost, at the first target that has any.
 */
void values_setting(const struct spec *spec, uint16_t value[SB_PAGE_VALUES]);
void values_measure(struct inject_session *s, const struct spec *spec);
void values_trace(struct tracing *tracing, uint8_t bit, const struct spec *spec);
void values_times(const struct spec *spec, const struct page_spans *spans,
		  struct result_times *out);

/* window.c: writes settings into control pages. */
void window_apply(struct inject_session *s, struct record *rec); /* of all targets */
void window_apply_all(struct inject_session *s);
void window_apply_target(struct inject_session *s, size_t target); /* of one target, everywhere */
/* Puts the arguments that a search has found (args=yes) in force. */
void window_arguments(struct inject_session *s);
/* The thread= tables. May stop single threads for a moment, and dispatches events. */
void window_threads(struct inject_session *s);
/*
 * Names the threads of the processes whose calls are recorded; pid 0: of all. Stops each thread
 * whose pointer is not known for a moment, and dispatches events. again: also the others.
 */
/* For lanes(), if the session names threads. */
void window_name_thread(struct inject_session *s, struct record *rec, pid_t tid, uint64_t pointer);
void window_name_threads(struct inject_session *s, pid_t pid, bool again);

/* sums.c. session_other_sums(): the counts of ended processes and of children that were never
 * seen. session_target_sums(): these, and the counts of living processes. */
void session_other_sums(struct inject_session *s, size_t i, struct page_sums *sums);
void session_target_sums(struct inject_session *s, size_t target, struct page_sums *sums);

/* same.c: a hash of the mapped code, without ours. Is it unchanged since the last complete look? */
uint64_t code_of_maps(const struct maps *maps);
bool session_same_code(const struct record *rec);

/*
 * doorbell.c: doorbells, that is hooks on functions that announce a library or an interpreter's
 * start. doorbell_add() adds one, unless something is hooked or found there already.
 * doorbell_find() adds the dynamic linker's, and makes plans for all of found.
 * session_add_doorbell() adds one at an interpreter's function, if the image has it.
 */
struct found;
void doorbell_add(const struct inject_session *s, const struct space *space, struct found *found,
		  const struct resolve_site *rs);
void doorbell_find(struct inject_session *s, pid_t pid, const struct space *space,
		   struct found *found);
void session_add_doorbell(const struct inject_session *s, const struct space *space,
			  struct found *found, struct image *img, uint64_t bias, const char *name);
/* session_hooked_at(), session_hooked_exit(): the session's number of the site, or of the exit,
 * that is hooked at addr, or SIZE_MAX.
 * session_found_at(): is a site in `found` at addr, and of which target? */
size_t session_hooked_at(const struct inject_session *s, const struct space *space, uint64_t addr);
size_t session_hooked_exit(const struct inject_session *s, const struct space *space,
			   uint64_t addr);
bool session_found_at(const struct found *found, uint64_t addr, size_t *target);

/* site.c. session_setup() gives an address space its control page. session_hook_found() hooks the
 * found sites; all threads of the space are stopped while the text is written, and it dispatches
 * events. No thread is stopped on return from either. site_note_refusal() records a place that
 * cannot be hooked. */
int session_setup(struct inject_session *s, struct space *space, pid_t pid, struct sb_err *err);
int session_hook_found(struct inject_session *s, struct space *space, pid_t pid,
		       struct found *found, struct sb_err *err);
void site_note_refusal(struct inject_session *s, size_t target, pid_t pid, const char *module,
		       const char *symbol, uint64_t address, const char *reason);
/* Gives a space that shares a page one of its own; see space_part(). All threads of the space are
 * stopped meanwhile. */
int session_part(struct inject_session *s, struct space *space, pid_t pid, struct control **old,
		 struct sb_err *err);

/* ids.c: a process that has changed its ids leaves the page that it shares. Does some of them in
 * each call. Dispatches events. */
void ids_step(struct inject_session *s);

/* release.c: removes the hooks from a process that is not followed, and releases it. */
void session_let_go(struct inject_session *s, struct proc *proc);

/*
 * untraced.c: processes beside the tree. session_take_sharers() takes processes that run in the
 * memory of a process in the tree but are not in it: vfork children born while their parent was
 * untraced. True: there was one.
 */
bool session_take_sharers(struct inject_session *s);
void session_hold_sharers(struct inject_session *s,
			  const struct space *space); /* ... of this one */
/* True: the new process runs in the memory of another one and counts as that one. */
bool session_share(struct inject_session *s, struct proc *proc);
/*
 * Traces a process, and the processes that share its memory, again for a change; births are traced
 * from then on. Stops nothing and dispatches nothing. session_untrace() must follow.
 */
int session_retake(struct inject_session *s, struct proc *proc, struct sb_err *err);
/* --no-follow: releases every process without work in progress. Dispatches events; processes may be
 * forgotten. Does nothing in a session that follows, or before its hooks are in. */
void session_untrace(struct inject_session *s);

/* (python.h: notes.c, unrecorded.c, python.c, unseen.c, leave.c) */

/* pyframes.c: with stacks, tells the stubs of the process how its interpreter keeps frames. As
 * aside_run(), dispatches events. */
void pyframes_look(struct inject_session *s, struct space *space, pid_t pid);

/* hook.c: finds and hooks what a process has of the targets and is not hooked yet. fresh: any
 * interpreter that it has mapped since the last look has not started yet. Dispatches events; the
 * process may end meanwhile (SB_ENOPROC). */
int session_hook(struct inject_session *s, struct proc *proc, bool fresh, struct sb_err *err);
/* As session_hook(), for one new target; the others are already in place. */
int session_hook_one(struct inject_session *s, struct proc *proc, size_t target,
		     struct sb_err *err);
/* Finds sites in a process without hooking them, for check and list. */
int session_find(struct inject_session *s, pid_t pid, const struct space *space,
		 struct found *found, struct sb_err *err);
/* Reports that a process is not hooked, and records the reason for its targets. */
void session_bar(struct inject_session *s, const struct record *rec, const struct sb_err *err);

/* tree.c: callbacks of the tree; doorbells. */
extern const struct tree_ops session_tree_ops;
/* Seizes one process and makes its record; its threads run on. parent: the pid of its parent. */
int session_take(struct inject_session *s, pid_t pid, pid_t parent, struct sb_err *err);
/* Seizes the whole tree, including children that are born meanwhile. */
int session_take_all(struct inject_session *s, struct sb_err *err);
/* Answers the doorbells of every process: finds and hooks what was loaded. Dispatches events. */
void session_rings(struct inject_session *s);

/* The functions of the backend's table (src/session/backend.h), by file: session.c, check.c,
 * detach.c, change.c, window.c, slow.c, result.c, list.c. */
int inject_open(struct session_core *core, struct sb_err *err);
void inject_close(struct session_core *core);
int inject_attach(struct session_core *core, struct sb_err *err);
enum session_end inject_step(struct session_core *core, int *next_ms, struct sb_err *err);
int inject_fd(const struct session_core *core);
int inject_check(struct session_core *core, struct sb_err *err);
int inject_check_spec(struct session_core *core, const struct spec *spec, struct sb_err *err);
void inject_detach(struct session_core *core);
size_t inject_room(const struct session_core *core);
int inject_add(struct session_core *core, size_t index, struct sb_err *err);
int inject_remove(struct session_core *core, size_t index, struct sb_err *err);
size_t inject_lanes(struct session_core *core, struct session_lane **lanes, uint64_t *t_ns);
size_t inject_pids(struct session_core *core, pid_t **pids);
void inject_apply(struct session_core *core, size_t target);
void inject_time(struct session_core *core, size_t target, bool on);
double inject_slowdown(struct session_core *core, size_t target, uint64_t now);
/* The share of a thread's time, in ticks, that went into delays. */
double slow_share(double injected, double overrun, double ticks);
void inject_counts(struct session_core *core, size_t first, size_t n, struct result_counts *counts);
void inject_result(struct session_core *core, struct result *res);
void inject_spans(struct session_core *core, size_t target, struct result_spans *spans);
/* times.c: of a site with a counter of its own. */
void times_of_site(struct inject_session *s, const struct site_record *site,
		   struct result_times *times);
void inject_times(struct session_core *core, size_t target, struct result_times *times);
size_t inject_functions(struct session_core *core, size_t target, struct session_function **list);
bool inject_timing(const struct session_core *core); /* python.c */
struct result *inject_list(struct session_core *core, struct sb_err *err);

#endif
