/* SPDX-License-Identifier: MIT */
#ifndef SB_SPACE_H
#define SB_SPACE_H

#include "journal.h"
#include "memory.h"
#include "page.h"
#include "plan.h"
#include "remote.h"
#include "tree.h"
#include "tree-task.h"

/*
 * One address space of the target and what sbinject has put there: the control page, the
 * private record, regions of stubs, changed text.
 *
 * Life: space_new() for a process or a fresh image; space_setup() makes the page (one thread is
 * borrowed); space_plant() hooks sites (all threads stop for its last part); forks get theirs
 * from space_fork(), which costs the target nothing; space_restore() takes everything out.
 * space_load() rebuilds one from the target's memory alone, after a crash.
 *
 * A region's description never changes once planted, so forks share it.
 */
struct control { /* a page, shared by a space and its forks */
	struct page page;
	unsigned int refs;
	uint64_t made_ns;
	uint64_t notes_read;	/* bytes of the page's notes that the session has taken */
	uint64_t look;		/* a mark of the session's */
	struct task_ids ids;	/* of the process that it was made for, at that time */
	uint64_t inode;		/* of its front, and ... */
	uint64_t rear_inode;	/* of its rear: for finding its mappings in /proc/PID/maps */
	struct control *before; /* what its first space left for it: space_part(); or NULL */
	void (*gone)(void *ctx, struct page *page); /* before it is unmapped; may be NULL */
	void *ctx;
};

struct region {
	unsigned int refs;
	uint64_t addr, size;
	struct journal_header *journal; /* the whole head of the region, up to the common code */
	struct journal_site *sites;	/* in it, sorted by address */
	struct journal_patch *patches;	/* in it, sorted by address */
	uint64_t planted_ns;		/* when its hooks came into the text first; 0: not yet */
};

struct space {
	unsigned int refs; /* processes that share this memory */
	struct memory mem;
	struct control *control; /* NULL before space_setup() */
	uint64_t page_addr, page_size, record_addr, counters_off;
	uint64_t session;
	struct arch_gadgets gadgets;
	struct region **regions;
	bool *stale; /* by region: its library was unloaded */
	size_t n_regions;
	uint32_t proc;		       /* index in the page, 0: none */
	uint8_t most_shift;	       /* as its record has it */
	bool hooked;		       /* text has been changed */
	uint64_t room_addr, room_size; /* an agent's room and its code (room.h); 0: none */
	bool agent_stays;	       /* it could not be stopped: what it uses stays mapped */
	bool lacks; /* a fork from the middle of a change: its parent has more by now */
	uint64_t unfinished_addr, unfinished_size; /* a region without a journal, found so */
	uint64_t half_addr; /* two pages of the front, not yet in their place; 0: none */
	/* Only as space_load() found it: */
	pid_t tracer_pid;
	bool dormant; /* its session is over, and no text is changed: see sb_page_header */
	int fds[8];   /* memfds of ours, not closed yet; found at a restore, too */
	size_t n_fds;
};

struct space *space_new(pid_t pid, struct sb_err *err);
struct space *space_get(struct space *space);
void space_put(struct space *space); /* forgets; takes nothing out of the target */

/* session: random id; the targets that the page must hold, and so many more if there is room. */
struct space_want {
	uint64_t session;
	uint32_t targets, more;
	/* A page was made for pid, and is mapped nowhere yet; dev as /proc/PID/maps shows it. */
	void (*made)(void *ctx, pid_t pid, uint32_t dev, uint64_t inode);
	void *ctx;
};

/*
 * All of these dispatch events while they wait: processes may fork, exec or end meanwhile. So a
 * space is held by a reference of the caller's, and threads are found by it, never by a process
 * that may be gone.
 *
 * Control page and private record.
 * Nobody is stopped on entry and exit. On failure nothing is left in the target.
 */
int space_setup(struct space *space, struct tree *tree, pid_t pid, const struct space_want *want,
		struct sb_err *err);

/*
 * A page of its own for a fork that has its parent's, at the same place and with all that the old
 * one has of it: its settings, its counts, its index. Every thread of the space is stopped for a
 * moment. On failure it has the old one. *old: what it had, whose reference is the caller's now;
 * NULL: it has that still. A fork in progress is in the way.
 */
int space_part(struct space *space, struct tree *tree, pid_t pid, const struct space_want *want,
	       struct control **old, struct sb_err *err);
void space_put_control(struct control *control);

/* The space of a fresh fork: child is stopped at its birth; its record is written. It has what is
 * in the child, which may be less than the parent has: see fork.c, and lacks. */
