/* SPDX-License-Identifier: MIT */
/*
 * Stopping one thread: sends PTRACE_INTERRUPT, waits for the stop, and classifies it. Records how
 * long threads are held. No event is dispatched here.
 */
#include "clock.h"
#include "tree-task.h"

void tree_note_hold(struct tree *tree, struct thread *thread)
{
	uint64_t now = clock_ns();

	if (thread->held_since && now - thread->held_since > tree->longest_hold_ns)
		tree->longest_hold_ns = now - thread->held_since;
	thread->held_since = 0;
}

/* Waits until the thread is stopped in any kind of stop; its event is dispatched later. */
bool tree_await_stop(struct thread *thread, unsigned int timeout_us)
{
	struct stop stop;

	if (!pt_wait(thread->tid, &stop, timeout_us))
		return false;
	thread->interrupted = false; /* any stop consumes a pending interrupt */
	if (thread->async)
		task_note_restart(thread);
	thread->stop = stop;
	thread->state = THREAD_STOPPED;
	thread->kept = false;
	return true;
}

bool tree_interrupt(struct thread *thread)
{
	if (thread->state == THREAD_STOPPED || thread->interrupted)
		return true;
	if (pt_interrupt(thread->tid) < 0)
		return false;
	thread->interrupted = true;
	thread->held_since = clock_ns();
	return true;
}

bool tree_event_pending(const struct thread *thread)
{
	enum stop_kind kind = thread->stop.kind;

	return thread->state == THREAD_STOPPED &&
	       (kind == STOP_FORK || kind == STOP_VFORK || kind == STOP_CLONE || kind == STOP_EXEC);
}

bool tree_forks(const struct thread *thread)
{
	if (!tree_event_pending(thread))
		return false;
	/* Most clones make a thread, and some programs do little else. */
	return thread->stop.kind != STOP_CLONE ||
	       !task_is_thread(thread->proc->pid, (pid_t)thread->stop.message);
}
