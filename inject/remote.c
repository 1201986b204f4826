/* SPDX-License-Identifier: MIT */
#include "remote.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "fault.h"
#include "stack.h"
#include "tree-task.h"

enum {
	SCRATCH = REMOTE_SCRATCH,
	ROUNDS = 40,
	FREE_ROUNDS = 3, /* odd: the next one requires a stack of the thread's own */
	STOP_TIMEOUT_US = 50000,
	PASS_NAPS = 300, /* about 0.9 s of waiting for a thread that lets its system calls pass */
	PASS_NAP_NS = 5000000,
	CALL_TIMEOUT_US = 2000000,
	PR_SYS_ALLOW = 0 /* SYSCALL_DISPATCH_FILTER_ALLOW */
};

/* Writes the frame to the thread's stack, not below low, and keeps the bytes that were there. */
static int lay_frame(struct remote *r, uint64_t low)
{
	size_t len = ARCH_XSTATE_MAX;
	uint8_t *xstate = malloc(ARCH_XSTATE_MAX);
	uint8_t *laid = calloc(1, SCRATCH + ARCH_FRAME_MAX), *frame;
	int ret = -1;

	if (!xstate || !laid || pt_get_xstate(r->thread->tid, xstate, &len) < 0)
		goto out;
	frame = laid + SCRATCH;
	r->frame_len = arch->build_frame(&r->saved, xstate, len, r->sigmask, r->gadgets, frame,
					 ARCH_FRAME_MAX, &r->sp);
	r->stack = malloc(r->frame_len + SCRATCH);
	if (!r->frame_len || !r->stack || r->sp - SCRATCH < low ||
	    memory_peek(r->mem, r->sp - SCRATCH, r->stack, r->frame_len + SCRATCH) !=
		    r->frame_len + SCRATCH)
		goto out;
	/* Tests the place of remote_scratch() together with the frame. */
	memcpy(laid, r->stack, SCRATCH);
	if (stack_write(r->thread->tid, r->mem, r->sp - SCRATCH, laid, r->stack,
			r->frame_len + SCRATCH))
		ret = 0;
	fault_point("stack-laid", r->mem->pid);
out:
	free(laid);
	free(xstate);
	return ret;
}

static void drop(struct remote *r)
{
	free(r->stack);
	r->stack = NULL;
	r->thread = NULL;
}

/*
 * A thread may have its system calls sent to itself, as SIGSYS, while a byte of its own selects
 * that (prctl PR_SET_SYSCALL_USER_DISPATCH; Wine). With all signals blocked that would end the
 * process. During a remote call no thread changes that byte.
 */
static bool calls_pass(struct remote *r, pid_t tid)
{
	uint64_t selector;
	uint8_t says = 0;
	bool pass = !pt_dispatches_calls(tid, &selector) ||
		    (memory_peek(r->mem, selector, &says, 1) == 1 && says == PR_SYS_ALLOW);

	r->dispatched |= !pass;
	return pass;
}

/* Tries one thread; false leaves it as it was. own: only on a stack of its own. */
static bool try_thread(struct remote *r, struct thread *t, bool own)
{
	struct tree *tree = r->tree;
	uint64_t low = 0;

	r->was_stopped = t->state == THREAD_STOPPED;
	if (!tree_stop_thread(tree, t, STOP_TIMEOUT_US))
		return false;
	r->thread = t;
	/* A program that starts threads without end is in such an event at each stop. */
	tree_pass_clone(tree, t, STOP_TIMEOUT_US);
	if (t->state != THREAD_STOPPED ||
	    (t->stop.kind != STOP_TRAP && t->stop.kind != STOP_GROUP) ||
	    pt_get_regs(t->tid, &r->saved) < 0 || pt_get_sigmask(t->tid, &r->sigmask) < 0 ||
	    pt_in_rseq(t->tid, r->mem, arch->pc(&r->saved)) || !calls_pass(r, t->tid) ||
	    (own && !stack_is_own(t->tid, r->mem, &r->saved, &low)) || lay_frame(r, low) < 0) {
		if (!r->was_stopped)
			tree_resume_thread(tree, t);
		drop(r);
		return false;
	}
	return true;
}