struct space *space_fork(struct space *parent, pid_t child, struct sb_err *err);

/* Gives the process an index in the page and writes its record. */
int space_register(struct space *space, pid_t pid, struct sb_err *err);

/* Its record allows for such delays from now on: before they are set. */
int space_allow(struct space *space, uint8_t most_shift);

/* A region or a room is about to be mapped there: noted in the record and in the page, for whoever
 * comes to recover. */
void space_announce_region(struct space *space, uint64_t addr, uint64_t size);
void space_announce_room(struct space *space, uint64_t addr, uint64_t size);

struct space_site {
	struct plan plan;
	uint32_t target;       /* whose cell it counts in */
	uint32_t each;	       /* number of its own counter, from 1; 0: none */
	bool bell;	       /* the doorbell instead of a counting hook */
	bool start;	       /* ... of an interpreter's start */
	uint32_t cookie;       /* kept in the journal */
	enum plan_refusal why; /* out: PLAN_OK when planted */
	uint64_t stub_entry;   /* out */
};

/*
 * Hooks n sites that lie within 2 GB of each other. Sites that cannot be taken get their
 * reason in `why`; that is no error. SB_ENOMODULE: their library was unloaded meanwhile;
 * SB_ENOPROC: the process ended. Every thread of the space is held while the text is written.
 */
int space_plant(struct space *space, struct tree *tree, pid_t pid, struct space_site *sites,
		size_t n, struct sb_err *err);

/*
 * Takes out the hooks whose cookie is set in cookie[0..n); the others stay. Every thread of the
 * space is held meanwhile. A hook that is not there any more is no error.
 */
int space_unplant(struct space *space, struct tree *tree, const bool *cookie, size_t n,
		  struct sb_err *err);

/* True if there are any of them: nobody need be stopped for it. */
bool space_has_hooks(const struct space *space, const bool *cookie, size_t n);

/* True if the text still has any hook of this region. */
bool space_hooks_any(const struct space *space, const struct region *region);

/* True if the text has these bytes of a hook. */
bool space_patch_in_place(const struct space *space, const struct journal_patch *patch);

/* True if the text still has this site's hook. */
bool space_hooks(const struct space *space, const struct region *region,
		 const struct journal_site *site);

/*
 * Takes everything out: text restored and compared, threads moved out of stubs, mappings gone.
 * Threads of the space must be traced; on exit they run. release: where all went well they run
 * untraced, let go from the same stop in which the mappings went; their processes stay in the
 * tree, without threads, for tree_forget(). Events are dispatched meanwhile. left_mapped: what is
 * in the way of unmapping, or NULL; the text is restored all the same, and the page says that the
 * rest is dormant.
 */
struct space_restored {
	size_t patches, changed_by_others;
	const char *left_mapped;
};
int space_restore(struct space *space, struct tree *tree, bool release, struct space_restored *out,
		  struct sb_err *err);

/* Only the text, of a process whose threads are all stopped (--no-children's forks). */
int space_restore_text(struct space *space, struct space_restored *out, struct sb_err *err);

/* From what lies in the target's memory. 0 and nothing that space_holds(): it is clean. Of several
 * sessions one: one that is not dormant where there is one. */
int space_load(pid_t pid, struct space **out, struct sb_err *err);

/* What is dormant, and whether an agent is part of it. */
bool space_has_dormant(pid_t pid, bool *agent);

/* A file in memory, made by the borrowed thread; to map code from it is permitted all the same. On
 * failure *fd may be that of a file whose answer was lost. */
int space_memfd(struct remote *r, const char *name, long *fd, struct sb_err *err);

/* A region whose mapping was lost on its way, as after a crash: the borrowed thread did not come
 * back in time, and the call had its effect all the same. */
void space_find_unfinished(struct space *space);

/* What remote_map_over() began with, as after a crash, into half_addr. */
struct maps;
void space_find_half(struct space *space, const struct maps *maps);

/* Which descriptors of the process are files of ours, into fds. */
void space_find_files(struct space *space);

/* True if there is something to take out. */
bool space_holds(const struct space *space);

/* True if the process maps regions or a control page of any session that are not dormant; tracer:
 * its pid or 0. */
bool space_is_hooked(pid_t pid, pid_t *tracer);

/* The stub's first instruction for an int3 hook at addr, 0 if there is none. */
uint64_t space_trap_stub(const struct space *space, uint64_t addr);

/* Keeps a region (the reference is taken). */
void space_add_region(struct space *space, struct region *region, bool stale);

/* The region that holds addr, or NULL. */
struct region *space_region_at(const struct space *space, uint64_t addr);

#endif
