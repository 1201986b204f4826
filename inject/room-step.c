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
#include "room-thread.h"
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
};

#define HOLD_TICKS 5000000000ull /* a second or two */

/* ---- remote calls ---- */

static void write_word(const struct room *room, size_t offset, uint32_t value)
{
	memory_write(&room->space->mem, room->addr + offset, &value, sizeof(value), NULL);
}

/* A thread at the end of its remote call waits for its recall for this long from now. */
static void hold(const struct room *room)
{
	uint64_t until = arch->clock_read() + HOLD_TICKS;

	memory_write(&room->space->mem, room->addr + offsetof(struct sb_room, lent_until), &until,
		     sizeof(until), NULL);
}

static bool still_parked(void *ctx)
{
	const struct room *room = ctx;
	uint32_t parked = ENTRY_LEFT;

	memory_peek(&room->space->mem, room->addr + offsetof(struct sb_room, parked), &parked,
		    sizeof(parked));
	return parked == (room->turn << ENTRY_TURN_SHIFT | ENTRY_PARKED);
}

/*
 * A thread inside the dynamic linker, or at its doorbell, is unfit for a remote call: it may be
 * about to relocate the interpreter itself.
 */
static bool in_linker(const struct room *room, struct maps_look *look)
{
	uint64_t pc = arch->pc(&room->remote.saved);
	const struct map_entry *m;
	const char *name;

	if (space_region_at(room->space, pc))
		return true;
	m = maps_look_at(look, pc);
	name = m ? strrchr(m->path, '/') : NULL;
	return look->failed || (name && (!strncmp(name, "/ld-", 4) || !strncmp(name, "/ld.so", 6)));
}

/*
 * Also a thread that was found asleep: it may have woken before it was stopped, and be in the
 * middle of taking the GIL. Taking it once more there would wait for itself.
 */
static bool refuse_place(struct room *room, enum entry_op op, pid_t tid)
{
	struct maps_look look;
	bool unfit;

	if (op == ENTRY_HERE)
		return false;
	maps_look_open(&look, room->pid);
	unfit = in_linker(room, &look) ||
		(op == ENTRY_ENSURE && !room_thread_fit(room, tid, &look));
	maps_look_close(&look);
	if (unfit)
		remote_end(&room->remote);
	return unfit;
}

/*
 * Without a GIL, a call that is queued for all threads also takes the lock of the list of threads,
 * which many threads hold for an instant. With a GIL, since 3.13, it takes the GIL's own mutex,
 * which a thread that takes the GIL holds: a remote call there would wait for itself, and the GIL
 * would be lost. So the thread's pc decides.
 */