static int suspend_seccomp(struct remote *r, struct sb_err *err)
{
	pid_t tid = r->thread->tid;

	if (!task_seccomp(tid))
		return 0;
	if (pt_suspend_seccomp(tid, true) == 0) {
		r->seccomp = true;
		return 0;
	}
	err_set(err, SB_ECONFINED, "process %d is confined by seccomp", r->thread->proc->pid);
	err_hint(err, "run sbinject with CAP_SYS_ADMIN, so that it may suspend the filter for the "
		      "few calls it needs");
	remote_end(r);
	return -SB_ECONFINED;
}

/* Are more threads of the space runnable than there are processors? */
static bool crowded(const struct tree *tree, const struct space *space)
{
	long busy = 0, cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (const struct proc *p = tree->procs; p; p = p->next)
		for (const struct thread *t = p->threads; t && p->space == space; t = t->next)
			if (t->state == THREAD_RUNNING && !t->kept && busy <= cpus)
				busy += !task_sleeps(t->tid);
	return busy > cpus;
}

/* The requirements of one round of choosing. */
struct wish {
	bool asleep;
	bool own;      /* on the stack that it was born with */
	bool follower; /* not the leader, unless it is alone */
};

static int choose_thread(struct remote *r, const struct space *space, struct wish wish)
{
	bool alone = tree_count_threads(r->tree, space) == 1;
	struct thread *t;
	pid_t tid = 0;

	if (r->only) {
		t = tree_thread(r->tree, r->only);
		return t && !t->kept && try_thread(r, t, true) ? 0 : -1;
	}
	/* By id: an attempt dispatches events, and threads start and end. */
	while ((t = tree_next_thread(r->tree, space, tid))) {
		tid = t->tid;
		if (t->kept || (wish.follower && !alone && tid == t->proc->pid) ||
		    (wish.asleep && t->state != THREAD_STOPPED && !task_sleeps(tid)))
			continue;
		if (try_thread(r, t, wish.own))
			return 0;
	}
	return -1;
}

static void release_held(struct remote *r)
{
	if (r->held)
		tree_resume(r->tree, r->held);
	r->held = NULL;
}

/* Stops them again if they are held already: the reason why a thread was unfit may have passed. */
static void hold(struct remote *r, struct space *space)
{
	release_held(r);
	if (tree_stop(r->tree, space, NULL) == 0)
		r->held = space;
}

static bool held_by_caller(const struct tree *tree, const struct space *space)
{
	bool any = false;

	for (const struct proc *p = tree->procs; p; p = p->next)
		for (const struct thread *t = p->threads; t && p->space == space; t = t->next) {
			any |= t->state == THREAD_STOPPED;
			if (t->state != THREAD_STOPPED && !t->kept)
				return false;
		}
	return any;
}

/*
 * First a thread that sleeps, then any. Then, with all other threads held, those that need it: a
 * thread on a stack that others may share, so that no thread sees the bytes under it before they
 * are restored; and a leader, whose id passes to another thread if that one execs.
 */
static int choose_once(struct remote *r, struct space *space, int rounds)
{
	bool theirs = held_by_caller(r->tree, space);

	for (int round = 0; round < (theirs ? 3 : rounds) && tree_next_thread(r->tree, space, 0);
	     round++) {
		bool alone_is_enough = round < (theirs ? 1 : FREE_ROUNDS);
		struct wish wish = {
			.asleep = round == 0 && !theirs,
			.follower = alone_is_enough,
			.own = alone_is_enough || round % 2,
		};

		if (!theirs && (!alone_is_enough || (round == 0 && crowded(r->tree, space))))
			hold(r, space);
		if (choose_thread(r, space, wish) == 0)
			return 0;
		if (theirs)
			continue;
		release_held(r);
		tree_await_kept(r->tree, space, STOP_TIMEOUT_US);
	}
	return -1;
}

