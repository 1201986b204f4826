/* SPDX-License-Identifier: MIT */
#include "recover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "device-leave.h"
#include "mapfiles.h"
#include "inject/clock.h"
#include "inject/region.h"
#include "inject/mailbox.h"
#include "inject/trap.h"
#include "inject/tree-task.h"
#include "src/base/log.h"
#include "src/base/maps.h"
#include "src/session/processes.h"

enum { SETTLE_TRIES = 200, SESSIONS_MOST = 8 };

#define EVICT_NS 20000000000ull
#define SAY_NS	 1000000000ull

struct recovery {
	uint64_t patience_ns; /* longest wait for an interpreter */
	bool dormant;	      /* restore only what is dormant; print nothing */
	bool stays;	      /* something stays */
	bool (*ends)(void *); /* NULL: never */
	void *ctx;
};

/* The space of a process with something to restore; NULL: nothing, or it belongs to another
 * session. */
static struct space *load(const struct recovery *r, pid_t pid, struct sb_err *err)
{
	struct space *space;

	if (space_load(pid, &space, err) < 0)
		return NULL;
	if (!r->dormant || space->dormant)
		return space;
	space_put(space);
	return NULL;
}

/*
 * Children that are born during the recovery carry the hooks, too; the loop in recover_round()
 * handles them.
 */
static void on_forked(void *ctx, struct proc *child, struct proc *parent, bool shares)
{
	struct sb_err err = { 0 };

	if (shares)
		space_get(parent->space);
	else
		child->space = load(ctx, child->pid, &err);
	child->session = child;
}

static void on_execed(void *ctx, struct proc *proc)
{
	(void)ctx;
	space_put(proc->space);
	proc->space = NULL; /* a new image has no hooks */
}

static void on_ended(void *ctx, struct proc *proc, int status)
{
	(void)ctx;
	(void)status;
	space_put(proc->space);
	proc->space = NULL;
}

static void on_thread_new(void *ctx, struct thread *thread)
{
	(void)ctx;
	(void)thread;
}

static bool on_trapped(void *ctx, struct thread *thread)
{
	struct space *space = thread->proc->space;

	(void)ctx;
	return space && trap_to_stub(space, thread);
}

static bool on_faulted(void *ctx, struct thread *thread)
{
	struct space *space = thread->proc->space;

	(void)ctx;
	return space && trap_pass_fault(space, thread);
}

static const struct tree_ops recover_ops = {
	.forked = on_forked,
	.execed = on_execed,
	.ended = on_ended,
	.thread_new = on_thread_new,
	.trapped = on_trapped,
	.faulted = on_faulted,
};

static struct space *shared(const struct tree *tree, const struct proc *proc)
{
	for (struct proc *p = tree->procs; p; p = p->next)
		if (p != proc && p->space && task_shares_memory(p->pid, proc->pid, false))
			return space_get(p->space);
	return NULL;
}

static int take(struct tree *tree, pid_t pid, struct sb_err *err)
{
	struct proc *proc;
	int ret = tree_add(tree, pid, 0, &proc, err);

	if (ret < 0)
		return ret;
	proc->session = proc;
	proc->space = shared(tree, proc);
	if (!proc->space)
		proc->space = load(tree->ctx, pid, err);
	return proc->space ? 0 : -(int)err->code;
}

/*
 * Pages of versions before 4 can be written here. This stops counting and delays: threads leave
 * their spins now instead of at the end of the lease. Doorbells end with the lease.
 */
static void quiet_page(struct space *space)
{
	struct sb_page_header h;
	uint64_t past = arch->clock_read() - 1;
	uint32_t generation;

	if (!space->page_addr ||
	    memory_peek(&space->mem, space->page_addr, &h, sizeof(h)) != sizeof(h) ||
	    h.magic != SB_PAGE_MAGIC || h.version >= 4)
		return;
	generation = h.generation + 1;
	memory_write(&space->mem, space->page_addr + offsetof(struct sb_page_header, lease_until),
		     &past, sizeof(past), NULL);
	memory_write(&space->mem, space->page_addr + offsetof(struct sb_page_header, generation),
		     &generation, sizeof(generation), NULL);
}

