/* SPDX-License-Identifier: MIT */
/* beside others */
/*
 * Taking a process under trace again and again while one of its threads execs it anew. Without care
 * the tracer waits in PTRACE_SEIZE for the end of the exec, and the exec for the tracer: for ever.
 * The child is this program too (argument "execs").
 *
 * What has ended can be looked at until it is buried: code that holds a pointer to it across a
 * dispatch reads that it has ended, and not what the allocator left there. A vfork child that ends
 * before its first stop gives back no more references of its space than it took. A thread that job
 * control has stopped in the middle of a stub runs on to its end, and is stopped as before.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "inject/tree.h"

enum { THREADS = 40, ROUNDS = 120, COUNTER_FD = 9 };

static void sleep_us(long us)
{
	nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

/* ---- the child ---- */

static void *sleeper(void *arg)
{
	for (;;)
		sleep_us(100000);
	return arg;
}

static void *execer(void *arg)
{
	char *args[] = { arg, (char *)"execs", NULL };

	sleep_us(2000);
	execv("/proc/self/exe", args);
	return NULL;
}

static int child(char *self)
{
	uint64_t *execs = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, COUNTER_FD, 0);
	pthread_t t;

	if (execs == MAP_FAILED)
		return 2;
	/* Of the thread that called exec, which did not inherit it: a test that fails leaves
	 * nothing. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	__atomic_add_fetch(execs, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t, NULL, i == THREADS - 1 ? execer : sleeper, self);
	sleeper(NULL);
	return 0;
}

/* ---- the test ---- */

static int shared, put; /* references of a space */

static void forked(void *ctx, struct proc *child_proc, struct proc *parent, bool shares)
{
	(void)ctx;
	(void)parent;
	shared += shares;
	child_proc->session = child_proc;
}

static void execed(void *ctx, struct proc *proc)
{
	(void)ctx;
	(void)proc;
}

static void ended(void *ctx, struct proc *proc, int status)
{
	(void)ctx;
	(void)status;
	put += proc->space != NULL;
}

static void thread_new(void *ctx, struct thread *thread)
{
	(void)ctx;
	(void)thread;
}

static bool trapped(void *ctx, struct thread *thread)
{
	(void)ctx;
	(void)thread;
	return false;
}

static const struct tree_ops ops = {
	.forked = forked,
	.execed = execed,
	.ended = ended,
	.thread_new = thread_new,
	.trapped = trapped,
};

static pid_t start_child(uint64_t **execs)
{
	int fd = memfd_create("execs", 0);
	pid_t pid;

	assert_true(fd >= 0 && ftruncate(fd, 4096) == 0);
	*execs = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(*execs != MAP_FAILED);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fd, COUNTER_FD);
		execl("/proc/self/exe", "test-tree", "execs", NULL);
		_exit(2);
	}
	close(fd);
	return pid;
}

static bool round_trip(struct tree *tree, pid_t pid)
{
	struct sb_err err = { 0 };
	struct proc *proc;
	bool taken;

	tree_init(tree, &ops, NULL);
	taken = tree_add(tree, pid, 0, &proc, &err) == 0;
	if (taken) {
		proc->session = proc;
		tree_dispatch(tree);
		proc = tree_proc(tree, pid);
		if (proc)
			tree_release(tree, proc);
	}
	tree_free(tree);
	return taken;
}

/* Where the threads of one that does not go on stand. */
static void show_threads(pid_t pid)
{
	char command[128];

	snprintf(command, sizeof(command),
		 "cd /proc/%d/task && grep -E '^(State|TracerPid|SigBlk)' */status; "
		 "grep . */wchan */syscall",
		 pid);
	if (system(command) != 0)
		print_message("process %d is gone\n", pid);
}

static void test_exec_while_seizing(void **state)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	uint64_t *execs, before;
	sigset_t set;
	int taken = 0;
	pid_t pid;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid = start_child(&execs);
	for (int i = 0; i < ROUNDS; i++) {
		taken += round_trip(tree, pid);
		sleep_us(500 + i * 37 % 3000);
	}
	assert_true(taken > ROUNDS / 2);
	before = __atomic_load_n(execs, __ATOMIC_RELAXED);
	for (int i = 0; i < 400 && __atomic_load_n(execs, __ATOMIC_RELAXED) < before + 3; i++)
		sleep_us(50000);
	if (__atomic_load_n(execs, __ATOMIC_RELAXED) < before + 3)
		show_threads(pid);
	assert_true(__atomic_load_n(execs, __ATOMIC_RELAXED) >= before + 3);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(tree);
}