/*
 * The rounds of one choice take less than a millisecond, and a thread dispatches its system calls
 * for as long as its emulated program computes. Naps of many lengths meet the moments between.
 */
static int choose(struct remote *r, struct space *space)
{
	for (int nap = 0; nap < PASS_NAPS; nap++) {
		r->dispatched = false;
		/* Later tries hold the other threads twice each, not for dozens of rounds. */
		if (choose_once(r, space, nap ? FREE_ROUNDS + 2 : ROUNDS) == 0)
			return 0;
		if (!r->dispatched || held_by_caller(r->tree, space))
			break;
		nanosleep(&(struct timespec){ .tv_nsec = PASS_NAP_NS * (nap % 7 + 1) / 7 }, NULL);
	}
	return -1;
}

int remote_begin(struct remote *r, struct tree *tree, struct space *space, const struct memory *mem,
		 const struct arch_gadgets *gadgets, struct sb_err *err)
{
	return remote_begin_on(r, 0, tree, space, mem, gadgets, err);
}

int remote_begin_on(struct remote *r, pid_t tid, struct tree *tree, struct space *space,
		    const struct memory *mem, const struct arch_gadgets *gadgets,
		    struct sb_err *err)
{
	memset(r, 0, sizeof(*r));
	r->only = tid;
	r->tree = tree;
	r->mem = mem;
	r->gadgets = gadgets;
	if (fault_point("remote-begin", mem->pid))
		return err_set(err, SB_ETARGET, "fault: remote-begin");
	if (choose(r, space) == 0)
		return suspend_seccomp(r, err);
	release_held(r);
	if (!tree_next_thread(tree, space, 0) || memory_gone(mem))
		return memory_err_gone(mem->pid, err);
	return err_set(err, SB_ETARGET,
		       "process %d: no thread can make a remote call (all are in uninterruptible "
		       "sleep, lack stack, or dispatch their system calls to themselves)",
		       mem->pid);
}

uint64_t remote_scratch(struct remote *r, const void *bytes, size_t len)
{
	if (len > SCRATCH || memory_write(r->mem, r->sp - SCRATCH, bytes, len, NULL) < 0)
		return 0;
	return r->sp - SCRATCH;
}

/* The thread does not get a processor, or hangs in the kernel: on a lock of its memory, say. */
static int not_back(const struct remote *r, struct sb_err *err)
{
	err_set(err, SB_ETARGET,
		"thread %d of process %d did not return within %d s from a system call that "
		"sbinject made in it",
		r->thread->tid, r->mem->pid, CALL_TIMEOUT_US / 1000000);
	err_hint(err, "try again when the machine is less busy; --no-children leaves out other "
		      "processes than -p names, --backend uprobe needs no thread of it");
	return -SB_ETARGET;
}

/*
 * Runs the thread of the remote call to a system call's edge, or (trap) to the requested stop,
 * which is a group stop where job control has stopped the process meanwhile.
 */
static int run_to(struct remote *r, bool trap, struct sb_err *err)
{
	struct stop stop;

	for (int i = 0; i < 16; i++) {
		if (!pt_wait(r->thread->tid, &stop, CALL_TIMEOUT_US))
			return not_back(r, err);
		if (!trap && stop.kind == STOP_SYSCALL)
			return 0;
		if (trap && (stop.kind == STOP_TRAP || stop.kind == STOP_GROUP)) {
			r->thread->stop = stop;
			return 0;
		}
		/* After an exec by another thread the leader's id is that thread's. */
		if (stop.kind == STOP_GONE || stop.kind == STOP_EXEC) {
			r->thread->stop = stop;
			return err_set(err, SB_ENOPROC, "thread %d ended", r->thread->tid);
		}
		/* The one signal that cannot be blocked: sent again at the end. */
		r->sigstop |= stop.kind == STOP_SIGNAL && stop.sig == SIGSTOP;
		/* A group stop or a late interrupt: continue the call. */
		pt_syscall(r->thread->tid);
	}
	return err_set(err, SB_ETARGET, "thread %d cannot make a remote call", r->thread->tid);
}

