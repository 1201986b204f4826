/* SPDX-License-Identifier: MIT */
/*
 * lives MODE: a process that is odd in one way (the table at the end tells which) and otherwise
 * calls lives_fn() from a thread of its own until SIGTERM. The odd part checks itself.
 */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include "victim.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

enum { THREADS = 4, BURST = 300, FIBER_STACK = 2048, GUARDED = 1024 };

uint64_t lives_fn(uint64_t x);

static uint64_t calls, errors;
static char **self;

VICTIM_HOOKED uint64_t lives_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 17 + 9;
	VICTIM_OPAQUE(x);
	return x;
}

static void note(bool good, const char *what)
{
	if (good)
		return;
	if (__atomic_fetch_add(&errors, 1, __ATOMIC_RELAXED) < 5)
		fprintf(stderr, "lives: %s: %s\n", what, strerror(errno));
}

static void call(void)
{
	uint64_t i = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);

	note(lives_fn(i) == i * 17 + 9, "a wrong result");
}

static void *caller(void *arg)
{
	(void)arg;
	while (!victim_stop) {
		call();
		usleep(100);
	}
	return NULL;
}

/* Where no handler would do: SIGTERM stays blocked and is asked for. */
static void block_term(void)
{
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &term, NULL);
}

static void look_for_term(void)
{
	sigset_t waiting;

	if (sigpending(&waiting) == 0 && sigismember(&waiting, SIGTERM))
		victim_stop = 1;
}

static pthread_t thread(void *(*fn)(void *), size_t stack)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	if (stack)
		pthread_attr_setstacksize(&attr, stack);
	if (pthread_create(&t, &attr, fn, NULL) != 0) {
		perror("lives: pthread_create");
		exit(2);
	}
	pthread_attr_destroy(&attr);
	return t;
}

static int report(void)
{
	victim_calls("lives_fn", calls);
	return victim_done(errors == 0);
}

/* Some change at SIGUSR1. */
static volatile sig_atomic_t change;

static void on_change(int sig)
{
	(void)sig;
	change = 1;
}

static void until_change(void)
{
	signal(SIGUSR1, on_change);
	victim_ready();
	while (!victim_stop && !change) {
		call();
		usleep(100);
	}
}

/* Its leader has ended: /proc/PID says that it is a zombie. */
static void *heir(void *arg)
{
	caller(arg);
	exit(report());
}

static void live_leader(void)
{
	thread(heir, 0);
	thread(caller, 0);
	victim_ready();
	pthread_exit(NULL);
}

/* It ends at SIGUSR1. */
static void live_leaves(void)
{
	thread(heir, 0);
	until_change();
	puts("changed");
	pthread_exit(NULL);
}

/* A thread in uninterruptible sleep most of the time: its vfork child takes its time. */
static void *vforker(void *arg)
{
	(void)arg;
	while (!victim_stop) {
		int status = 0;
		pid_t pid = vfork();

		if (pid == 0) {
			struct timespec ts = { 0, 80000000 };

			syscall(SYS_nanosleep, &ts, NULL);
			_exit(7);
		}
		note(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7, "a vfork child");
	}
	return NULL;
}

static void live_vfork(void)
{
	pthread_t t[2] = { thread(vforker, 0), thread(vforker, 0) };

	victim_ready();
	caller(NULL);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
}

/* Its vfork child does nothing but call, in the memory that it shares. */
static void *vfork_caller(void *arg)
{
	(void)arg;
	while (!victim_stop) {
		int status = 0;
		pid_t pid = vfork();

		if (pid == 0) {
			for (int i = 0; i < 30000 && !victim_stop; i++)
				call();
			_exit(7);
		}
		note(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7, "a vfork child");
		usleep(1000);
	}
	return NULL;
}

static void live_shares(void)
{
	pthread_t t = thread(vfork_caller, 0);

	victim_ready();
	caller(NULL);
	pthread_join(t, NULL);
}

/* As good as always in a vfork child, which runs for a third of a millisecond. */
static void live_brief(void)
{
	victim_ready();
	while (!victim_stop) {
		int status = 0;
		pid_t pid = vfork();

		if (pid == 0) {
			uint64_t end = victim_now_ns() + 300000;

			while (victim_now_ns() < end)
				call();
			_exit(7);
		}
		note(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7, "a vfork child");
		call();
	}
}

/* A thread that is not the leader execs the program again and again. */
static void *execer(void *arg)
{
	(void)arg;
	usleep(30000);
	if (!victim_stop) {
		static char sum[24];
		char *args[] = { self[0], self[1], sum, NULL };

		snprintf(sum, sizeof(sum), "%llu", (unsigned long long)calls);
		execv("/proc/self/exe", args);
		note(false, "exec");
	}
	return NULL;
}