static bool calls_under_way(const struct tree *tree, const struct space *space)
{
	struct arch_regs regs;

	for (const struct proc *p = tree->procs; p; p = p->next)
		for (const struct thread *t = p->threads; t && p->space == space; t = t->next)
			if (t->state == THREAD_STOPPED && pt_get_regs(t->tid, &regs) == 0 &&
			    remote_under_way(&space->mem, &space->gadgets, &regs))
				return true;
	return false;
}

/*
 * A tracer that died a moment ago may have left a thread at the edge of a remote call whose effect
 * is still to come. Lets the call complete, then loads the space anew.
 */
static void settle_calls(struct tree *tree, pid_t pid)
{
	struct proc *proc = tree_proc(tree, pid);
	struct space *space = proc ? proc->space : NULL, *anew;
	bool seen = false, now = true;

	if (!space)
		return;
	space_get(space);
	for (int i = 0; i < SETTLE_TRIES && now && tree_stop(tree, space, NULL) == 0; i++) {
		now = calls_under_way(tree, space);
		seen |= now;
		tree_resume(tree, space);
		if (now)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	proc = tree_proc(tree, pid);
	/* one reference is ours, one the process's: the space is not shared */
	anew = seen && proc && proc->space == space && space->refs == 2 ?
		       load(tree->ctx, pid, NULL) :
		       NULL;
	if (anew) {
		space_put(space);
		proc->space = anew;
	}
	space_put(space);
}

static const char *reason(const struct mailbox *mailbox)
{
	return mailbox->waits_for ? mailbox->waits_for : "it has not reached a safe point";
}

static void await_interpreter(struct tree *tree, struct mailbox *mailbox, pid_t pid)
{
	const struct recovery *r = tree->ctx;
	uint64_t begun = clock_ns(), now = begun;
	bool said = r->dormant;

	while (tree_proc(tree, pid) && !mailbox_evict(mailbox, tree, now) &&
	       now - begun < r->patience_ns && !(r->ends && r->ends(r->ctx))) {
		if (!said && now - begun > SAY_NS) {
			log_note("process %d: waiting for its interpreter: %s", pid,
				 reason(mailbox));
			said = true;
		}
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		tree_dispatch(tree);
		now = clock_ns();
	}
}

/* Commands the agent in an interpreter to leave, which may take a while. */
static void evict(struct tree *tree, struct space *space, pid_t pid, struct sb_err *err)
{
	struct mailbox *mailbox = mailbox_load(space, tree, pid);

	if (!mailbox)
		return;
	await_interpreter(tree, mailbox, pid);
	if (tree_proc(tree, pid) && !mailbox_is_quiet(mailbox)) {
		space->agent_stays = true;
		err_set(err, SB_ETARGET,
			"process %d: its Python interpreter reached no safe point, so an agent "
			"stays in it: %s",
			pid, reason(mailbox));
		err_hint(err,
			 "the agent does nothing, and blocks no attach; sbinject recover -p %d "
			 "removes it later",
			 pid);
	}
	mailbox_free(mailbox);
}

/* The text is restored, but something of ours stays mapped. */
static void left(const struct space *space, const struct space_restored *done, struct recovery *r)
{
	r->stays = true;
	if (!r->dormant && !space->agent_stays)
		log_warn("process %d: its code is restored; %s, so one mapping stays",
			 space->mem.pid, done->left_mapped);
}

static int restore(struct tree *tree, struct proc *proc, struct sb_err *err)
{
	struct space_restored done = { 0 };
	struct recovery *r = tree->ctx;
	struct space *space = proc->space;
	struct sb_err why = { 0 };
	int ret = 0;

	if (!space || !space_holds(space))
		return 0;
	space_get(space);
	quiet_page(space);
	evict(tree, space, proc->pid, &why);
	device_room_evict(space, tree, proc->pid, r->patience_ns, r->ends, r->ctx, &why);
	ret = space_restore(space, tree, true, &done, err);
	if (why.code && ret == 0) {
		*err = why;
		ret = -(int)why.code;
	}
	/* If a later session has hooked the process, its hooks are in the places of the dormant
	 * ones. */
	if (done.changed_by_others && !space->dormant)
		log_warn("process %d: %zu places in its code were changed by another program since "
			 "and were left unchanged",
			 space->mem.pid, done.changed_by_others);
	if (done.left_mapped)
		left(space, &done, r);
	space_put(space);
	return ret;
}

static void let_go(struct tree *tree, struct proc *proc)
{
	tree_release(tree, proc);
	on_ended(NULL, proc, 0);
	tree_forget(tree, proc);
}

/* True: there was something to restore, and it was restored. named: the user named the process;
 * that a child met on the way has ended meanwhile is not a failure. */
static bool recover_one(struct tree *tree, pid_t pid, bool named, struct sb_err *err)
{
	struct sb_err why = { 0 };
	struct proc *proc;
	bool held;
	int ret;

	settle_calls(tree, pid);
	proc = tree_proc(tree, pid);
	if (!proc)
		return false;
	held = proc->space && space_holds(proc->space);
	ret = restore(tree, proc, &why);
	if (why.code && !err->code && (named || why.code != SB_ENOPROC))
		*err = why;
	proc = tree_proc(tree, pid);
	if (proc)
		let_go(tree, proc);
	return held && ret == 0;
}

/* Does it share the memory of one of these? A target that forks all the time has other children by
 * now. */
static bool is_asked(const struct tree *tree, pid_t pid, const pid_t *pids, size_t n)
{
	const struct proc *proc = tree_proc(tree, pid);

	for (const struct proc *p = tree->procs; proc && p; p = p->next)
		if ((p == proc || (p->space && p->space == proc->space)) &&
		    processes_listed(pids, n, p->pid))
			return true;
	return false;
}

/* Restores the hooks of one session in each process. */
static size_t recover_round(struct recovery *r, const pid_t *pids, size_t n, size_t named,
			    struct sb_err *first)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	size_t restored = 0;
	bool more;

	if (!tree)
		abort();
	tree_init(tree, &recover_ops, r);
	for (size_t i = 0; i < n; i++)
		if (!tree_proc(tree, pids[i])) {
			struct sb_err why = { 0 };

			if (take(tree, pids[i], &why) < 0 && !first->code &&
			    (i < named || why.code != SB_ENOPROC))
				*first = why;
		}
	do {
		if (tree->procs) {
			pid_t pid = tree->procs->pid;
			bool asked = is_asked(tree, pid, pids, n);

			if (recover_one(tree, pid, processes_listed(pids, named, pid), first))
				restored += asked;
		}
		more = tree_dispatch(tree);
		tree_bury(tree);
	} while (more || tree->procs);
	tree_free(tree);
	free(tree);
	return restored;
}