/*
 * A call that was entered and given up: makes the kernel skip it, so that the thread continues from
 * user code.
 */
static int skip_entered(struct remote *r, struct sb_err *err)
{
	struct arch_regs regs;

	if (pt_get_regs(r->thread->tid, &regs) < 0)
		return err_set(err, SB_ENOPROC, "thread %d ended", r->thread->tid);
	arch->enter_syscall(&regs, r->sp, -1);
	pt_set_regs(r->thread->tid, &regs);
	r->at_entry = false;
	pt_syscall(r->thread->tid);
	return run_to(r, false, err);
}

static bool is_lost(const struct remote *r)
{
	return r->thread->stop.kind == STOP_GONE || r->thread->stop.kind == STOP_EXEC;
}

static int start(struct remote *r, struct sb_err *err)
{
	pid_t tid = r->thread->tid;
	bool first;

	if (is_lost(r))
		return err_set(err, SB_ENOPROC, "thread %d ended", tid);
	if (r->at_entry && skip_entered(r, err) < 0)
		return -SB_ETARGET;
	if (pt_set_regs(tid, &r->work) < 0)
		return err_set(err, SB_ENOPROC, "thread %d ended", tid);
	/*
	 * The mask second: if the tracer were killed between the two, the mask would never be
	 * restored.
	 */
	first = !r->called;
	r->called = true;
	if (fault_point("call-set", r->thread->proc->pid))
		return err_set(err, SB_ETARGET, "thread %d cannot make a remote call", tid);
	/* Another thread's exec may have ended it since. */
	if (first && pt_set_sigmask(tid, ~0ull) < 0)
		return err_set(err, SB_ENOPROC, "thread %d ended", tid);
	if (fault_point("call-start", r->thread->proc->pid))
		return err_set(err, SB_ETARGET, "fault: call-start");
	r->in_call = true;
	pt_syscall(tid);
	r->at_entry = true;
	return run_to(r, false, err);
}

/*
 * At the entry the call is still rt_sigreturn: a thread whose tracer has died by now returns from
 * here, and a seccomp filter, which is suspended only while the tracer lives, sees no other call.
 * Only now the number is set to the intended one; the filter looks a moment later.
 *
 * The interrupt ends the call at a stop before user code, where the next call may begin, and where
 * restore() needs the thread: the stop at the call's exit is saved. No call that sbinject makes
 * returns early for it.
 */
static int enter(struct remote *r, long nr, struct sb_err *err)
{
	pid_t tid = r->thread->tid;

	if (pt_get_regs(tid, &r->work) < 0)
		return err_set(err, SB_ENOPROC, "thread %d ended", tid);
	arch->enter_syscall(&r->work, r->sp, nr);
	r->at_entry = false;
	if (pt_set_regs(tid, &r->work) < 0 || pt_interrupt(tid) < 0 || pt_cont(tid, 0) < 0)
		return err_set(err, SB_ENOPROC, "thread %d ended", tid);
	return run_to(r, true, err);
}

int remote_syscall(struct remote *r, long *result, struct sb_err *err, long nr, ...)
{
	uint64_t args[6];
	va_list ap;
	int ret;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(ap, uint64_t);
	va_end(ap);
	r->work = r->saved;
	arch->prepare_syscall(&r->work, r->gadgets, r->sp, nr, args);
	arch->defer_syscall(&r->work, r->gadgets, r->sp);
	ret = start(r, err);
	if (ret < 0)
		return ret;
	if (fault_point("call-entered", r->thread->proc->pid))
		return err_set(err, SB_ETARGET, "fault: call-entered");
	ret = enter(r, nr, err);
	if (ret < 0 || pt_get_regs(r->thread->tid, &r->work) < 0)
		return err_set(err, SB_ETARGET, "thread %d was lost in a remote call",
			       r->thread->tid);
	*result = (long)arch->syscall_result(&r->work);
	r->in_call = false;
	if (fault_point("call-left", r->thread->proc->pid))
		return err_set(err, SB_ETARGET, "fault: call-left");
	return 0;
}

