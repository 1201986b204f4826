/* SPDX-License-Identifier: MIT */
/*
 * How a command gets to a thread that may run Python.
 *
 * A point where Python may run is one where the interpreter itself would run the user's code: that
 * is the case in a pending call, which its main thread makes between two instructions, and on any
 * of its threads that has released the GIL and sleeps. It is not the case on a thread that was
 * stopped anywhere: it may hold the allocator's lock, the dynamic linker's, or the GIL in the
 * middle of an object. So:
 *
 * - if the main thread sleeps in a system call that a program sleeps in deliberately (not on a lock
 *   of libc or of the interpreter), a remote call on it takes the GIL, runs the command and
 *   releases the GIL;
 * - else a remote call of the main thread, or of any, queues a pending call: that takes one short
 *   lock of the interpreter and no more. But the main thread itself holds that lock while it
 *   examines the queue, and would wait for itself: see may_queue();
 * - where that call has not run after a while, other threads that sleep are tried too;
 * - where none sleeps, it is also queued for all threads (since 3.12), unless one of them has too
 *   small a stack to load a library: a main thread at work in C does not delay the command while
 *   other threads run Python.
 *
 * A thread that holds the GIL while it sleeps reports that (enum entry_status), and is left alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "clock.h"
#include "fault.h"
#include "region.h"
#include "mailbox-thread.h"
#include "tree-task.h"
#include "src/base/log.h"

#define MS 1000000ull

enum {
	RECALL_US = 2000,
	AT_BELL_US = 10000,
	AT_BELL_MOST_MS = 1000,
	RETRY_MS = 20,
	SLOW_MS = 400,
	QUEUED_MAX = 16,
	RAN_NS = 2000000,
	OTHERS_MS = 100,
	PAUSE_MS = 1,
	ROOMY_MS = 1000,
};

#define HOLD_TICKS 5000000000ull /* a second or two */

/* ---- remote calls ---- */

static void write_word(const struct mailbox *mailbox, size_t offset, uint32_t value)
{
	memory_write(&mailbox->space->mem, mailbox->addr + offset, &value, sizeof(value), NULL);
}

/* A thread at the end of its remote call waits for the tracer for this long from now. */
static void hold(const struct mailbox *mailbox)
{
	uint64_t until = arch->clock_read() + HOLD_TICKS;

	memory_write(&mailbox->space->mem, mailbox->addr + offsetof(struct sb_mailbox, async_until),
		     &until, sizeof(until), NULL);
}

static bool still_parked(void *ctx)
{
	const struct mailbox *mailbox = ctx;
	uint32_t parked = ENTRY_LEFT;

	memory_peek(&mailbox->space->mem, mailbox->addr + offsetof(struct sb_mailbox, parked),
		    &parked, sizeof(parked));
	return parked == (mailbox->turn << ENTRY_TURN_SHIFT | ENTRY_PARKED);
}

/*
 * A thread inside the dynamic linker, or at its doorbell, is unfit for a remote call: it may be
 * about to relocate the interpreter itself.
 */
static bool in_linker(const struct mailbox *mailbox, struct maps_look *look)
{
	uint64_t pc = arch->pc(&mailbox->remote.saved);
	const struct map_entry *m;
	const char *name;

	if (space_region_at(mailbox->space, pc))
		return true;
	m = maps_look_at(look, pc);
	name = m ? strrchr(m->path, '/') : NULL;
	return look->failed || (name && (!strncmp(name, "/ld-", 4) || !strncmp(name, "/ld.so", 6)));
}

/*
 * Also a thread that was found asleep: it may have woken before it was stopped, and be in the
 * middle of taking the GIL. Taking it once more there would wait for itself.
 */
static bool refuse_place(struct mailbox *mailbox, enum entry_op op, pid_t tid)
{
	struct maps_look look;
	bool unfit;

	if (op == ENTRY_HERE)
		return false;
	maps_look_open(&look, mailbox->pid);
	unfit = in_linker(mailbox, &look) || ((op == ENTRY_ENSURE || op == ENTRY_PLAIN) &&
					      !mailbox_thread_fit(mailbox, tid, &look));
	maps_look_close(&look);
	if (unfit)
		remote_end(&mailbox->remote);
	return unfit;
}

