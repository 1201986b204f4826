/* SPDX-License-Identifier: MIT */
/*
 * Files that targets choose may take seconds to read, and only the session's own thread can serve
 * ptrace stops. So a thread beside it reads them, while it serves the stops of its processes.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "priv.h"
#include "elf/budget.h"
#include "inject/tree-task.h"
#include "src/base/log.h"

enum { LOOK_NS = 1000000, SOON_NS = 50000, TURN_NS = 10000000 };

struct aside {
	void (*fn)(void *arg);
	void *arg;
	bool hurry, done, joined;
	bool yields;	    /* hurry: it has no real-time priority at present */
	uint64_t turned_ns; /* since then it has, or has not */
	pthread_t thread;
	pid_t tid; /* 0: it has not begun */
	pthread_mutex_t lock;
	pthread_cond_t end;
	struct log_held log;
};

static _Thread_local bool is_aside;

/* Below the session's thread, which serves stops, and above the target's; or as all others. */
static void set_priority(pid_t tid, bool first)
{
	struct sched_param prio = { .sched_priority = first };

	sched_setscheduler(tid, (first ? SCHED_FIFO : SCHED_OTHER) | SCHED_RESET_ON_FORK, &prio);
}

/*
 * Ahead of the target's threads a search of seconds would keep a processor from them as long, and
 * behind them it may not get one. So it is ahead in every second turn only.
 */
static void take_turn(struct aside *a)
{
	pid_t tid = __atomic_load_n(&a->tid, __ATOMIC_ACQUIRE);
	uint64_t now = clock_ns();

	if (!a->hurry || !tid || now - a->turned_ns < TURN_NS)
		return;
	a->turned_ns = now;
	a->yields = !a->yields;
	set_priority(tid, !a->yields);
}

static void *aside_main(void *arg)
{
	struct aside *a = arg;

	if (a->hurry)
		set_priority(0, true);
	__atomic_store_n(&a->tid, gettid(), __ATOMIC_RELEASE);
	is_aside = true;
	log_hold(&a->log);
	a->fn(a->arg);
	log_hold(NULL);
	pthread_mutex_lock(&a->lock);
	a->done = true;
	pthread_cond_signal(&a->end);
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* A file that is cut short is a SIGBUS here; all other signals are for the session's thread. */
static bool start(struct aside *a)
{
	sigset_t most, old;
	pthread_condattr_t monotonic;
	int ret;

	a->hurry = (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO;
	pthread_mutex_init(&a->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&a->end, &monotonic);
	pthread_condattr_destroy(&monotonic);
	sigfillset(&most);
	for (size_t i = 0; i < 4; i++)
		sigdelset(&most, (const int[]){ SIGBUS, SIGSEGV, SIGILL, SIGFPE }[i]);
	pthread_sigmask(SIG_BLOCK, &most, &old);
	ret = pthread_create(&a->thread, NULL, aside_main, a);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret == 0;
}

static bool await(struct aside *a, long ns)
{
	struct timespec until;
	bool done;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ns;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&a->lock);
	if (!a->done)
		pthread_cond_timedwait(&a->end, &a->lock, &until);
	done = a->done;
	pthread_mutex_unlock(&a->lock);
	return done;
}

/* The names that a new image needs are looked up before its first instruction. A child of a process
 * in which hooks are about to be planted needs the same ones. */
static bool needs_names(void *ctx, const struct thread *thread, const struct stop *stop)
{
	struct inject_session *s = ctx;
	const struct proc *proc = thread->proc, *parent = tree_proc(&s->tree, proc->parent);
	const struct record *rec = proc->session;

	if (stop->kind == STOP_EXEC)
		return true;
	if (thread->newborn && !proc->announced)
		rec = parent ? parent->session : NULL;
	else if (stop->kind != STOP_FORK && stop->kind != STOP_VFORK &&
		 (stop->kind != STOP_CLONE || task_is_thread(proc->pid, (pid_t)stop->message)))
		return false;
	return rec && rec->looking;
}

static void finish(struct aside *a)
{
	if (a->joined)
		return;
	pthread_join(a->thread, NULL);
	a->joined = true;
}

void aside_run(struct inject_session *s, void (*fn)(void *arg), void *arg)
{
	struct aside a = { .fn = fn, .arg = arg, .turned_ns = clock_ns() }, *outer = s->aside;
	bool hurried = false;
	long ns = SOON_NS;

	/* In the middle of serving a stop: one at a time. */
	if (outer)
		finish(outer);
	if (!s->tree.procs || !start(&a)) {
		fn(arg);
		return;
	}
	s->aside = &a;
	while (!await(&a, ns)) {
		take_turn(&a);
		if (!hurried && !a.hurry)
			session_hurry(true);
		hurried = true;
		ns = tree_serve(&s->tree, needs_names) ? SOON_NS : LOOK_NS;
		session_alive(s);
		if (!s->aside_over && session_ends(s)) {
			__atomic_store_n(&s->aside_over, true, __ATOMIC_RELEASE);
			budget_halt();
		}
	}
	finish(&a);
	if (hurried && !a.hurry)
		session_hurry(false);
	s->aside = outer;
	pthread_cond_destroy(&a.end);
	pthread_mutex_destroy(&a.lock);
	log_release(&a.log);
}

bool aside_ends(struct inject_session *s)
{
	if (is_aside)
		return __atomic_load_n(&s->aside_over, __ATOMIC_ACQUIRE);
	session_alive(s);
	return session_ends(s);
}