/*
 * Back to a stop from which the kernel examines interrupted system calls: only there do the saved
 * registers have their meaning. A call that has only been entered is skipped.
 */
static bool leave_call(struct remote *r)
{
	pid_t tid = r->thread->tid;

	if (r->at_entry && pt_get_regs(tid, &r->work) == 0) {
		arch->enter_syscall(&r->work, r->sp, -1);
		pt_set_regs(tid, &r->work);
	}
	if (pt_interrupt(tid) < 0)
		return false;
	pt_cont(tid, 0);
	return run_to(r, true, NULL) == 0;
}

static void restore(struct remote *r)
{
	pid_t tid = r->thread->tid;

	if (r->called && r->in_call && !leave_call(r))
		return;
	/*
	 * The mask first: with the registers of the remote call, the frame would restore the rest
	 * without a tracer.
	 */
	if (r->called)
		pt_set_sigmask(tid, r->sigmask);
	fault_point("call-unmasked", r->thread->proc->pid);
	pt_set_regs(tid, &r->saved);
	fault_point("call-restored", r->thread->proc->pid);
	if (r->seccomp)
		pt_suspend_seccomp(tid, false);
	memory_write(r->mem, r->sp - SCRATCH, r->stack, r->frame_len + SCRATCH, NULL);
}

int remote_async(struct remote *r, uint64_t function, uint64_t arg, struct sb_err *err)
{
	struct thread *t = r->thread;
	pid_t tid = t->tid;

	if (t->stop.kind == STOP_GROUP || (r->was_stopped && !r->held)) {
		remote_end(r);
		return err_set(err, SB_ETARGET, "process %d is stopped by job control",
			       r->mem->pid);
	}
	r->work = r->saved;
	arch->prepare_call(&r->work, r->sp, function, arg);
	/* The mask second, as in start(). */
	if (pt_set_regs(tid, &r->work) < 0 || fault_point("async-set", r->mem->pid) ||
	    pt_set_sigmask(tid, ~0ull) < 0) {
		remote_end(r);
		return err_set(err, SB_ENOPROC, "thread %d ended", tid);
	}
	r->called = true;
	r->async = t->tid;
	t->async = true;
	t->restart_lost = false;
	fault_point("async", r->mem->pid);
	tree_resume_thread(r->tree, t);
	r->thread = NULL;
	release_held(r);
	return 0;
}

static void async_end_stopped(struct remote *r, struct thread *t, bool parked)
{
	t->async = r->called = false;
	r->thread = t;
	if (parked) {
		if (t->restart_lost && arch->waits_with_block(&r->saved))
			arch->restart_syscall(&r->saved);
		/*
		 * It is where the kernel examines interrupted system calls: no need to go there, as
		 * after a call. The mask first, as there.
		 */
		pt_set_sigmask(t->tid, r->sigmask);
		restore(r);
	} else if (r->seccomp) {
		pt_suspend_seccomp(t->tid, false);
	}
	fault_point("async-end", r->mem->pid);
	tree_resume_thread(r->tree, t);
}

bool remote_async_end(struct remote *r, unsigned int timeout_us, remote_parked_fn *parked,
		      void *ctx)
{
	struct thread *t = tree_thread(r->tree, r->async);

	if (t && !tree_stop_thread(r->tree, t, timeout_us))
		t = tree_thread(r->tree, r->async);
	if (t && t->state != THREAD_STOPPED)
		return false;
	if (t)
		async_end_stopped(r, t, parked(ctx));
	r->async = 0;
	drop(r);
	return true;
}

void remote_end(struct remote *r)
{
	if (!r->thread)
		return;
	if (!is_lost(r))
		restore(r);
	if (r->sigstop)
		syscall(SYS_tgkill, r->thread->proc->pid, r->thread->tid, SIGSTOP);
	fault_point("call-end", r->thread->proc->pid);
	if (!r->was_stopped)
		tree_resume_thread(r->tree, r->thread);
	drop(r);
	release_held(r);
}
