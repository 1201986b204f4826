/* SPDX-License-Identifier: MIT */
#ifndef SB_SESSION_PRIV_H
#define SB_SESSION_PRIV_H

#include "sites.h"
#include "inject/bell.h"
#include "inject/clock.h"
#include "inject/region.h"
#include "inject/space.h"
#include "src/session/foreign.h"
#include "src/session/processes.h"
#include "src/session/session.h"
#include "src/session/targets.h"
#include "src/session/warnings.h"

/* Shared by the files of this folder only. */

/* The agent of a process with an interpreter; see session/inject/python.h. */
struct room;
struct python {
	struct room *room;  /* NULL: no agent in this process (yet) */
	bool looked;	    /* an interpreter was found and dealt with */
	bool belled;	    /* its start is awaited by doorbells */
	bool starting;	    /* not initialized: only a bell can bring the command in */
	bool dirty;	    /* settings have changed since the last APPLY */
	bool relist;	    /* ... and the list of targets */
	uint64_t on;	    /* which targets were on at that time, as a hash */
	bool said;	    /* what it waits for has been said */
	bool applied;	    /* the agent is at work */
	bool leaving;	    /* it is being taken out */
	unsigned int loads; /* how often it could not be loaded */
	bool at_work;	    /* something is under way in its interpreter */
	bool stays;	    /* it could not be taken out */
	uint32_t warned;    /* of these of its flags, enum sb_room_flags */
	uint64_t peeked;    /* when its chain was last looked at */
	uint64_t unsteady;  /* until then that is done often: it was found taken out */
};

/* What each slot had been delayed at the last two looks (session/inject/slow.c). */
struct slow_look {
	uint64_t at[2]; /* ns; the older one first */
	struct page_spent *spent[2];
};

/* One program image of one process, living or ended: a row of the result's processes. */
struct record {
	pid_t pid;
	unsigned int generation;
	char comm[64];
	char *exe;
	struct space *space;	      /* while it lives */
	bool *in_scope;		      /* by target: pid= matches */
	struct result_counts *counts; /* by target, once it has ended */
	struct region **regions;      /* counted references: which sites it had */
	size_t n_regions;
	uint64_t since_ns;	/* when it was first seen */
	struct slow_look *slow; /* by target; NULL: not looked at yet */
	struct python python;
	uint64_t code;	 /* code_of_maps() at the last look that left nothing open; 0: none */
	uint64_t looked; /* the last round of looking for targets that was done here */
	bool looking;	 /* for targets, just now */
	unsigned int part_tries; /* that failed: see session/inject/ids.c */
	bool ended;
	struct record *next;
};

/* A site as the result shows it; the journal's cookie is its index. */
struct site_record {
	size_t target;
	char *module, *symbol, *build_id;
	uint64_t address, size;
	uint32_t each; /* number of its own counter, from 1; 0: none */
	bool int3, bell, start;
	size_t next_free; /* while it is free: number of the next one, from 1 */
};

struct session {
	const struct session_config *cfg;
	struct tree tree;
	struct clock clk;
	struct hook_cost cost;
	struct hook_bench *bench; /* measures cost again; NULL: it cannot be measured */
	bool clock_ok;
	char clock_why[160];
	struct target *target;
	size_t n_targets, max_targets; /* used; the arrays' size */
	bool enabled;
	struct site_record *site;
	size_t n_sites;
	struct record *records;
	uint64_t round;	  /* of looking for targets in every process */
	size_t n_folded;  /* records that were forgotten */
	size_t free_site; /* number of a free entry of site[], from 1; 0: none */
	struct image_plans *plans;
	struct foreign foreign; /* uprobes of other tools, once they were asked for */
	bool foreign_known;
	struct bells *bells;
	void (*answer_rings)(struct session *s); /* session_rings(): for who waits below it */
	bool armed, detached, filtered;
	bool gil;	      /* an interpreter with a global lock was watched */
	uint64_t gil_ns[2];   /* the longest that an agent held one: at attach, at detach */
	uint64_t attached_ns; /* when armed, CLOCK_MONOTONIC_RAW */
	uint64_t window_ns;   /* when the session's window opened; 0: not yet */
	uint64_t started_real;
	double wall_s;
	uint64_t ended_real;
	uint64_t delays_ns; /* when delays could first be given; 0: not yet */
	uint64_t last_tick, last_slow, last_refine;
	size_t start_on_target; /* SIZE_MAX: none */
	bool slow_measuring, slow_warned;
	uint64_t lapsed;
	uint64_t bells_lost; /* doorbells of pages that are gone that gave up waiting */
	uint64_t stalled_ns; /* time in which the session could not look after its processes */
	uint64_t last_step;
	uint64_t left_behind; /* processes in which something of ours had to stay */
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
	struct guest *guest; /* agents in processes without a record */
	size_t n_guests;
	uint64_t look;		   /* of page_walk_begin(), to see each page once */
	const struct record *walk; /* where page_walk_next() is */
	size_t ids_turn;	   /* of ids_step() */
	struct warnings warnings;
};

