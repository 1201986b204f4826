/* SPDX-License-Identifier: MIT */
/* Remains of a signal frame under a later one: they are told from a frame that a handler returns
 * to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "inject/arch/arch.h"

enum {
	DEPTH = 65536,
	STEP = 64,
	STEPS = 64,
	NEAR = 16, /* so many steps lower, the later frame is over the older one's registers */
	AROUND = ARCH_FRAME_MAX
};

static uint8_t copy[2 * AROUND];
static uint64_t looked_at; /* address of the registers in the middle of `copy` */
static uint64_t at;	   /* ... of the frame of the last signal */

/* The kernel passes the ucontext_t without SA_SIGINFO, too, but not the siginfo_t in the frame. */
static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	at = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs;
	if (looked_at)
		memcpy(copy, (void *)(looked_at - AROUND), sizeof(copy));
}

/* A signal at a stack pointer that is so much lower than here. */
static void signal_at(size_t depth)
{
	long nr = SYS_tgkill;

	__asm__ volatile("sub %1, %%rsp\n\tsyscall\n\tadd %1, %%rsp"
			 : "+a"(nr)
			 : "r"(depth), "D"((long)getpid()), "S"((long)gettid()), "d"((long)SIGUSR1)
			 : "rcx", "r11", "memory");
	assert_int_equal(nr, 0);
}

static bool is_there(void)
{
	struct arch_regs regs;
	size_t off = 0;

	return arch->context_next(copy + AROUND, arch->context_size, &off, &regs) && !off;
}

static bool is_covered(void)
{
	return arch->context_covered(copy, sizeof(copy), looked_at - AROUND, AROUND);
}

static int install(void **state)
{
	struct sigaction sa = { .sa_handler = (void (*)(int))(void *)on_signal };

	(void)state;
	return sigaction(SIGUSR1, &sa, NULL);
}

/* The later frame is lower, so that it lies over the older one's registers. */
static void test_remains_of_a_frame(void **state)
{
	size_t seen = 0;

	(void)state;
	for (size_t i = 1; i < NEAR; i++) {
		looked_at = 0;
		signal_at(DEPTH);
		looked_at = at;
		signal_at(DEPTH + i * STEP);
		assert_int_equal(looked_at - at, i * STEP);
		if (!is_there())
			continue;
		seen++;
		if (!is_covered())
			fail_msg("a frame %zu bytes lower was not seen", i * STEP);
	}
	assert_true(seen >= 2);
}

/* The frame that the handler returns to, with older ones anywhere under and over it. */
static void test_a_frame_that_is_live(void **state)
{
	(void)state;
	for (size_t i = 1; i < STEPS; i++) {
		for (int lower = 0; lower < 2; lower++) {
			looked_at = 0;
			signal_at(lower ? DEPTH + i * STEP : DEPTH - i * STEP);
			signal_at(DEPTH);
			looked_at = at;
			signal_at(lower ? DEPTH + i * STEP : DEPTH - i * STEP);
			looked_at = at + (lower ? i * STEP : -i * STEP);
			signal_at(DEPTH);
			assert_int_equal(looked_at, at);
			assert_true(is_there());
			assert_false(is_covered());
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_remains_of_a_frame, install),
		cmocka_unit_test_setup(test_a_frame_that_is_live, install),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
