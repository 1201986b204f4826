/* SPDX-License-Identifier: MIT */
/*
 * Which threads are at work side by side, as the looks at them say: those of a Go program carry
 * goroutines in turn, so that how many are seen at work is not how many lanes there are. This
 * program has the note of one; the others that it starts have none.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "inject/clock.h"
#include "src/base/must.h"
#include "src/live/read.h"

/* As the linker of Go writes it: a build id of four bytes. */
__asm__(".pushsection .note.go.buildid, \"a\", @note\n"
	"	.long 4, 4, 4\n"
	"	.asciz \"Go\\0\"\n"
	"	.ascii \"test\"\n"
	"	.popsection");

enum { LOOKS = 20 };

static volatile bool over;
static pid_t other_tid;

static void *work(void *arg)
{
	other_tid = gettid();
	while (!over)
		;
	return arg;
}

/* Looks at two threads that have called the one target. */
static struct lane_scan look(const pid_t pid[2], const pid_t tid[2])
{
	struct sweep_row was[2] = { { .pid = pid[0], .tid = tid[0], .slot = 0 },
				    { .pid = pid[1], .tid = tid[1], .slot = 1 } };
	struct sweep_row is[2] = { was[0], was[1] };
	struct sweep_reading before = { .row = was, .n_rows = 2 }, now = { .row = is, .n_rows = 2 };
	struct sweep_reader *reader = sweep_reader_new(NULL, NULL, 1);
	const char *const spec[] = { ":f" };
	struct drive_cfg cfg = drive_defaults();
	struct drive_step step;
	const struct lane_scan *seen;
	struct sb_err err = { 0 };
	struct sweep_scan *scan;
	struct lane_scan sum;
	struct drive *drive;
	size_t n;

	cfg.spec = spec;
	cfg.n_targets = 1;
	cfg.time_ns = 1000000000;
	assert_int_equal(drive_open(&cfg, &drive, &err), 0);
	drive_next(drive, &step);
	is[0].hits = is[1].hits = 10;
	scan = sweep_scan_begin(reader, drive, &before, &now);
	for (uint64_t i = 1; i <= LOOKS; i++)
		sweep_scan_look(scan, clock_ns() + i * 10000000000u);
	seen = sweep_scan_seen(scan, SWEEP_SCAN_ALL, &n);
	assert_int_equal(n, 1);
	sum = *seen;
	sweep_scan_end(scan);
	drive_close(drive);
	sweep_reader_free(reader);
	return sum;
}

static void test_threads_of_go_hand_on(void **state)
{
	pid_t pid[2] = { getpid(), getpid() }, tid[2] = { gettid(), 0 };
	struct lane_scan seen;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
	while (!__atomic_load_n(&other_tid, __ATOMIC_RELAXED))
		usleep(1000);
	tid[1] = other_tid;
	seen = look(pid, tid);
	over = true;
	pthread_join(thread, NULL);
	assert_float_equal(seen.n, LOOKS, 0);
	assert_float_equal(seen.unsteady, LOOKS, 0);
	assert_float_equal(seen.surely, 2 * LOOKS, 0);
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("sleep", "sleep", "60", (char *)NULL);
		_exit(127);
	}
	return pid;
}

/* It has executed its program, and sleeps. */
static bool asleep(pid_t pid)
{
	char path[64];
	long nr = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%ld", &nr) != 1)
		nr = -1;
	if (f)
		fclose(f);
	return nr == SYS_nanosleep || nr == SYS_clock_nanosleep;
}

/* Sleeps for a set time: at work. */
static void test_threads_of_others_stay(void **state)
{
	pid_t pid[2] = { sleeper(), sleeper() };
	struct lane_scan seen;

	(void)state;
	for (int i = 0; i < 10000 && !(asleep(pid[0]) && asleep(pid[1])); i++)
		usleep(1000);
	seen = look(pid, pid);
	for (int i = 0; i < 2; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	assert_float_equal(seen.n, LOOKS, 0);
	assert_float_equal(seen.unsteady, 0, 0);
	assert_float_equal(seen.surely, 2 * LOOKS, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_of_go_hand_on),
		cmocka_unit_test(test_threads_of_others_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