/*
 * Without a GIL, a call that is queued for all threads also takes the lock of the list of threads,
 * which many threads hold for an instant. With a GIL, since 3.13, it takes the GIL's own mutex,
 * which a thread that takes the GIL holds: a remote call there would wait for itself, and the GIL
 * would be lost. So the thread's pc decides.
 */
static bool decided_by_place(const struct mailbox *mailbox, enum entry_op op, pid_t tid)
{
	return mailbox->eval && (op == ENTRY_QUEUE_ANY || (!mailbox->gil && tid != mailbox->pid));
}

/*
 * A thread that examines the queue holds the queue's lock for some instructions. A remote call that
 * queues from there would wait for itself, for ever. That is not rare: the pending call that
 * sbinject waits for ends there, and on a loaded machine its thread may not run on before the next
 * session begins. But no thread sleeps there, and a thread that has run for a while since, with no
 * call in the queue, is out of it. The same holds in a fork, which starts with the lock as it was
 * in its parent and initializes it anew. No other thread ever examines the main thread's queue; but
 * which thread is the main one is only a guess.
 */
static bool may_queue(const struct mailbox *mailbox, enum entry_op op, pid_t tid, bool sleeps)
{
	uint32_t queued = 1;

	if (sleeps || decided_by_place(mailbox, op, tid))
		return true;
	if (op == ENTRY_QUEUE && tid != mailbox->pid)
		return tid != mailbox->queuer || task_run_ns(tid) - mailbox->queuer_run_ns > RAN_NS;
	if (tid == mailbox->busy_tid)
		return !mailbox->queued_any && task_run_ns(tid) - mailbox->busy_run_ns > RAN_NS;
	memory_peek(&mailbox->space->mem, mailbox->addr + offsetof(struct sb_mailbox, queued),
		    &queued, sizeof(queued));
	return tid == mailbox->pid && !queued && task_run_ns(tid) - mailbox->run_ns > RAN_NS;
}

/* As refuse_place(), for the thread that is to queue a call. */
static bool refuse_queue(struct mailbox *mailbox, enum entry_op op)
{
	pid_t tid = mailbox->remote.thread->tid;
	bool may;

	if (op != ENTRY_QUEUE && op != ENTRY_QUEUE_ANY)
		return false;
	if (decided_by_place(mailbox, op, tid))
		may = mailbox_thread_holds_none(mailbox, tid, arch->pc(&mailbox->remote.saved));
	else
		may = may_queue(mailbox, op, tid, mailbox_thread_waits(tid));
	if (!may)
		remote_end(&mailbox->remote);
	return !may;
}

static bool write_confined(const struct mailbox *mailbox)
{
	write_word(mailbox, offsetof(struct sb_mailbox, confined), mailbox->remote.seccomp);
	return true;
}

/* A thread whose remote call belongs to an earlier turn, and was not ended by the tracer, leaves by
 * itself. */
static void begin_turn(struct mailbox *mailbox)
{
	uint32_t parked = 0;

	memory_peek(&mailbox->space->mem, mailbox->addr + offsetof(struct sb_mailbox, parked),
		    &parked, sizeof(parked));
	mailbox->turn = ((parked >> ENTRY_TURN_SHIFT) + 1) & ENTRY_TURNS;
	write_word(mailbox, offsetof(struct sb_mailbox, parked),
		   mailbox->turn << ENTRY_TURN_SHIFT | ENTRY_AT_WORK);
}

/* tid 0: any thread. */
static bool call_async(struct mailbox *mailbox, struct tree *tree, enum entry_op op, pid_t tid,
		       uint64_t now)
{
	uint64_t entry = mailbox->code + (uint64_t)((const char *)entry_async - __start_sb_entry);
	struct space *space = mailbox->space;
	struct sb_err err = { 0 };

	write_word(mailbox, offsetof(struct sb_mailbox, async_op), op);
	write_word(mailbox, offsetof(struct sb_mailbox, async_status), 0);
	begin_turn(mailbox);
	hold(mailbox);
	if (remote_begin_on(&mailbox->remote, tid, tree, space, &space->mem, &space->gadgets,
			    &err) < 0 ||
	    refuse_place(mailbox, op, tid) || refuse_queue(mailbox, op) ||
	    !write_confined(mailbox) ||
	    remote_async(&mailbox->remote, entry, mailbox->addr | mailbox->turn, &err) < 0) {
		if (err.what[0])
			log_debug("process %d: %s", mailbox->pid, err.what);
		mailbox->remote = (struct remote){ 0 };
		return false;
	}
	mailbox->async_ns = now;
	mailbox->saw_queued |= op == ENTRY_QUEUE || op == ENTRY_QUEUE_ANY;
	return true;
}