static void live_exec(void)
{
	pthread_t t;

	block_term(); /* and it stays blocked through the exec */
	if (self[2])
		calls = strtoull(self[2], NULL, 0);
	else
		victim_ready();
	t = thread(execer, 0);
	while (!victim_stop) {
		call();
		usleep(100);
		look_for_term();
	}
	pthread_join(t, NULL);
}

static void *short_life(void *arg)
{
	call();
	return arg;
}

/* Threads by the hundred at once, on the smallest stacks. */
static void live_burst(void)
{
	pthread_attr_t attr;
	pthread_t t[BURST];

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN);
	victim_ready();
	while (!victim_stop) {
		for (int i = 0; i < BURST; i++)
			if (pthread_create(&t[i], &attr, short_life, NULL))
				exit(3);
		for (int i = 0; i < BURST; i++)
			pthread_join(t[i], NULL);
	}
}

/* Children by the hundred, each of which calls once. */
static void live_children(void)
{
	pid_t child[40];
	int status;

	victim_ready();
	while (!victim_stop) {
		for (int i = 0; i < 40; i++) {
			child[i] = fork();
			if (child[i] == 0)
				_exit(lives_fn(4) == 77 ? 0 : 1);
		}
		for (int i = 0; i < 40; i++, call())
			note(waitpid(child[i], &status, 0) == child[i] && status == 0, "a child");
	}
}

/* Not dumpable from then on, or, as root, another user. */
static void fork_one(void)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(lives_fn(4) == 77 ? 0 : 1);
	note(waitpid(pid, &status, 0) == pid && status == 0, "a child after the change");
}

static void live_nodump(void)
{
	until_change();
	note(prctl(PR_SET_DUMPABLE, 0) == 0, "PR_SET_DUMPABLE");
	fork_one();
	puts("changed");
	caller(NULL);
}

static void live_setuid(void)
{
	until_change();
	note(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0, "setuid");
	fork_one();
	puts("changed");
	caller(NULL);
}

/* Execs a program that may be set-user-ID, and says whom it became. */
static void live_become(void)
{
	if (self[2]) {
		printf("euid %d\n", (int)geteuid());
	} else {
		char *args[] = { self[0], self[1], (char *)"again", NULL };

		until_change();
		execv(self[0], args);
		note(false, "exec");
	}
	caller(NULL);
}

/*
 * Stacks used up to a few hundred bytes above their guard page: nothing that is laid under the
 * stack pointer has room there.
 */
static __attribute__((noinline)) void dive(uintptr_t low)
{
	volatile char pad[256];

	pad[0] = 1;
	if ((uintptr_t)__builtin_frame_address(0) - low > GUARDED + sizeof(pad))
		dive(low);
	else
		while (!victim_stop) {
			struct timespec ts = { 0, 1000000 };

			call();
			syscall(SYS_nanosleep, &ts, NULL);
			look_for_term();
		}
	VICTIM_OPAQUE(low);
	pad[1] = 2;
}

static void *diver(void *arg)
{
	pthread_attr_t attr;
	size_t size;
	void *low;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &low, &size);
	pthread_attr_destroy(&attr);
	dive((uintptr_t)low);
	return arg;
}

static void start_divers(pthread_t *t)
{
	for (int i = 0; i < THREADS; i++)
		t[i] = thread(diver, (size_t)PTHREAD_STACK_MIN);
}

static void live_tight(void)
{
	pthread_t t[THREADS];

	start_divers(t);
	victim_ready();
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

/* No thread has room: not even for SIGTERM's handler, so it is asked for. */
static void *last_diver(void *arg)
{
	diver(arg);
	exit(report());
}

static void live_tightest(void)
{
	pthread_t t[THREADS];

	block_term();
	start_divers(t);
	thread(last_diver, (size_t)PTHREAD_STACK_MIN);
	usleep(20000);
	victim_ready();
	pthread_exit(NULL);
}

/*
 * Fibers: every thread runs on a small stack of its own making, inside memory that another
 * thread counts in. A write below such a stack, or back of what was there, is seen.
 */
static struct fiber {
	uint64_t counter[1024];
	char stack[FIBER_STACK];
	ucontext_t ctx, home;
} fiber_memory[THREADS + 1] __attribute__((aligned(4096)));
static struct fiber *fibers;

static struct fiber *all_fibers(void)
{
	struct fiber *all;

	while (!(all = __atomic_load_n(&fibers, __ATOMIC_ACQUIRE)))
		usleep(1000);
	return all;
}

static void on_fiber(void)
{
	while (!victim_stop) {
		struct timespec ts = { 0, 1000000 };

		call();
		syscall(SYS_nanosleep, &ts, NULL);
	}
}

static void run_fiber(struct fiber *f)
{
	getcontext(&f->ctx);
	f->ctx.uc_stack.ss_sp = f->stack;
	f->ctx.uc_stack.ss_size = sizeof(f->stack);
	f->ctx.uc_link = &f->home;
	makecontext(&f->ctx, on_fiber, 0);
	swapcontext(&f->home, &f->ctx);
}

static void *fiber_thread(void *arg)
{
	static int next;

	run_fiber(&all_fibers()[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)]);
	return arg;
}