#define NO_IMAGE (-1u) /* generation of a launched process before its command's own image */

#define session_warn(s, ...) warnings_add(&(s)->warnings, __VA_ARGS__)

/*
 * The files of this folder, those below first. A file calls those above it in this list only: what
 * lies lower waits by session_wait(), which answers doorbells through s->answer_rings, and tells of
 * an end through the tree's own s->tree.ops (test/case/object-circles.sh).
 */

/* state.c: what all of them ask. */
/* Has the user asked for the end? What the session says meanwhile is passed on. */
bool session_ends(const struct session *s);
/* Says that the session is alive, for the leases, and adds up how long it was not. */
void session_alive(struct session *s);
/* Half a millisecond in which events are dispatched and doorbells answered. Processes that end in
 * it are buried: hold no pointer to one but by a counted reference to its space. */
void session_wait(struct session *s);
bool session_interrupted(void); /* a signal waits that would end or stop `list` */
void session_hurry(bool on);	/* the tracer does not wait for its turn */
/* Another tool that has uprobes in that module of the process's: "NAME (pid N)", or "" where the
 * kernel tells of none. */
void session_probes_in(struct session *s, pid_t pid, const char *module, char *buf, size_t size);
struct record *record_of(const struct session *s, const struct space *space); /* NULL: none */

/* walk.c: the pages of living processes, each once: forks share one. The next, until NULL; no
 * record may come or go meanwhile. */
void page_walk_begin(struct session *s);
const struct page *page_walk_next(struct session *s);

/*
 * each.c: functions' own counters. each_number(): that of a function, from 1; 0: there are none in
 * this session, of this target (thread=), or any more. address: 0 of Python's functions.
 * each_keep(): what a page has counted that no process uses any more. each_sums(): what each has
 * counted, by number; the caller frees; NULL: there are none. each_list(): those of a target, as
 * session_functions().
 */
uint32_t each_number(struct session *s, size_t target, const char *module, const char *symbol,
		     uint64_t address);
void each_keep(struct session *s, const struct page *page);
uint64_t *each_sums(struct session *s);
size_t each_list(struct session *s, size_t target, struct session_function **list);
void each_free(struct session *s);

/* record.c: program images of processes, and what they counted. */
struct record *record_new(struct session *s, struct proc *proc, struct record *parent);
/* Of those that have not ended the next that this round of looking for targets has not come to, or
 * NULL. Forks join meanwhile, at the head; a fork of a visited process counts as visited. */
struct record *record_next(const struct session *s);
void record_end(struct session *s, struct record *rec); /* takes its counters; frees its slot */
/* One that was at this index of the page is there no more, and lives. */
void record_left_page(struct session *s, struct control *control, uint32_t proc);
void record_counts(const struct session *s, const struct record *rec, size_t target,
		   struct page_sums *sums);
void record_keep_regions(struct record *rec);
void record_drop(struct session *s, struct record *rec);
void record_free_site(struct session *s, uint32_t cookie);
void record_fold(struct session *s); /* forgets the oldest of those that have ended */
/* What a hook takes that its own measurement does not see; agents measure all of it. */
double target_cost_ticks(const struct session *s, size_t target);
void counts_from_sums(const struct session *s, size_t target, const struct page_sums *sums,
		      struct result_counts *counts);

/* window.c: settings into control pages. */
void window_apply(struct session *s, struct record *rec); /* of all targets */
void window_apply_all(struct session *s);
void window_apply_target(struct session *s, size_t target); /* of one target, everywhere */
uint64_t window_update(struct session *s, uint64_t now); /* opens and closes; ns until the next */
void window_threads(struct session *s);			 /* thread= tables */