/* Recalls a thread that has finished; false: it is still at work. */
static bool take_back(struct mailbox *mailbox, struct tree *tree, const struct sb_mailbox *head,
		      uint64_t now)
{
	pid_t tid = mailbox->remote.async;

	if (head->parked == (mailbox->turn << ENTRY_TURN_SHIFT | ENTRY_AT_WORK) &&
	    tree_thread(tree, tid)) {
		hold(mailbox);
		return false;
	}
	if (!remote_async_end(&mailbox->remote, RECALL_US, still_parked, mailbox))
		return false;
	switch (head->async_status) {
	case ENTRY_HOLDS_GIL:
		mailbox->waits_for = "a thread holds the GIL inside native code";
		mailbox_thread_unfit(mailbox, tid);
		break;
	case ENTRY_NO_STATE:
		mailbox_thread_unfit(mailbox, tid);
		break;
	case ENTRY_ELSEWHERE:
		mailbox->waits_for = mailbox->eval && !mailbox->gil ?
					     "its main thread runs in a subinterpreter, or "
					     "in the midst of another change" :
					     "its main thread runs in a subinterpreter";
		mailbox_thread_unfit(mailbox, tid);
		break;
	case ENTRY_NOT_READY:
		mailbox->waits_for = "the interpreter is starting or ending";
		mailbox->not_ready = true;
		/* Nothing was queued: the main thread is asked again, and not the others alone. */
		if (!head->queued)
			mailbox->queued_ns = 0;
		mailbox->retry_ns = now + RETRY_MS * MS; /* until it has gone further */
		break;
	case ENTRY_FULL:
		mailbox->waits_for = "the interpreter's queue of pending calls is full";
		break;
	default:
		break;
	}
	return true;
}

/* A thread other than the main one: the next after `after` that may queue a call. */
static pid_t other_to_queue(const struct mailbox *mailbox, struct tree *tree, enum entry_op op,
			    pid_t after)
{
	struct thread *t;

	while ((t = tree_next_thread(tree, mailbox->space, after))) {
		after = t->tid;
		if (after != mailbox->pid && may_queue(mailbox, op, after, task_sleeps(after)))
			return after;
	}
	return 0;
}

static bool main_may_queue(const struct mailbox *mailbox, struct tree *tree)
{
	return tree_thread(tree, mailbox->pid) &&
	       may_queue(mailbox, ENTRY_QUEUE, mailbox->pid, task_sleeps(mailbox->pid));
}

static bool queue_by(struct mailbox *mailbox, struct tree *tree, pid_t tid, uint64_t now)
{
	if (!call_async(mailbox, tree, ENTRY_QUEUE, tid, now))
		return false;
	mailbox->queued_ns = now;
	mailbox->queuer = tid;
	return true;
}

/*
 * The interpreter's main thread first, which is the process's as a rule: before 3.13 the
 * interpreter does not examine a call that another thread queues until something else wakes its
 * loop. Where it is not run, the other threads have their turn: one of them may be the main one of
 * an interpreter that is embedded.
 */
static void queue(struct mailbox *mailbox, struct tree *tree, uint64_t now)
{
	bool early = now - mailbox->asked_ns < OTHERS_MS * MS;
	pid_t tid = mailbox->queuer;

	if (!mailbox->queued_ns && tid && tid != mailbox->pid && tree_thread(tree, tid)) {
		if (!may_queue(mailbox, ENTRY_QUEUE, tid, task_sleeps(tid)))
			return; /* its call for the last piece is about to finish */
		queue_by(mailbox, tree, tid, now);
		return;
	}
	if (!mailbox->queued_ns && main_may_queue(mailbox, tree) &&
	    queue_by(mailbox, tree, mailbox->pid, now))
		return;
	if (!mailbox->queued_ns && early)
		return; /* it may be able to soon */
	tid = mailbox->queue_from = other_to_queue(mailbox, tree, ENTRY_QUEUE, mailbox->queue_from);
	if (tid)
		queue_by(mailbox, tree, tid, now);
}

static bool is_roomy(const struct mailbox *mailbox, pid_t tid)
{
	for (size_t i = 0; i < mailbox->n_roomy; i++)
		if (mailbox->roomy[i] == tid)
			return true;
	return false;
}

