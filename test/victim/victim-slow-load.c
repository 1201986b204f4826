/* SPDX-License-Identifier: MIT */
/*
 * A library whose constructor waits for SIGUSR1, and so holds the dynamic linker's lock. It waits
 * as for a lock of the C library: a thread that sleeps willingly could load the agent itself.
 */
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t lock = 2;

static void open_gate(int signo)
{
	(void)signo;
	__atomic_store_n(&lock, 0, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &lock, FUTEX_WAKE_PRIVATE, 1, NULL);
}

__attribute__((constructor)) static void slow_load(void)
{
	const struct sigaction act = { .sa_handler = open_gate, .sa_flags = SA_RESTART };

	sigaction(SIGUSR1, &act, NULL);
	while (__atomic_load_n(&lock, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &lock, FUTEX_WAIT_PRIVATE, 2, NULL);
}