/* Does one of these processes hold something of an earlier session, too? */
static bool holds_more(const pid_t *pids, size_t n)
{
	bool holds = false;

	for (size_t i = 0; i < n && !holds; i++) {
		struct sb_err err = { 0 };
		struct space *space;

		if (space_load(pids[i], &space, &err) < 0)
			continue;
		holds = space_holds(space);
		space_put(space);
	}
	return holds;
}

int recover_processes(const pid_t *pids, size_t n, size_t named, size_t *restored,
		      struct sb_err *err)
{
	struct recovery r = { .patience_ns = EVICT_NS };
	struct sb_err first = { 0 };

	*restored = recover_round(&r, pids, n, named, &first);
	for (int i = 1; i < SESSIONS_MOST && !first.code && !r.stays && holds_more(pids, n); i++)
		recover_round(&r, pids, n, named, &first);
	mapfiles_tidy(pids, n);
	if (!first.code)
		return 0;
	*err = first;
	return -(int)first.code;
}

bool recover_dormant(pid_t pid, uint64_t patience_ns, bool (*ends)(void *), void *ctx,
		     struct sb_err *why)
{
	struct recovery r = {
		.patience_ns = patience_ns, .dormant = true, .ends = ends, .ctx = ctx
	};
	bool agent, more = true;

	for (int i = 0; i < SESSIONS_MOST && more && space_has_dormant(pid, &agent); i++)
		more = recover_round(&r, &pid, 1, 1, why) && !r.stays && !why->code;
	return !space_has_dormant(pid, &agent);
}
