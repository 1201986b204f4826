/* SPDX-License-Identifier: MIT */
/*
 * Removing everything, from the journals; the same code whether the journals are this session's or
 * were read from a target that a dead tracer left behind.
 *
 * The text first, so that no thread enters a stub any more. The threads that are in a stub are
 * moved to where they would be without it. So are, in a second stop, those registers that a signal
 * handler will return to; then the mappings are removed, and the threads run on from that stop.
 */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "clock.h"
#include "fault.h"
#include "frames.h"
#include "leave.h"
#include "region.h"
#include "stack.h"
#include "trap.h"
#include "tree-task.h"
#include "src/base/log.h"
#include "src/base/maps.h"

enum {
	RUN_OUT_TRIES = 50,
	STOP_TRIES = 10,
	TEXT_TRIES = 3,
	SEARCH_MOST = 512 << 20, /* bytes of the target's memory; a tenth of a second */
	SEARCH_LEAST = 4 << 20,
	CONTEXT_MAX = 1024,
};

enum { PAUSE_NS = 50000, REST_MOST_NS = 2000000 };

/* How long something may keep the stubs mapped. A search may take longer by itself. */
#define LEAVE_NS 2000000000ull
enum { LEAVE_PASSES = 3 };

#define PASS_NS 5000000ull

/* Restores only the text, of a process whose threads are all stopped (--no-children's forks). */
static int write_old_text(struct space *space, struct space_restored *out, struct sb_err *err)
{
	int ret = 0;

	for (size_t i = space->n_regions; i-- > 0;)
		if (region_write_text(space->regions[i], &space->mem, true, out, err) < 0)
			ret = -SB_ETARGET;
	return ret;
}

enum { PAGE = 4096 };

enum where { OUT, IN_STUB, IN_EVENT };

/*
 * A thread deep in the kernel cannot be moved. /proc shows its return address, which may be in a
 * stub: after a page fault, or a displaced system call.
 */
static enum where where_kept(const struct space *space, const struct thread *t)
{
	bool in_call;
	uint64_t pc;

	if (task_is_dead(t->proc->pid, t->tid))
		return OUT;
	if (!task_waits(t->tid, &pc, &in_call))
		return IN_STUB; /* it is on its way to its stop */
	return leave_is_ours(space, pc) ? IN_STUB : OUT;
}

static enum where where_is(struct space *space, struct thread *t)
{
	struct arch_regs regs;

	if (t->state != THREAD_STOPPED)
		return t->kept ? where_kept(space, t) : IN_STUB;
	if (pt_get_regs(t->tid, &regs) < 0)
		return OUT; /* it is ending */
	if (tree_forks(t))
		return IN_EVENT;
	if (!trap_take_back(space, t, &regs))
		return IN_STUB;
	if (arch->pc(&regs) - space->mailbox_addr < space->mailbox_size ||
	    arch->pc(&regs) - space->room_addr < space->room_size)
		return IN_STUB; /* on its way out of a pending call */
	switch (leave_code(space, &regs, true)) {
	case LEAVE_MOVED:
		return pt_set_regs(t->tid, &regs) == 0 ? OUT : IN_STUB;
	case LEAVE_OUTSIDE:
		return OUT;
	default:
		return IN_STUB;
	}
}

/*
 * The few threads that cannot be moved, since they are writing their figures. A stub takes no lock
 * and makes no call: alone on the machine, a thread finishes that in microseconds. So it runs while
 * the others are still held, also where job control has stopped it: it may stay stopped for ever.
 */
static enum where run_out(struct space *space, struct tree *tree, pid_t tid)
{
	enum where where = IN_STUB;

	for (int i = 0; i < RUN_OUT_TRIES && where == IN_STUB; i++) {
		struct thread *t = tree_thread(tree, tid);

		if (!t || t->pinned || t->kept)
			return IN_STUB;
		tree_run_thread(tree, t);
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
		t = tree_thread(tree, tid);
		/* Its position is known only once it is stopped. */
		if (t && tree_stop_thread(tree, t, 100000))
			where = where_is(space, t);
	}
	return where;
}