/* ENTRY_QUEUE_ANY if a thread's stack is large enough, else as queue_for(). */
static enum entry_op queue_beside(struct mailbox *mailbox, struct tree *tree, struct thread *t,
				  struct maps_look *look)
{
	enum entry_op op = ENTRY_QUEUE_ANY;
	struct arch_regs regs;
	pid_t tid = t->tid;

	if (is_roomy(mailbox, tid))
		return op;
	if (!tree_stop_thread(tree, t, 10000))
		return 0;
	if (pt_get_regs(tid, &regs) < 0)
		op = 0;
	else if (!mailbox_stack_at(look, arch->sp(&regs)))
		op = ENTRY_QUEUE;
	else if (mailbox->n_roomy < sizeof(mailbox->roomy) / sizeof(*mailbox->roomy))
		mailbox->roomy[mailbox->n_roomy++] = tid;
	tree_resume_thread(tree, t);
	return op;
}

/*
 * The thread that runs a call queued for all loads a library on its own stack: ENTRY_QUEUE where
 * some stack is too small, 0 where that is unknown now because a thread is slow to stop. On a busy
 * machine each of them is so most of the time, and all at once they would never stop: one that did
 * is not asked again for a while.
 */
static enum entry_op queue_for(struct mailbox *mailbox, struct tree *tree, uint64_t now)
{
	enum entry_op op = mailbox->main_only ? ENTRY_QUEUE : ENTRY_QUEUE_ANY;
	struct maps_look look;
	struct thread *t;
	pid_t tid = 0;

	if (now - mailbox->roomy_ns > ROOMY_MS * MS) {
		mailbox->n_roomy = 0;
		mailbox->roomy_ns = now;
	}
	maps_look_open(&look, mailbox->pid);
	while (op == ENTRY_QUEUE_ANY && (t = tree_next_thread(tree, mailbox->space, tid))) {
		tid = t->tid;
		op = queue_beside(mailbox, tree, t, &look);
	}
	if (look.failed)
		op = 0;
	maps_look_close(&look);
	return op;
}

/* Where none sleeps: another that has run since it was first seen. */
static pid_t busy_to_queue(struct mailbox *mailbox, struct tree *tree)
{
	struct thread *t = tree_next_thread(tree, mailbox->space, 0);

	if (t && t->tid == mailbox->pid)
		t = tree_next_thread(tree, mailbox->space, t->tid);
	if (t && t->tid == mailbox->busy_tid)
		return may_queue(mailbox, ENTRY_QUEUE_ANY, t->tid, false) ? t->tid : 0;
	mailbox->busy_tid = t ? t->tid : 0;
	mailbox->busy_run_ns = t ? task_run_ns(t->tid) : 0;
	return 0;
}

/* The main thread has not run its call: it is at work in C, and others may run Python. */
static void queue_for_all(struct mailbox *mailbox, struct tree *tree, uint64_t now)
{
	pid_t tid;

	mailbox->retry_ns = now + RETRY_MS * MS; /* a thread may be slow to stop */
	if (queue_for(mailbox, tree, now) != ENTRY_QUEUE_ANY)
		return;
	tid = other_to_queue(mailbox, tree, ENTRY_QUEUE_ANY,
			     mailbox->eval ? mailbox->queue_from : 0);
	if (!tid && mailbox->queue_from) /* the last one had its turn */
		tid = other_to_queue(mailbox, tree, ENTRY_QUEUE_ANY, 0);
	if (mailbox->eval)
		mailbox->queue_from = tid;
	else if (!tid)
		tid = busy_to_queue(mailbox, tree);
	mailbox->queued_any = tid && call_async(mailbox, tree, ENTRY_QUEUE_ANY, tid, now);
}

static bool main_fits(const struct mailbox *mailbox)
{
	struct maps_look look;
	bool fits;

	maps_look_open(&look, mailbox->pid);
	fits = mailbox_thread_fit(mailbox, mailbox->pid, &look);
	maps_look_close(&look);
	return fits;
}

/* Any thread that sleeps. */
static void choose_plain(struct mailbox *mailbox, struct tree *tree, uint64_t now)
{
	pid_t tid = mailbox_any_fit(mailbox, tree);

	mailbox->retry_ns = now + RETRY_MS * MS;
	mailbox->n_unfit = 0;
	if (!tid || !call_async(mailbox, tree, ENTRY_PLAIN, tid, now))
		mailbox->waits_for = "none of its threads sleeps in a system call";
}

