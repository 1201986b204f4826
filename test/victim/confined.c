/* SPDX-License-Identifier: MIT */
/*
 * confined: allows itself a dozen system calls and dies of any other, as a sandbox does. Calls
 * confined_fn() until SIGTERM.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "victim.h"

uint64_t confined_fn(uint64_t x);

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

static int confine(void)
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

int main(void)
{
	uint64_t calls = 0, errors = 0;

	victim_catch_term();
	printf("confined\n"); /* stdio's buffer is allocated before */
	if (confine() != 0) {
		perror("confined: seccomp");
		return 2;
	}
	victim_ready();
	while (!victim_stop) {
		for (int i = 0; i < 100; i++, calls++)
			if (confined_fn(calls) != calls * 13 + 8)
				errors++;
		victim_sleep_ns(100000);
	}
	victim_calls("confined_fn", calls);
	return victim_done(errors == 0);
}