/* True if no thread is in the stubs or will return into them from the kernel. All are stopped. */
static bool threads_out(struct space *space, struct tree *tree)
{
	struct thread *t;
	pid_t tid = 0;
	bool out = true;

	while ((t = tree_next_thread(tree, space, tid))) {
		enum where where = where_is(space, t);

		tid = t->tid;
		if (where == IN_STUB)
			where = run_out(space, tree, tid);
		if (where != OUT)
			out = false;
		if (!tree_thread(tree, tid))
			return false; /* it ended: the walk has lost its place */
	}
	return out;
}

/*
 * The registers that signal handlers will return to. With the text restored and every thread out of
 * the stubs, a new way into them is unlikely. So memory is searched while the target runs, and the
 * finds are changed while it is stopped, until a search finds nothing.
 */
struct returns {
	struct space *space;
	struct tree *tree;
	uint64_t *at;
	size_t n, cap;
	uint64_t paused_ns; /* CPU time at the last pause */
	bool searched;	    /* since the threads came out and the last change */
	bool complete;	    /* all memory that may hold a frame; otherwise stopped stacks */
};

static void returns_add(void *ctx, uint64_t at, const struct arch_regs *regs)
{
	struct returns *r = ctx;

	if (!leave_is_ours(r->space, arch->pc(regs)))
		return;
	if (r->n == r->cap) {
		r->cap = r->cap ? r->cap * 2 : 16;
		r->at = realloc(r->at, r->cap * sizeof(*r->at));
		if (!r->at)
			abort();
	}
	r->at[r->n++] = at;
}

/*
 * A large process takes some 100 ms to search. With real-time priority the search rests half as
 * long as it works; without, the scheduler divides the processor.
 */
static void returns_pause(void *ctx)
{
	struct returns *r = ctx;
	uint64_t now = clock_thread_ns(), worked = now - r->paused_ns;
	long rest = PAUSE_NS;

	r->paused_ns = now;
	if (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK)
		rest = worked / 2 < REST_MOST_NS ? (long)(worked / 2) : REST_MOST_NS;
	tree_dispatch(r->tree);
	nanosleep(&(struct timespec){ .tv_nsec = rest }, NULL);
}

static bool being_born(const struct tree *tree, const struct space *space)
{
	for (const struct proc *p = tree->procs; p; p = p->next)
		for (const struct thread *t = p->threads; t && p->space == space; t = t->next)
			if (t->pinned)
				return true;
	return false;
}

/* Dispatches events, so that a process in its birth stop is not kept there for long. */
static void returns_search(struct returns *r)
{
	uint64_t budget = being_born(r->tree, r->space) ? SEARCH_LEAST : SEARCH_MOST;

	r->n = 0;
	r->paused_ns = clock_thread_ns();
	r->complete = frames_everywhere(&r->space->mem, budget, returns_add, r, returns_pause);
	r->searched = true;
}

static void returns_search_stacks(struct returns *r)
{
	size_t scan = frames_scan_bytes(tree_count_threads(r->tree, r->space));
	struct arch_regs regs;

	for (struct proc *p = r->tree->procs; p; p = p->next)
		for (struct thread *t = p->threads; t && p->space == r->space; t = t->next)
			if (t->state == THREAD_STOPPED && pt_get_regs(t->tid, &regs) == 0)
				frames_on_stack(&r->space->mem, arch->sp(&regs), scan, returns_add,
						r);
}

/* All are stopped. What cannot be read is zeros. */
static bool is_covered(const struct returns *r, uint64_t at)
{
	enum { AROUND = ARCH_FRAME_MAX & ~(PAGE - 1) };
	uint64_t from = (at - AROUND) & ~(PAGE - 1ull);
	size_t len = 2 * AROUND + PAGE;
	uint8_t *buf = calloc(1, len);
	bool covered;

	if (!buf)
		abort();
	for (size_t off = 0; off < len; off += PAGE)
		memory_peek(&r->space->mem, from + off, buf + off, PAGE);
	covered = arch->context_covered(buf, len, from, at - from);
	free(buf);
	return covered;
}