static pid_t start_forker(bool forks)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		sleep_us(20000);
		if (forks && vfork() == 0)
			_exit(0);
	}
}

static void test_gone_stays_readable(void **state)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	pid_t pid = start_forker(false);
	struct sb_err err = { 0 };
	struct thread *thread;
	struct proc *proc;

	(void)state;
	tree_init(tree, &ops, NULL);
	assert_int_equal(tree_add(tree, pid, 0, &proc, &err), 0);
	proc->session = proc;
	thread = proc->threads;
	kill(pid, SIGKILL);
	while (tree_proc(tree, pid)) {
		tree_dispatch(tree);
		sleep_us(100);
	}
	assert_true(proc->ended && !proc->space && !proc->session && !proc->threads);
	assert_int_equal(proc->pid, pid);
	assert_int_equal(thread->state, THREAD_GONE);
	assert_false(tree_stop_thread(tree, thread, 1000));
	tree_resume_thread(tree, thread);
	assert_true(tree_retake(tree, proc, &err) < 0);
	tree_release(tree, proc);
	tree_forget(tree, proc);
	tree_bury(tree);
	assert_null(tree->procs);
	tree_free(tree);
	free(tree);
}

/* libc's, but for this: the first process that the tree compares with its parent dies of it. */
static pid_t unborn;

long syscall(long nr, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long arg[6], ret;
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	ret = real(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	if (nr == SYS_kcmp && !unborn) {
		unborn = (pid_t)arg[1];
		kill(unborn, SIGKILL);
		sleep_us(20000);
	}
	return ret;
}

static void test_vfork_child_ends_unborn(void **state)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	pid_t pid = start_forker(true);
	struct sb_err err = { 0 };
	struct proc *proc;

	(void)state;
	tree_init(tree, &ops, NULL);
	assert_int_equal(tree_add(tree, pid, 0, &proc, &err), 0);
	proc->session = proc;
	proc->space = (struct space *)tree; /* a label, to the tree */
	unborn = shared = put = 0;
	while (!unborn || tree_proc(tree, unborn)) {
		sleep_us(100);
		tree_dispatch(tree);
	}
	assert_int_equal(shared, 1);
	assert_int_equal(put, 1);
	kill(pid, SIGKILL);
	while (tree_proc(tree, pid)) {
		tree_dispatch(tree);
		sleep_us(100);
	}
	tree_free(tree);
	free(tree);
}

static char state_of(pid_t pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		fclose(f);
	}
	return state;
}

static void test_stopped_thread_runs(void **state)
{
	volatile uint64_t *rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct tree *tree = calloc(1, sizeof(*tree));
	struct sb_err err = { 0 };
	struct proc *proc;
	uint64_t before;
	pid_t pid;

	(void)state;
	assert_true(rounds != MAP_FAILED);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			++*rounds;
	}
	kill(pid, SIGSTOP);
	while (state_of(pid) != 'T')
		sleep_us(100);
	tree_init(tree, &ops, NULL);
	assert_int_equal(tree_add(tree, pid, 0, &proc, &err), 0);
	for (int i = 0; i < 20; i++) {
		assert_true(tree_stop_thread(tree, proc->threads, 1000000));
		assert_int_equal(proc->threads->stop.kind, STOP_GROUP);
		before = *rounds;
		tree_resume_thread(tree, proc->threads);
		sleep_us(2000);
		assert_int_equal(*rounds, before);
		assert_true(tree_stop_thread(tree, proc->threads, 1000000));
		for (int k = 0; k < 100 && *rounds == before; k++) {
			tree_run_thread(tree, proc->threads);
			sleep_us(2000);
			assert_true(tree_stop_thread(tree, proc->threads, 1000000));
			assert_int_equal(proc->threads->stop.kind, STOP_GROUP);
		}
		assert_true(*rounds > before);
	}
	tree_release(tree, proc);
	for (int i = 0; i < 5000 && state_of(pid) != 'T'; i++)
		sleep_us(200); /* it stops anew, by itself */
	assert_int_equal(state_of(pid), 'T');
	before = *rounds;
	sleep_us(2000);
	assert_int_equal(*rounds, before);
	kill(pid, SIGCONT);
	while (*rounds == before)
		sleep_us(100);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tree_free(tree);
	free(tree);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exec_while_seizing),
		cmocka_unit_test(test_gone_stays_readable),
		cmocka_unit_test(test_vfork_child_ends_unborn),
		cmocka_unit_test(test_stopped_thread_runs),
	};

	if (argc == 2 && strcmp(argv[1], "execs") == 0)
		return child(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