/* On a stack of its own as well: else it would be the one thread with space for a remote call. */
static void *count_below(void *arg)
{
	struct fiber *all = all_fibers();
	uint64_t n = 0;

	while (!victim_stop) {
		n++;
		for (int f = 0; f <= THREADS; f++)
			for (int i = 0; i < 1024; i++)
				if (all[f].counter[i]++ != n - 1 && !victim_stop)
					note(false, "memory below a fiber's stack changed");
	}
	return arg;
}

static void with_fibers(bool mapped)
{
	pthread_t t[THREADS], counter = thread(count_below, 0);

	/* SIGTERM is the counter's: its frame would not fit under a fiber. */
	block_term();
	for (int i = 0; i < THREADS; i++)
		t[i] = thread(fiber_thread, 0);
	/* Mapped last, it lies right below the threads' own stacks. */
	__atomic_store_n(&fibers,
			 mapped ? mmap(NULL, sizeof(fiber_memory), PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) :
				  fiber_memory,
			 __ATOMIC_RELEASE);
	victim_ready();
	run_fiber(&fibers[THREADS]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	pthread_join(counter, NULL);
}

static void live_fibers(void)
{
	with_fibers(false);
}

static void live_mapped(void)
{
	with_fibers(true);
}

/* Memory may not gain PROT_EXEC any more. */
static void live_mdwe(void)
{
	if (prctl(PR_SET_MDWE, 1, 0, 0, 0) != 0) {
		puts("no mdwe here");
		exit(77);
	}
	victim_ready();
	caller(NULL);
}

/* No descriptor is left; no address space is left. */
static void live_nofile(void)
{
	struct rlimit few = { 16, 16 };

	setrlimit(RLIMIT_NOFILE, &few);
	while (dup(2) >= 0)
		;
	victim_ready();
	caller(NULL);
}

static void live_noroom(void)
{
	struct rlimit none = { 1 << 20, 1 << 20 };
	pthread_t t = thread(caller, 0);

	setrlimit(RLIMIT_AS, &none);
	victim_ready();
	pthread_join(t, NULL);
}

/* A child exec'd during an attach must find only the descriptors that it was given. */
static void live_inherit(void)
{
	char *list[] = { (char *)"ls", (char *)"-l", (char *)"/proc/self/fd", NULL };
	int status;

	victim_ready();
	while (!victim_stop) {
		pid_t pid = fork();

		if (pid == 0) {
			execvp(list[0], list);
			_exit(9);
		}
		note(waitpid(pid, &status, 0) == pid && status == 0, "ls");
		call();
	}
}

static const struct life {
	const char *name;
	void (*run)(void);
} lives[] = {
	{ "leader", live_leader },   { "leaves", live_leaves },	    { "vfork", live_vfork },
	{ "exec", live_exec },	     { "burst", live_burst },	    { "children", live_children },
	{ "nodump", live_nodump },   { "setuid", live_setuid },	    { "become", live_become },
	{ "tight", live_tight },     { "tightest", live_tightest }, { "fibers", live_fibers },
	{ "mdwe", live_mdwe },	     { "nofile", live_nofile },	    { "noroom", live_noroom },
	{ "inherit", live_inherit }, { "shares", live_shares },	    { "mapped", live_mapped },
	{ "brief", live_brief },
};

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = victim_on_term, .sa_flags = SA_RESTART };

	self = argv;
	victim_catch_term();
	sigaction(SIGTERM, &sa, NULL); /* waits for children go on */
	for (size_t i = 0; argc > 1 && i < sizeof(lives) / sizeof(lives[0]); i++) {
		if (strcmp(argv[1], lives[i].name) != 0)
			continue;
		lives[i].run();
		return report();
	}
	return 2;
}