/* All are stopped. */
static void return_change(const struct returns *r, uint64_t at)
{
	const struct memory *mem = &r->space->mem;
	struct arch_regs regs;
	uint8_t bytes[CONTEXT_MAX];
	size_t off = 0;

	if (arch->context_size > sizeof(bytes) ||
	    memory_peek(mem, at, bytes, arch->context_size) != arch->context_size ||
	    !arch->context_next(bytes, arch->context_size, &off, &regs) || is_covered(r, at) ||
	    leave_code(r->space, &regs, false) != LEAVE_MOVED)
		return;
	arch->context_store(bytes, &regs);
	memory_write(mem, at, bytes, arch->context_size, NULL);
}

/*
 * The remains of an earlier handler's frame, below the stack pointer of a thread on its own stack:
 * no handler returns to it, and it may lie there for ever. All are stopped.
 */
static bool return_is_dead(const struct returns *r, const struct maps *maps, uint64_t at)
{
	const struct map_entry *map = maps_find(maps, at);
	struct arch_regs regs;
	uint64_t low;

	if (is_covered(r, at))
		return true;
	for (struct proc *p = r->tree->procs; map && p; p = p->next) {
		for (struct thread *t = p->threads; t && p->space == r->space; t = t->next) {
			if (t->state != THREAD_STOPPED || pt_get_regs(t->tid, &regs) < 0)
				continue;
			if (arch->sp(&regs) > at && arch->sp(&regs) < map->end &&
			    stack_is_own(t->tid, &r->space->mem, &regs, &low) && at >= low)
				return true;
		}
	}
	return false;
}

static bool returns_dead(const struct returns *r)
{
	struct maps maps;
	bool dead = true;

	if (maps_read(r->space->mem.pid, &maps, NULL) < 0)
		return false;
	for (size_t i = 0; i < r->n && dead; i++)
		dead = return_is_dead(r, &maps, r->at[i]);
	maps_free(&maps);
	return dead;
}

/* All are stopped and out of the stubs: true if no frame returns into them either. */
static bool returns_none(struct returns *r)
{
	if (!r->space->n_regions)
		return true;
	if (!r->searched)
		return false;
	if (!r->complete)
		returns_search_stacks(r);
	for (size_t i = 0; i < r->n; i++)
		return_change(r, r->at[i]);
	r->searched = false;
	return !r->n || returns_dead(r);
}

/* False: the thread of the remote call was lost, and the answer with it. */
static bool call_away(struct remote *r, struct sb_err *err, long nr, uint64_t a, uint64_t b)
{
	long ret;

	return remote_syscall(r, &ret, err, nr, a, b, 0ul, 0ul, 0ul, 0ul) == 0;
}

static bool unmap_all(struct space *space, struct remote *r, struct sb_err *err)
{
	bool ok = true;

	for (size_t i = 0; i < space->n_regions && ok; i++)
		ok = call_away(r, err, SYS_munmap, space->regions[i]->addr,
			       space->regions[i]->size);
	if (space->mailbox_size && ok)
		ok = call_away(r, err, SYS_munmap, space->mailbox_addr, space->mailbox_size);
	if (space->room_size && ok)
		ok = call_away(r, err, SYS_munmap, space->room_addr, space->room_size);
	if (space->unfinished_size && ok)
		ok = call_away(r, err, SYS_munmap, space->unfinished_addr, space->unfinished_size);
	if (space->half_addr && ok)
		ok = call_away(r, err, SYS_munmap, space->half_addr, REMOTE_MAP_FIRST);
	if (space->page_addr && ok)
		ok = call_away(r, err, SYS_munmap, space->page_addr, space->page_size + 4096);
	for (size_t i = 0; i < space->n_fds && ok; i++)
		ok = call_away(r, err, SYS_close, (uint64_t)space->fds[i], 0);
	return ok;
}