static void choose(struct mailbox *mailbox, struct tree *tree, const struct sb_mailbox *head,
		   uint64_t now)
{
	uint64_t age = now - mailbox->asked_ns;
	bool confined;
	pid_t other;

	if (main_fits(mailbox) && call_async(mailbox, tree, ENTRY_ENSURE, mailbox->pid, now))
		return;
	/*
	 * A filter may end the process for the calls that loading the agent makes, and only that of
	 * a thread in a remote call is suspended. Afterwards the agent makes no calls except for
	 * memory.
	 */
	confined = !head->agent && task_any_seccomp(mailbox->pid);
	if (confined) {
		mailbox->waits_for =
			"it is confined by seccomp: a thread that sleeps could load the "
			"agent, and none does";
	} else if (!mailbox->not_ready && (!head->queued || (now - mailbox->queued_ns > 100 * MS &&
							     head->queued < QUEUED_MAX))) {
		if (head->queued)
			mailbox->waits_for =
				"a call is queued for its main thread, which runs native "
				"code or sleeps in it";
		queue(mailbox, tree, now);
		return;
	}
	/* An interpreter that has ended takes no call; any sleeping thread will do. */
	mailbox->not_ready = false;
	if (age < 100 * MS)
		return;
	other = mailbox_any_fit(mailbox, tree);
	if (other)
		call_async(mailbox, tree, ENTRY_ENSURE, other, now);
	else if (age > SLOW_MS * MS && !confined && !mailbox->queued_any && !mailbox->main_only)
		queue_for_all(mailbox, tree, now);
	if (!mailbox->waits_for)
		mailbox->waits_for = "its main thread runs native code";
	/* Threads move on: an unfit thread may be fit a little later. */
	if (age / (200 * MS) != (age - 5 * MS) / (200 * MS))
		mailbox->n_unfit = 0;
}

/*
 * When the last queued call is seen to have run, its thread may still be at the end of it: see
 * may_queue().
 */
static void watch_queue(struct mailbox *mailbox, const struct sb_mailbox *head)
{
	if (head->queued) {
		mailbox->saw_queued = true;
		return;
	}
	if (!mailbox->saw_queued)
		return;
	mailbox->saw_queued = false;
	mailbox->run_ns = task_run_ns(mailbox->pid);
	mailbox->queuer_run_ns = mailbox->queuer ? task_run_ns(mailbox->queuer) : 0;
	if (head->status == SB_AGENT_AGAIN)
		mailbox->queued_ns = 0;
}

/*
 * A piece has been done. The next one begins as the command did, once the program has had its turn,
 * but with the method that worked last: the better ones have failed, and are not awaited again.
 */
static void next_piece(struct mailbox *mailbox, const struct sb_mailbox *head, uint64_t now)
{
	uint64_t age = now - mailbox->asked_ns;

	if (head->pieces == mailbox->pieces || head->busy || head->done == mailbox->asked)
		return;
	mailbox->pieces = head->pieces;
	mailbox->asked_ns = now;
	if (mailbox->queuer == mailbox->pid && !head->queued)
		; /* the main thread did it: wait for it */
	else if (age > SLOW_MS * MS)
		mailbox->asked_ns -= (SLOW_MS + 1) * MS;
	else if (age > OTHERS_MS * MS)
		mailbox->asked_ns -= (OTHERS_MS + 1) * MS;
	if (mailbox->queuer != mailbox->pid && now - mailbox->queued_ns > OTHERS_MS * MS)
		mailbox->queuer = 0; /* its call waited for long */
	mailbox->waits_for = NULL;
	mailbox->retry_ns = now + PAUSE_MS * MS;
	mailbox->queued_any = false;
	mailbox->busy_tid = 0;
}

