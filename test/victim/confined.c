/* SPDX-License-Identifier: MIT */
/*
 * confined [MODE]: confines itself and calls confined_fn() until SIGTERM. Modes:
 *
 *	few	allows itself a dozen system calls and dies of any other, as a sandbox does
 *	memory	dies of mmap, mprotect, munmap and memfd_create
 *	strict	seccomp's strict mode: read, write, exit and sigreturn
 *	notsc	dies of reading the time stamp counter
 *	thread	as few, but one thread only; the leader is not confined
 *	nothing	only gives up new privileges
 *	itself	has system calls sent to itself, as Wine does, but for those of a moment each round
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "victim.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

uint64_t confined_fn(uint64_t x);

static bool strict;
static volatile char dispatched;

VICTIM_HOOKED uint64_t confined_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 13 + 8;
	VICTIM_OPAQUE(x);
	return x;
}

#define ALLOW(nr)                                        \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int confine_to_few(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_write),
		ALLOW(SYS_nanosleep),
		ALLOW(SYS_clock_nanosleep),
		ALLOW(SYS_clock_gettime),
		ALLOW(SYS_rt_sigreturn),
		ALLOW(SYS_restart_syscall),
		ALLOW(SYS_exit),
		ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

#define KILL(nr)                                         \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static int confine_memory(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		KILL(SYS_mmap),
		KILL(SYS_munmap),
		KILL(SYS_mprotect),
		KILL(SYS_madvise),
		KILL(SYS_memfd_create),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int confine_strictly(void)
{
	strict = true;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
}

static int confine_clock(void)
{
	return prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

static int confine_privileges(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static void *confined_thread(void *arg)
{
	if (confine_to_few() != 0)
		abort();
	while (!victim_stop) {
		confined_fn(1);
		victim_sleep_ns(1000000);
	}
	syscall(SYS_exit, 0); /* what a C library does at a thread's end is not allowed */
	return arg;
}

static int confine_thread(void)
{
	pthread_t t;

	return pthread_create(&t, NULL, confined_thread, NULL) ? -1 : pthread_detach(t);
}

/* SIGTERM is asked for: the end of its handler would be a system call, too. */
static int confine_to_itself(void)
{
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &dispatched) != 0)
		exit(77);
	dispatched = 1;
	return 0;
}

static void rest(void)
{
	bool was = dispatched;
	sigset_t waiting;

	dispatched = 0;
	victim_sleep_ns(was ? 1000000 : 100000);
	if (was && sigpending(&waiting) == 0 && sigismember(&waiting, SIGTERM))
		victim_stop = 1;
	dispatched = was && !victim_stop;
}

static const struct mode {
	const char *name;
	int (*confine)(void);
} modes[] = {
	{ "few", confine_to_few },	   { "memory", confine_memory },
	{ "strict", confine_strictly },	   { "thread", confine_thread },
	{ "nothing", confine_privileges }, { "notsc", confine_clock },
	{ "itself", confine_to_itself },
};

static const struct mode *find_mode(const char *name)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(name, modes[i].name) == 0)
			return &modes[i];
	exit(2);
}

int main(int argc, char **argv)
{
	const struct mode *mode = find_mode(argc > 1 ? argv[1] : "few");
	uint64_t calls = 0, errors = 0;
	char was;

	victim_catch_term();
	printf("confined\n"); /* stdio's buffer is allocated before */
	if (mode->confine() != 0) {
		perror("confined: seccomp");
		return 2;
	}
	was = dispatched, dispatched = 0;
	victim_ready();
	dispatched = was;
	while (!victim_stop) {
		for (int i = 0; i < (was ? 100000 : 100); i++, calls++)
			if (confined_fn(calls) != calls * 13 + 8)
				errors++;
		if (!strict) /* it may not even sleep */
			rest();
	}
	victim_calls("confined_fn", calls);
	if (strict) /* exit_group is not allowed */
		syscall(SYS_exit, victim_done(errors == 0));
	return victim_done(errors == 0);
}