static bool is_mailbox(const struct space *space, uint64_t addr)
{
	struct sb_mailbox mailbox;

	return memory_peek(&space->mem, addr, &mailbox, sizeof(mailbox)) == sizeof(mailbox) &&
	       mailbox.magic == SB_MAILBOX_MAGIC;
}

/*
 * Ranges that were unmapped before the thread was lost must not be unmapped again: something else
 * may have been mapped there.
 */
static void forget_unmapped(struct space *space)
{
	struct sb_page_header page;
	struct journal_header h;
	size_t n = 0;

	for (size_t i = 0; i < space->n_regions; i++) {
		if (memory_peek(&space->mem, space->regions[i]->addr, &h, sizeof(h)) == sizeof(h) &&
		    h.magic == JOURNAL_MAGIC && h.session == space->session)
			space->regions[n++] = space->regions[i];
		else
			region_put(space->regions[i]);
	}
	space->n_regions = n;
	if (memory_peek(&space->mem, space->page_addr, &page, sizeof(page)) != sizeof(page) ||
	    page.magic != SB_PAGE_MAGIC || page.session != space->session)
		space->page_addr = 0;
	if (!is_mailbox(space, space->mailbox_addr + PAGE))
		space->mailbox_addr = space->mailbox_size = 0;
	if (!is_mailbox(space, space->room_addr + PAGE))
		space->room_addr = space->room_size = 0;
	space->unfinished_size = space->half_addr = space->n_fds = 0;
}

/*
 * By remote calls on one thread while the rest is stopped, so that nothing can point into the
 * mappings between the check and the munmap.
 */
static int unmap(struct space *space, struct tree *tree, struct sb_err *err)
{
	struct remote r;
	bool ok;
	int ret = remote_begin(&r, tree, space, &space->mem, &space->gadgets, err);

	if (ret < 0)
		return ret;
	fault_point("restore-unmap", space->mem.pid);
	/*
	 * A file that could not be closed at once, or a fork's copy of it: identified by inode,
	 * since the target may have reused its number.
	 */
	if (space->mailbox_size || space->lacks)
		space_find_files(space);
	space_find_unfinished(space);
	ok = unmap_all(space, &r, err);
	remote_end(&r);
	if (ok)
		return 0;
	forget_unmapped(space);
	return -SB_ETARGET;
}

static void forget_regions(struct space *space)
{
	for (size_t i = 0; i < space->n_regions; i++)
		region_put(space->regions[i]);
	space->n_regions = 0;
	space->page_addr = space->record_addr = 0;
	space->unfinished_size = space->half_addr = space->n_fds = 0;
	space->mailbox_addr = space->mailbox_size = 0;
	space->room_addr = space->room_size = 0;
	space->hooked = false;
}

static bool still_there(const struct tree *tree, const struct space *space)
{
	for (const struct proc *p = tree->procs; p; p = p->next)
		if (p->space == space)
			return true;
	return false;
}

static int not_unmapped(const struct space *space, const struct sb_err *why, struct sb_err *err)
{
	err_set(err, why->code,
		"process %d: its code is restored, but a mapping of sbinject's stays in it: %s",
		space->mem.pid, why->what);
	err_hint(err, "sbinject recover -p %d removes it", space->mem.pid);
	return -(int)why->code;
}

static int not_restored(const struct space *space, const struct sb_err *why, struct sb_err *err)
{
	err_set(err, why->code, "process %d is still hooked: %s", space->mem.pid, why->what);
	err_hint(err, "sbinject recover -p %d restores it", space->mem.pid);
	return -(int)why->code;
}

static void let_go(struct space *space, struct tree *tree, bool release)
{
	if (!release) {
		tree_resume(tree, space);
		return;
	}
	/* A vfork child before the parent that waits for it. */
	for (struct proc *p = tree->procs; p; p = p->next)
		if (p->space == space && p->vfork_parent)
			tree_release(tree, p);
	for (struct proc *p = tree->procs; p; p = p->next)
		if (p->space == space)
			tree_release(tree, p);
}

/*
 * No thread runs in the stubs or returns into them: unmaps them. All are stopped; they run
 * afterwards if that succeeded.
 */