static bool told_by_place(const struct room *room, enum entry_op op, pid_t tid)
{
	return room->eval && (op == ENTRY_QUEUE_ANY || (!room->gil && tid != room->pid));
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
static bool may_queue(const struct room *room, enum entry_op op, pid_t tid, bool sleeps)
{
	uint32_t queued = 1;

	if (sleeps || told_by_place(room, op, tid))
		return true;
	if (op == ENTRY_QUEUE && tid != room->pid)
		return tid != room->queuer || task_run_ns(tid) - room->queuer_run_ns > RAN_NS;
	if (tid == room->busy_tid)
		return !room->queued_any && task_run_ns(tid) - room->busy_run_ns > RAN_NS;
	memory_peek(&room->space->mem, room->addr + offsetof(struct sb_room, queued), &queued,
		    sizeof(queued));
	return tid == room->pid && !queued && task_run_ns(tid) - room->run_ns > RAN_NS;
}

/* As refuse_place(), for the thread that is to queue a call. */
static bool refuse_queue(struct room *room, enum entry_op op)
{
	pid_t tid = room->remote.thread->tid;
	bool may;

	if (op != ENTRY_QUEUE && op != ENTRY_QUEUE_ANY)
		return false;
	if (told_by_place(room, op, tid))
		may = room_thread_holds_none(room, tid, arch->pc(&room->remote.saved));
	else
		may = may_queue(room, op, tid, room_thread_waits(tid));
	if (!may)
		remote_end(&room->remote);
	return !may;
}

static bool tell_confined(const struct room *room)
{
	write_word(room, offsetof(struct sb_room, confined), room->remote.seccomp);
	return true;
}

/* A thread whose remote call belongs to an earlier turn, and was not recalled, leaves by itself. */
static void begin_turn(struct room *room)
{
	uint32_t parked = 0;

	memory_peek(&room->space->mem, room->addr + offsetof(struct sb_room, parked), &parked,
		    sizeof(parked));
	room->turn = ((parked >> ENTRY_TURN_SHIFT) + 1) & ENTRY_TURNS;
	write_word(room, offsetof(struct sb_room, parked),
		   room->turn << ENTRY_TURN_SHIFT | ENTRY_AT_WORK);
}

/* tid 0: any thread. */
static bool lend(struct room *room, struct tree *tree, enum entry_op op, pid_t tid, uint64_t now)
{
	uint64_t entry = room->code + (uint64_t)((const char *)entry_lent - __start_sb_entry);
	struct space *space = room->space;
	struct sb_err err = { 0 };

	write_word(room, offsetof(struct sb_room, lent_op), op);
	write_word(room, offsetof(struct sb_room, lent_status), 0);
	begin_turn(room);
	hold(room);
	if (remote_begin_on(&room->remote, tid, tree, space, &space->mem, &space->gadgets, &err) <
		    0 ||
	    refuse_place(room, op, tid) || refuse_queue(room, op) || !tell_confined(room) ||
	    remote_lend(&room->remote, entry, room->addr | room->turn, &err) < 0) {
		if (err.what[0])
			log_debug("process %d: %s", room->pid, err.what);
		room->remote = (struct remote){ 0 };
		return false;
	}
	room->lent_ns = now;
	room->saw_queued |= op == ENTRY_QUEUE || op == ENTRY_QUEUE_ANY;
	return true;
}

/* Recalls a thread that has finished; false: it is still at work. */
static bool take_back(struct room *room, struct tree *tree, const struct sb_room *head,
		      uint64_t now)
{
	pid_t tid = room->remote.lent;

	if (head->parked == (room->turn << ENTRY_TURN_SHIFT | ENTRY_AT_WORK) &&
	    tree_thread(tree, tid)) {
		hold(room);
		return false;
	}
	if (!remote_recall(&room->remote, RECALL_US, still_parked, room))
		return false;
	switch (head->lent_status) {
	case ENTRY_HOLDS_GIL:
		room->waits_for = "a thread holds the GIL inside native code";
		room_thread_unfit(room, tid);
		break;
	case ENTRY_NO_STATE:
		room_thread_unfit(room, tid);
		break;
	case ENTRY_ELSEWHERE:
		room->waits_for = room->eval && !room->gil ?
					  "its main thread runs in a subinterpreter, or "
					  "in the midst of another change" :
					  "its main thread runs in a subinterpreter";
		room_thread_unfit(room, tid);
		break;
	case ENTRY_NOT_READY:
		room->waits_for = "the interpreter is starting or ending";
		room->not_ready = true;
		room->retry_ns = now + RETRY_MS * MS; /* until it has gone further */
		break;
	case ENTRY_FULL:
		room->waits_for = "the interpreter's queue of pending calls is full";
		break;
	default:
		break;
	}
	return true;
}

/* A thread other than the main one: the next after `after` that may queue a call. */
static pid_t other_to_queue(const struct room *room, struct tree *tree, enum entry_op op,
			    pid_t after)
{
	struct thread *t;

	while ((t = tree_next_thread(tree, room->space, after))) {
		after = t->tid;
		if (after != room->pid && may_queue(room, op, after, task_sleeps(after)))
			return after;
	}
	return 0;
}

static bool main_may_queue(const struct room *room, struct tree *tree)
{
	return tree_thread(tree, room->pid) &&
	       may_queue(room, ENTRY_QUEUE, room->pid, task_sleeps(room->pid));
}

static bool queue_by(struct room *room, struct tree *tree, pid_t tid, uint64_t now)
{
	if (!lend(room, tree, ENTRY_QUEUE, tid, now))
		return false;
	room->queued_ns = now;
	room->queuer = tid;
	return true;
}

/*
 * The interpreter's main thread first, which is the process's as a rule: before 3.13 the
 * interpreter does not examine a call that another thread queues until something else wakes its
 * loop. Where it is not run, the other threads have their turn: one of them may be the main one of
 * an interpreter that is embedded.
 */
static void queue(struct room *room, struct tree *tree, uint64_t now)
{
	bool early = now - room->asked_ns < OTHERS_MS * MS;
	pid_t tid = room->queuer;

	if (!room->queued_ns && tid && tid != room->pid && tree_thread(tree, tid)) {
		if (!may_queue(room, ENTRY_QUEUE, tid, task_sleeps(tid)))
			return; /* its call for the last piece is about to finish */
		queue_by(room, tree, tid, now);
		return;
	}
	if (!room->queued_ns && main_may_queue(room, tree) && queue_by(room, tree, room->pid, now))
		return;
	if (!room->queued_ns && early)
		return; /* it may be able to soon */
	tid = room->queue_from = other_to_queue(room, tree, ENTRY_QUEUE, room->queue_from);
	if (tid)
		queue_by(room, tree, tid, now);
}

/*
 * The thread that runs a call queued for all loads a library on its own stack: ENTRY_QUEUE where
 * some stack is too small, 0 where that is unknown now because a thread is slow to stop.
 */
static enum entry_op queue_for(const struct room *room, struct tree *tree)
{
	enum entry_op op = room->main_only ? ENTRY_QUEUE : ENTRY_QUEUE_ANY;
	struct arch_regs regs;
	struct maps_look look;
	struct thread *t;
	pid_t tid = 0;

	maps_look_open(&look, room->pid);
	while (op == ENTRY_QUEUE_ANY && (t = tree_next_thread(tree, room->space, tid))) {
		tid = t->tid;
		if (!tree_stop_thread(tree, t, 10000)) {
			op = 0;
			break;
		}
		if (pt_get_regs(tid, &regs) < 0)
			op = 0;
		else if (!room_stack_at(&look, arch->sp(&regs)))
			op = ENTRY_QUEUE;
		tree_resume_thread(tree, t);
	}
	if (look.failed)
		op = 0;
	maps_look_close(&look);
	return op;
}

/* Where none sleeps: another that has run since it was first seen. */
static pid_t busy_to_queue(struct room *room, struct tree *tree)
{
	struct thread *t = tree_next_thread(tree, room->space, 0);

	if (t && t->tid == room->pid)
		t = tree_next_thread(tree, room->space, t->tid);
	if (t && t->tid == room->busy_tid)
		return may_queue(room, ENTRY_QUEUE_ANY, t->tid, false) ? t->tid : 0;
	room->busy_tid = t ? t->tid : 0;
	room->busy_run_ns = t ? task_run_ns(t->tid) : 0;
	return 0;
}

/* The main thread has not run its call: it is at work in C, and others may run Python. */
static void queue_for_all(struct room *room, struct tree *tree, uint64_t now)
{
	pid_t tid;

	room->retry_ns = now + RETRY_MS * MS; /* a thread may be slow to stop */
	if (queue_for(room, tree) != ENTRY_QUEUE_ANY)
		return;
	tid = other_to_queue(room, tree, ENTRY_QUEUE_ANY, room->eval ? room->queue_from : 0);
	if (room->eval)
		room->queue_from = tid;
	else if (!tid)
		tid = busy_to_queue(room, tree);
	room->queued_any = tid && lend(room, tree, ENTRY_QUEUE_ANY, tid, now);
}

static bool main_fits(const struct room *room)
{
	struct maps_look look;
	bool fits;

	maps_look_open(&look, room->pid);
	fits = room_thread_fit(room, room->pid, &look);
	maps_look_close(&look);
	return fits;
}

static void choose(struct room *room, struct tree *tree, const struct sb_room *head, uint64_t now)
{
	uint64_t age = now - room->asked_ns;
	bool confined;
	pid_t other;

	if (main_fits(room) && lend(room, tree, ENTRY_ENSURE, room->pid, now))
		return;
	/*
	 * A filter may end the process for the calls that loading the agent makes, and only that of
	 * a thread in a remote call is suspended. Afterwards the agent makes no calls except for
	 * memory.
	 */
	confined = !head->agent && task_any_seccomp(room->pid);
	if (confined) {
		room->waits_for = "it is confined by seccomp: a thread that sleeps could load the "
				  "agent, and none does";
	} else if (!room->not_ready && (!head->queued || (now - room->queued_ns > 100 * MS &&
							  head->queued < QUEUED_MAX))) {
		if (head->queued)
			room->waits_for = "a call is queued for its main thread, which runs native "
					  "code or sleeps in it";
		queue(room, tree, now);
		return;
	}
	/* An interpreter that has ended takes no call; any sleeping thread will do. */
	room->not_ready = false;
	if (age < 100 * MS)
		return;
	other = room_any_fit(room, tree);
	if (other)
		lend(room, tree, ENTRY_ENSURE, other, now);
	else if (age > SLOW_MS * MS && !confined && !room->queued_any && !room->main_only)
		queue_for_all(room, tree, now);
	if (!room->waits_for)
		room->waits_for = "its main thread runs native code";
	/* Threads move on: an unfit thread may be fit a little later. */
	if (age / (200 * MS) != (age - 5 * MS) / (200 * MS))
		room->n_unfit = 0;
}

/*
 * When the last queued call is seen to have run, its thread may still be at the end of it: see
 * may_queue().
 */
static void watch_queue(struct room *room, const struct sb_room *head)
{
	if (head->queued) {
		room->saw_queued = true;
		return;
	}
	if (!room->saw_queued)
		return;
	room->saw_queued = false;
	room->run_ns = task_run_ns(room->pid);
	room->queuer_run_ns = room->queuer ? task_run_ns(room->queuer) : 0;
	if (head->status == SB_AGENT_AGAIN)
		room->queued_ns = 0;
}

/*
 * A piece has been done. The next one begins as the command did, once the program has had its turn,
 * but with the method that worked last: the better ones have failed, and are not awaited again.
 */
static void next_piece(struct room *room, const struct sb_room *head, uint64_t now)
{
	uint64_t age = now - room->asked_ns;

	if (head->pieces == room->pieces || head->busy || head->done == room->asked)
		return;
	room->pieces = head->pieces;
	room->asked_ns = now;
	if (room->queuer == room->pid && !head->queued)
		; /* the main thread did it: wait for it */
	else if (age > SLOW_MS * MS)
		room->asked_ns -= (SLOW_MS + 1) * MS;
	else if (age > OTHERS_MS * MS)
		room->asked_ns -= (OTHERS_MS + 1) * MS;
	if (room->queuer != room->pid && now - room->queued_ns > OTHERS_MS * MS)
		room->queuer = 0; /* its call waited for long */
	room->waits_for = NULL;
	room->retry_ns = now + PAUSE_MS * MS;
	room->queued_any = false;
	room->busy_tid = 0;
}

bool room_step(struct room *room, struct tree *tree, uint64_t now, pid_t at_bell)
{
	const struct memory *mem = &room->space->mem;
	struct sb_room head;

	if (memory_peek(mem, room->addr, &head, sizeof(head)) != sizeof(head))
		return false;
	if (!room->asked_ns)
		room->asked_ns = now;
	if (room->remote.lent) {
		if (!take_back(room, tree, &head, now))
			return false;
		if (memory_peek(mem, room->addr, &head, sizeof(head)) != sizeof(head))
			return false;
	}
	next_piece(room, &head, now);
	watch_queue(room, &head);
	if (head.done == room->asked) {
		room->under_way = room->ended = false;
		room->run_ns = task_run_ns(room->pid);
		room->busy_tid = 0;
		return true;
	}
	if (head.busy)
		room->waits_for = "the agent is at work";
	else if (at_bell)
		lend(room, tree, ENTRY_HERE, at_bell, now);
	else if (!room->bell_only && now >= room->retry_ns)
		choose(room, tree, &head, now);
	return false;
}

static const char *why_not_quiet(struct room *room)
{
	struct room_answer answer;

	room_answer(room, &answer);
	if (answer.status == SB_AGENT_BUSY && room->stopping)
		return "something that the agent watches has not returned yet";
	return "its main thread runs native code, and a call waits for it";
}

/*
 * The agent received STOP and something still refers to it: a call that it times has not returned,
 * a recursion is too deep. That may be over in a moment, so STOP is repeated.
 */
static bool told_to_wait(const struct room *room, uint64_t now)
{
	struct room_answer answer;

	if (!room->stopping || room->under_way || now < room->retry_ns || room_busy(room))
		return false;
	room_answer(room, &answer);
	return answer.status == SB_AGENT_BUSY;
}

bool room_evict(struct room *room, struct tree *tree, uint64_t now)
{
	room->bell_only = false;
	if (room_is_quiet(room))
		return true;
	if (!room->stopping && !room_busy(room)) {
		room->stopping = true;
		room_ask(room, SB_AGENT_STOP);
	} else if (told_to_wait(room, now)) {
		room_ask(room, SB_AGENT_STOP);
		room->retry_ns = now + RETRY_MS * MS;
	}
	if (room->under_way || room->remote.lent)
		room_step(room, tree, now, 0);
	if (!room->under_way && !room_is_quiet(room))
		room->waits_for = why_not_quiet(room);
	return room_is_quiet(room);
}

/*
 * A thread in a start bell's wait: the return address, kept in its red zone, leads into that stub.
 */
static bool stands_at_bell(struct space *space, struct thread *t)
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
static pid_t look_at_bells(struct space *space, struct tree *tree, bool *unknown)
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
		there = stands_at_bell(space, t);
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
pid_t room_at_bell(struct space *space, struct tree *tree)
{
	uint64_t until = clock_ns() + AT_BELL_MOST_MS * MS;
	bool unknown;
	pid_t tid;

	do {
		tid = look_at_bells(space, tree, &unknown);
	} while (!tid && unknown && clock_ns() < until);
	return tid;
}
