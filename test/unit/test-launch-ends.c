/* SPDX-License-Identifier: MIT */
/*
 * The end of a command that the command line traces while it restores it: the wait of a tracer
 * takes it, and the command's status is not lost, nor waited for without an end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "inject/ptrace.h"
#include "src/session/launch.h"

static void start(struct launch *l, const char *script)
{
	char *command[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
	struct sb_err err = { 0 };
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	assert_int_equal(launch_start(l, command, false, &err), 0);
	assert_int_equal(pt_seize(l->pid), 0);
	assert_int_equal(launch_go(l, getpid(), &err), 0);
}

/* As a tracer that restores: each stop is let go on, until the end is seen. */
static void trace_to_the_end(pid_t pid)
{
	struct stop stop;

	do {
		assert_true(pt_wait(pid, &stop, 5000000));
		if (stop.kind != STOP_GONE)
			pt_cont(pid, stop.kind == STOP_SIGNAL ? stop.sig : 0);
	} while (stop.kind != STOP_GONE);
}

static void test_an_end_that_a_tracer_waited_for_is_known(void **state)
{
	struct launch l;

	(void)state;
	start(&l, "exit 7");
	assert_false(launch_poll(&l));
	trace_to_the_end(l.pid);
	assert_true(launch_poll(&l));
	assert_int_equal(launch_exit_status(&l), 7);

	start(&l, "kill -TERM $$");
	assert_false(launch_poll(&l)); /* it is not the end of the one before */
	trace_to_the_end(l.pid);
	assert_true(launch_poll(&l));
	assert_int_equal(launch_exit_status(&l), 128 + SIGTERM);
}

static void test_an_end_that_is_reaped_while_it_is_traced_is_known(void **state)
{
	siginfo_t si;
	struct launch l;

	(void)state;
	start(&l, "sleep 1000");
	kill(l.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)l.pid, &si, WEXITED | WNOWAIT), 0);
	pt_reap(l.pid);
	assert_true(launch_poll(&l));
	assert_int_equal(launch_exit_status(&l), 128 + SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_end_that_a_tracer_waited_for_is_known),
		cmocka_unit_test(test_an_end_that_is_reaped_while_it_is_traced_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