static int take_away(struct space *space, struct tree *tree, bool release, struct sb_err *why)
{
	int ret = space_holds(space) ? unmap(space, tree, why) : 0;

	if (ret < 0)
		return ret;
	let_go(space, tree, release);
	forget_regions(space);
	return 0;
}

/*
 * Stops the threads, however long a loaded machine takes: a slow stop is no reason to leave a
 * target hooked.
 */
static int stop(struct space *space, struct tree *tree, struct sb_err *err)
{
	struct sb_err why = { 0 };

	for (int i = 0; i < STOP_TRIES; i++) {
		if (!still_there(tree, space))
			return err_set(err, SB_ENOPROC, "process %d ended", space->mem.pid);
		if (tree_stop(tree, space, &why) == 0)
			return 0;
	}
	return not_restored(space, &why, err);
}

/*
 * All are stopped. Tried again before it is given up: an int3 that stays kills the target once
 * sbinject has ended.
 */
static bool restore_text(struct space *space, struct space_restored *out, struct sb_err *err)
{
	struct sb_err why = { 0 };

	for (int i = 0; i < TEXT_TRIES; i++) {
		memset(out, 0, sizeof(*out));
		memset(&why, 0, sizeof(why));
		if (write_old_text(space, out, &why) >= 0)
			return true;
	}
	*err = why;
	return false;
}

/*
 * Something prevents it: a fork in progress, a signal on every thread. A thread that starts threads
 * or children without end is in the event of the next one unless events are dispatched all along.
 */
static void let_pass(struct tree *tree, int attempt)
{
	uint64_t until = clock_ns() + (attempt > 2 ? PASS_NS : 0);

	tree_dispatch(tree);
	while (clock_ns() < until) {
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
		tree_dispatch(tree);
	}
}

/* The text is as it was. */
static void mark_dormant(const struct space *space)
{
	uint32_t dormant = 1;

	if (space->page_addr)
		memory_write(&space->mem,
			     space->page_addr + space->counters_off +
				     offsetof(struct sb_page_notice, dormant),
			     &dormant, sizeof(dormant), NULL);
}

static int restore(struct returns *r, bool release, struct space_restored *out, struct sb_err *err)
{
	uint64_t end = clock_ns() + LEAVE_NS;
	struct space *space = r->space;
	struct tree *tree = r->tree;
	struct sb_err why = { 0 };
	const char *in_way = NULL;
	bool text_done = false;

	for (int i = 0; i < LEAVE_PASSES || clock_ns() < end; i++) {
		int ret = stop(space, tree, err);

		if (ret < 0)
			return ret;
		/* While text cannot be restored the stubs that it jumps into must stay. */
		if (!text_done && !restore_text(space, out, err)) {
			tree_resume(tree, space);
			return -SB_ETARGET;
		}
		text_done = true;
		fault_point("restore-text", space->mem.pid);
		if (!threads_out(space, tree)) {
			in_way = "a thread could not be moved out of a hook";
			r->searched = false;
		} else if (!returns_none(r)) {
			in_way = "a signal handler still returns into a hook";
		} else if (space->agent_stays) {
			in_way = "an agent stays in it";
			mark_dormant(space);
			let_go(space, tree, release);
			break;
		} else if (take_away(space, tree, release, &why) == 0)
			return 0;
		tree_resume(tree, space);
		if (why.code == SB_ENOPROC) {
			*err = why;
			return -SB_ENOPROC;
		}
		let_pass(tree, i);
		if (space->n_regions && still_there(tree, space))
			returns_search(r);
	}
	if (why.code)
		return not_unmapped(space, &why, err);
	mark_dormant(space);
	out->left_mapped = in_way;
	return 0;
}

int space_restore(struct space *space, struct tree *tree, bool release, struct space_restored *out,
		  struct sb_err *err)
{
	struct returns r = { .space = space, .tree = tree };
	int ret;

	memset(out, 0, sizeof(*out));
	ret = restore(&r, release, out, err);
	free(r.at);
	return ret;
}