bool mailbox_step(struct mailbox *mailbox, struct tree *tree, uint64_t now, pid_t at_doorbell)
{
	const struct memory *mem = &mailbox->space->mem;
	struct sb_mailbox head;

	if (memory_peek(mem, mailbox->addr, &head, sizeof(head)) != sizeof(head))
		return false;
	if (!mailbox->asked_ns)
		mailbox->asked_ns = now;
	if (mailbox->remote.async) {
		if (!take_back(mailbox, tree, &head, now))
			return false;
		if (memory_peek(mem, mailbox->addr, &head, sizeof(head)) != sizeof(head))
			return false;
	}
	next_piece(mailbox, &head, now);
	watch_queue(mailbox, &head);
	if (head.done == mailbox->asked) {
		mailbox->under_way = mailbox->ended = false;
		mailbox->run_ns = task_run_ns(mailbox->pid);
		mailbox->busy_tid = 0;
		return true;
	}
	if (head.busy)
		mailbox->waits_for = "the agent is at work";
	else if (at_doorbell)
		call_async(mailbox, tree, ENTRY_HERE, at_doorbell, now);
	else if (mailbox->plain && now >= mailbox->retry_ns)
		choose_plain(mailbox, tree, now);
	else if (!mailbox->plain && !mailbox->doorbell_only && now >= mailbox->retry_ns)
		choose(mailbox, tree, &head, now);
	return false;
}

static const char *why_not_quiet(struct mailbox *mailbox)
{
	struct mailbox_answer answer;

	mailbox_answer(mailbox, &answer);
	if (answer.status == SB_AGENT_BUSY && mailbox->stopping)
		return "something that the agent watches has not returned yet";
	return "its main thread runs native code, and a call waits for it";
}

/*
 * The agent received STOP and something still refers to it: a call that it times has not returned,
 * a recursion is too deep. That may be over in a moment, so STOP is repeated.
 */
static bool must_wait(const struct mailbox *mailbox, uint64_t now)
{
	struct mailbox_answer answer;

	if (!mailbox->stopping || mailbox->under_way || now < mailbox->retry_ns ||
	    mailbox_busy(mailbox))
		return false;
	mailbox_answer(mailbox, &answer);
	return answer.status == SB_AGENT_BUSY;
}

bool mailbox_evict(struct mailbox *mailbox, struct tree *tree, uint64_t now)
{
	mailbox->doorbell_only = false;
	if (mailbox_is_quiet(mailbox))
		return true;
	if (!mailbox->stopping && !mailbox_busy(mailbox)) {
		mailbox->stopping = true;
		mailbox_ask(mailbox, SB_AGENT_STOP);
	} else if (must_wait(mailbox, now)) {
		mailbox_ask(mailbox, SB_AGENT_STOP);
		mailbox->retry_ns = now + RETRY_MS * MS;
	}
	if (mailbox->under_way || mailbox->remote.async)
		mailbox_step(mailbox, tree, now, 0);
	if (!mailbox->under_way && !mailbox_is_quiet(mailbox))
		mailbox->waits_for = why_not_quiet(mailbox);
	return mailbox_is_quiet(mailbox);
}

/*
 * A thread in a start doorbell's wait: the return address, kept in its red zone, leads into that
 * stub.
 */
static bool stands_at_doorbell(struct space *space, struct thread *t)
{
	struct arch_regs regs;
	const struct region *region;
	const struct journal_site *site;
	uint64_t back;

	if (pt_get_regs(t->tid, &regs) < 0)
		return false;
	region = space_region_at(space, arch->pc(&regs));
	if (!region || memory_peek(&space->mem, arch->sp(&regs) - ARCH_BELL_BACK, &back,
				   sizeof(back)) != sizeof(back))
		return false;
	site = region_stub_at(region, back);
	return site && (site->flags & JOURNAL_START);
}

/* 0: none; *unknown: a thread did not stop in time, and may be it. */
static pid_t look_at_doorbells(struct space *space, struct tree *tree, bool *unknown)
{
	struct thread *t;
	pid_t tid = 0;

	*unknown = false;
	while ((t = tree_next_thread(tree, space, tid))) {
		bool there;

		tid = t->tid;
		if (!tree_stop_thread(tree, t, AT_BELL_US)) {
			*unknown = true;
			continue;
		}
		there = stands_at_doorbell(space, t);
		tree_resume_thread(tree, t);
		if (there)
			return tid;
	}
	return 0;
}

/*
 * The interpreter starts as soon as the ring is answered, so a thread that waits for a processor is
 * waited for: without it, the start would go unseen for ever.
 */
pid_t mailbox_at_doorbell(struct space *space, struct tree *tree)
{
	uint64_t until = clock_ns() + AT_BELL_MOST_MS * MS;
	bool unknown;
	pid_t tid;

	do {
		tid = look_at_doorbells(space, tree, &unknown);
	} while (!tid && unknown && clock_ns() < until);
	return tid;
}
