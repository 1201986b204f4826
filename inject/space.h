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
 * One address space of the target and sbinject's changes in it: the control page, the private
 * record, regions of stubs, changed text.
 *
 * Life cycle: space_new() for a process or a fresh image; space_setup() makes the page (by remote
 * calls); space_plant() hooks sites (all threads stop for its last part); space_fork() makes the
 * space of a fork, which costs the target nothing; space_restore() removes everything. space_load()
 * rebuilds a space from the target's memory alone, after a crash.
 *
 * A region's description never changes once planted, so forks share it.
 */
struct control { /* a page, shared by a space and its forks */
	struct page page;
	unsigned int refs;
	uint64_t made_ns;
	uint64_t notes_read;	/* bytes of the page's notes that the session has read */
	uint64_t look;		/* a mark for the session's use */
	struct task_ids ids;	/* of the process that it was made for, at that time */
	uint64_t inode;		/* of its front, and ... */
	uint64_t rear_inode;	/* of its rear: to find its mappings in /proc/PID/maps */
	struct control *before; /* the former page of its first space: space_part(); or NULL */
	void (*gone)(void *ctx, struct page *page); /* before it is unmapped; may be NULL */
	void *ctx;
};

struct region {
	unsigned int refs;
	uint64_t addr, size;
	struct journal_header *journal; /* the whole head of the region, up to the common code */
	struct journal_site *sites;	/* in it, sorted by address */
	struct journal_patch *patches;	/* in it, sorted by address */
	uint64_t planted_ns; /* when its hooks were first written to the text; 0: not yet */
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
	uint32_t proc;	     /* index in the page, 0: none */
	uint8_t most_shift;  /* as in its record */
	uint16_t stack_word; /* the same */
	bool hooked;	     /* text has been changed */
	uint64_t mailbox_addr,
		mailbox_size; /* an agent's mailbox and its code (mailbox.h); 0: none */
	/*
	 * The same of an agent that needs no interpreter. Its owner unmaps it, or makes the size 0
	 * where the agent does; otherwise space_restore() unmaps it. room_begun: its header is
	 * written.
	 */
	uint64_t room_addr, room_size;
	bool room_begun;
	bool agent_stays; /* the agent could not be stopped: what it uses stays mapped */
	bool lacks;	  /* a fork from the middle of a change: its parent has more by now */
	uint64_t unfinished_addr, unfinished_size; /* a region without a journal, as found */
	uint64_t half_addr; /* two pages of the front, not yet in their place; 0: none */
	/* Only as space_load() found it: */
	pid_t tracer_pid;
	bool dormant; /* its session is over, and no text is changed: see struct sb_page_notice */
	int fds[8];   /* sbinject's memfds, not closed yet; also as found at a restore */
	size_t n_fds;
};

struct space *space_new(pid_t pid, struct sb_err *err);
struct space *space_get(struct space *space);
void space_put(struct space *space); /* frees the description; changes nothing in the target */

/* session: random id; the targets that the page must hold, and `more` if there is space. */
struct space_want {
	uint64_t session;
	uint32_t targets, more;
	bool spans, functions; /* calls can be timed, also by function */
	uint32_t chunks;       /* ... and recorded: as in struct page_want */
	uint32_t stack_bytes;  /* ... as there */
	/*
	 * A page was made for a process with these ids, and is not mapped anywhere yet; dev as
	 * /proc/PID/maps shows it. A thread is held meanwhile.
	 */
	void (*made)(void *ctx, const struct task_ids *ids, uint32_t dev, uint64_t inode);
	void *ctx;
};

/*
 * All of these dispatch events while they wait: processes may fork, exec or end meanwhile. So the
 * caller holds a reference to the space, and finds threads through it, never through a process that
 * may be gone.
 *
 * Control page and private record. No thread is stopped on entry and exit. On failure nothing is
 * left in the target.
 */
int space_setup(struct space *space, struct tree *tree, pid_t pid, const struct space_want *want,
		struct sb_err *err);

/*
 * Gives a fork that shares its parent's page a page of its own, at the same address and with all
 * that the old one has of it: its settings, its counts, its index. Every thread of the space is
 * stopped for a moment. On failure the fork keeps the old page. *old: the old page, with its
 * reference, which the caller owns now; NULL: the fork still has it. Fails during a fork.
 */
int space_part(struct space *space, struct tree *tree, pid_t pid, const struct space_want *want,
	       struct control **old, struct sb_err *err);
void space_put_control(struct control *control);

/*
 * The space of a fresh fork: child is stopped at its birth; its record is written. It describes
 * what is in the child, which may be less than the parent has: see fork.c, and lacks.
 */
struct space *space_fork(struct space *parent, pid_t child, struct sb_err *err);

/* Gives the process an index in the page and writes its record. */
int space_register(struct space *space, pid_t pid, struct sb_err *err);

/* Makes its record allow such delays. Call it before they are set. */
int space_allow(struct space *space, uint8_t most_shift);

/*
 * Tells the stubs where threads have the bounds of their stacks, if that is not known yet: by the
 * registers of a stopped thread, not the first one, that is on its own stack.
 */
void space_stack(struct space *space, const struct arch_regs *regs);