/* slow.c */
bool slow_check(struct session *s, uint64_t now, struct sb_err *err); /* true: too slow */

/* result.c: what ended processes left and living ones show. */
void session_other_sums(struct session *s, size_t i, struct page_sums *sums);
void session_target_sums(struct session *s, size_t target, struct page_sums *sums);

/* same.c: what code is mapped, ours aside, as a number; is it what it was at the last look, which
 * left nothing open? */
uint64_t code_of_maps(const struct maps *maps);
bool session_same_code(const struct record *rec);

/*
 * bell.c: a doorbell, unless something is hooked or found there already; the dynamic linker's, with
 * plans for all of found; one at an interpreter's function, if it has one of that name.
 */
struct found;
void bell_add(const struct session *s, const struct space *space, struct found *found,
	      const struct resolve_site *rs);
void bell_find(struct session *s, pid_t pid, const struct space *space, struct found *found);
void session_add_bell(const struct session *s, const struct space *space, struct found *found,
		      struct image *img, uint64_t bias, const char *name);
/* The session's number of the site that is hooked at addr, or SIZE_MAX; is one found there, and of
 * which target? */
size_t session_hooked_at(const struct session *s, const struct space *space, uint64_t addr);
bool session_found_at(const struct found *found, uint64_t addr, size_t *target);

/* site.c: an address space gets its page; hooks what was found; a place that cannot be hooked. */
int session_setup(struct session *s, struct space *space, pid_t pid, struct sb_err *err);
int session_hook_found(struct session *s, struct space *space, pid_t pid, struct found *found,
		       struct sb_err *err);
void site_note_refusal(struct session *s, size_t target, pid_t pid, const char *module,
		       const char *symbol, uint64_t address, const char *reason);
/* A page of its own for one that shares it; see space_part(). */
int session_part(struct session *s, struct space *space, pid_t pid, struct control **old,
		 struct sb_err *err);

/* ids.c: processes that have changed their ids leave the page that they share. Dispatches events.
 * Now and then. */
void ids_step(struct session *s);

/* release.c: takes the hooks out of a process that is not followed, and releases it. */
void session_let_go(struct session *s, struct proc *proc);

/*
 * untraced.c: processes beside the tree. session_take_sharers() takes those that run in the memory
 * of one in the tree and are not in it: vfork children born while nobody traced their parent. True
 * if there was one.
 */
bool session_take_sharers(struct session *s);
void session_hold_sharers(struct session *s, const struct space *space); /* ... of this one's */
/* True if the process, which is new, runs in the memory of another: it counts as that. */
bool session_share(struct session *s, struct proc *proc);
/*
 * Back under trace for a change, with whoever shares its memory; births are traced from then on.
 * Nobody is stopped. Dispatches nothing. session_untrace() is to follow.
 */
int session_retake(struct session *s, struct proc *proc, struct sb_err *err);
/* --no-follow: lets everyone go with whom nothing is under way. Dispatches events; processes may be
 * forgotten. Does nothing in a session that follows, or before its hooks are in. */
void session_untrace(struct session *s);

/* (python.h: notes.c, guest.c, python.c, unseen.c, leave.c) */

/* hook.c: finds and hooks whatever of the targets a process has and is not hooked yet. fresh:
 * whatever of an interpreter it has mapped since the last look has not started yet. */
int session_hook(struct session *s, struct proc *proc, bool fresh, struct sb_err *err);
/* Of one target only, which is new: the others are where they can be. */
int session_hook_one(struct session *s, struct proc *proc, size_t target, struct sb_err *err);
/* Finds sites in a process without hooking; for check and list. */
int session_find(struct session *s, pid_t pid, const struct space *space, struct found *found,
		 struct sb_err *err);
/* A process is not hooked: says so, and why its targets came to nothing. */
void session_bar(struct session *s, const struct record *rec, const struct sb_err *err);

/* check.c */
int session_check_target(const struct session *s, const struct spec *spec, struct sb_err *err);

/* tree.c: what the tree tells; doorbells. */
extern const struct tree_ops session_tree_ops;
int session_take(struct session *s, pid_t pid, pid_t parent, struct sb_err *err);
/* Seizes the whole tree, children that come meanwhile included. */
int session_take_all(struct session *s, struct sb_err *err);
void session_rings(struct session *s);

#endif