/*
 * Tells the stubs, of this process and its later forks, how its interpreter keeps the frames of a
 * thread. Once only: it has to be right from the beginning.
 */
void space_python(struct space *space, const struct sb_page_python *python);

/*
 * Announces a region or a mailbox that is about to be mapped there, in the record and in the page,
 * for recover.
 */
void space_announce_region(struct space *space, uint64_t addr, uint64_t size);
void space_announce_mailbox(struct space *space, uint64_t addr, uint64_t size);
/* addr: of its code. begun: its header is written. Size 0: it is unmapped. */
void space_announce_room(struct space *space, uint64_t addr, uint64_t size, bool begun);

struct space_site {
	struct plan plan;
	uint32_t target;     /* the target in whose cell it counts */
	uint32_t each;	     /* number of its own counter, from 1; 0: none */
	enum arch_kind kind; /* what it does with a hit */
	bool doorbell;	     /* a doorbell instead of a counting hook */
	bool start;	     /* ... of an interpreter's start */
	/*
	 * Of an exit, and of a timed entry: the function's entry. All exits are hooked, or none;
	 * without them an entry only counts (its kind becomes ARCH_HIT, with the reason in untimed)
	 * or, if it is `whole`, is not hooked either.
	 */
	uint64_t function;
	bool whole;
	bool values;	      /* of a timed entry and its exits: values of the calls are recorded */
	uint8_t follow, text; /* as in struct arch_count */
	enum plan_refusal untimed; /* out */
	uint32_t cookie;	   /* kept in the journal */
	enum plan_refusal why;	   /* out: PLAN_OK when planted */
	uint64_t stub_entry;	   /* out */
};

/*
 * Hooks n sites that lie within 2 GB of each other. Sites that cannot be hooked get their reason in
 * `why`; that is no error. SB_ENOMODULE: their library was unloaded meanwhile; SB_ENOPROC: the
 * process ended. Every thread of the space is held while the text is written.
 */
int space_plant(struct space *space, struct tree *tree, pid_t pid, struct space_site *sites,
		size_t n, struct sb_err *err);

/*
 * Removes the hooks whose cookie is set in cookie[0..n); the others stay. Every thread of the space
 * is held meanwhile. A hook that is already gone is no error.
 */
int space_unplant(struct space *space, struct tree *tree, const bool *cookie, size_t n,
		  struct sb_err *err);

/* True if the space has any of these hooks. No thread need be stopped for it. */
bool space_has_hooks(const struct space *space, const bool *cookie, size_t n);

/* True if the text still has any hook of this region. */
bool space_hooks_any(const struct space *space, const struct region *region);

/* True if the text has these bytes of a hook. */
bool space_patch_in_place(const struct space *space, const struct journal_patch *patch);

/* True if the text still has this site's hook. */
bool space_hooks(const struct space *space, const struct region *region,
		 const struct journal_site *site);

/*
 * Removes everything: text restored and compared, threads moved out of stubs, mappings removed.
 * Threads of the space must be traced; on exit they run. release: on success they run untraced,
 * released from the same stop in which the mappings were removed; their processes stay in the tree,
 * without threads, for tree_forget(). Events are dispatched meanwhile. left_mapped: what prevents
 * unmapping, or NULL; the text is restored all the same, and the page marks the rest as dormant.
 */
struct space_restored {
	size_t patches, changed_by_others;
	const char *left_mapped;
};
int space_restore(struct space *space, struct tree *tree, bool release, struct space_restored *out,
		  struct sb_err *err);

/*
 * Rebuilds a space from the target's memory. 0, with an *out for which space_holds() is false: the
 * process is clean. Of several sessions it takes one; one that is not dormant where there is one.
 */
int space_load(pid_t pid, struct space **out, struct sb_err *err);

/* Whether the process has dormant remains, and whether an agent is among them. */
bool space_has_dormant(pid_t pid, bool *agent);

/*
 * A file in memory, made by a remote call; code may be mapped from it nevertheless. On failure *fd
 * may be that of a file whose answer was lost.
 */
int space_memfd(struct remote *r, const char *name, long *fd, struct sb_err *err);

/*
 * Finds a region whose remote mmap(2) had its effect although its result was lost: the thread did
 * not return in time, or the tracer crashed.
 */
void space_find_unfinished(struct space *space);

/*
 * Finds the first two pages of an unfinished remote_map_over(), also after a crash; into half_addr.
 */
struct maps;
void space_find_half(struct space *space, const struct maps *maps);

/* Finds the process's descriptors of sbinject's files; into fds. */
void space_find_files(struct space *space);

/* True if there is something to remove. */
bool space_holds(const struct space *space);

/*
 * True if the process maps regions or a control page, not dormant, of any session; tracer: its pid
 * or 0.
 */
bool space_is_hooked(pid_t pid, pid_t *tracer);

/* The stub's first instruction for an int3 hook at addr, 0 if there is none. */
uint64_t space_trap_stub(const struct space *space, uint64_t addr);

/* Adds a region; takes over the caller's reference. */
void space_add_region(struct space *space, struct region *region, bool stale);

/* The region that holds addr, or NULL. */
struct region *space_region_at(const struct space *space, uint64_t addr);

#endif
