/* SPDX-License-Identifier: MIT */
/* What a user would otherwise take to delay a call: gdb, strace. One hit of each. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

static const char gdb_script[] = "import gdb\n"
				 "class Count(gdb.Breakpoint):\n"
				 "    hits = 0\n"
				 "    def stop(self):\n"
				 "        Count.hits += 1\n"
				 "        return False\n"
				 "gdb.execute('set pagination off')\n"
				 "gdb.execute('set debuginfod enabled off')\n"
				 "Count('bench_fn')\n"
				 "gdb.execute('continue')\n";

static bool write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	bool ok = f && fputs(text, f) >= 0;

	return f && fclose(f) == 0 && ok;
}

static bool traced(const struct subject *s)
{
	char path[64], line[128];
	int tracer = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)s->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "TracerPid: %d", &tracer);
	if (f)
		fclose(f);
	return tracer > 0;
}

static bool wait_for(bool (*ready)(const struct subject *s), const struct subject *s)
{
	double end = now_ms() + 15000;

	while (!ready(s)) {
		if (now_ms() > end)
			return false;
		usleep(1000);
	}
	usleep(50000);
	return true;
}

/* A subject of its own: a gdb that is ended leaves its breakpoint behind. */
static double gdb_hit(void)
{
	char script[128], log[128], pid[16];
	char *argv[] = { (char *)"gdb", (char *)"-nx", (char *)"-batch", (char *)"-p",
			 pid,		(char *)"-x",  script,		 NULL };
	struct subject s = { 0 };
	double base, hooked = NAN;
	pid_t gdb;

	if (subject_start(&s, "subject", NULL, NULL))
		return NAN;
	snprintf(pid, sizeof(pid), "%d", (int)s.pid);
	snprintf(script, sizeof(script), "%s/count.py", bench.dir);
	snprintf(log, sizeof(log), "%s/gdb.log", bench.dir);
	base = subject_call(&s, 1, 1000000);
	if (write_file(script, gdb_script)) {
		gdb = run_start(argv, log);
		if (wait_for(subject_hooked, &s))
			hooked = subject_call(&s, 1, 250) - base;
		run_stop(gdb, SIGKILL, 5000);
	}
	subject_stop(&s);
	return hooked;
}

/* strace delays system calls only; its floor is the two stops of each. */
static double strace_hit(void)
{
	char log[128], pid[16];
	char *argv[] = { (char *)"strace",
			 (char *)"-f",
			 (char *)"-o",
			 (char *)"/dev/null",
			 (char *)"-p",
			 pid,
			 (char *)"-e",
			 (char *)"trace=getppid",
			 (char *)"-e",
			 (char *)"inject=getppid:delay_enter=1",
			 NULL };
	struct subject s = { 0 };
	double base, slow = NAN;
	pid_t strace;

	if (subject_start(&s, "subject", NULL, NULL))
		return NAN;
	snprintf(pid, sizeof(pid), "%d", (int)s.pid);
	snprintf(log, sizeof(log), "%s/strace.log", bench.dir);
	if (subject_ask(&s, &base, 1, "syscall 10000") == 1) {
		strace = run_start(argv, log);
		if (wait_for(traced, &s) && subject_ask(&s, &slow, 1, "syscall 500") == 1)
			slow -= base + 1000;
		run_stop(strace, SIGTERM, 5000);
	}
	subject_stop(&s);
	return slow;
}

static void peer(const char *program, const char *what, double (*hit)(void))
{
	struct samples s = { 0 };
	char ratio[80];
	double value;

	if (!have_program(program)) {
		row_missing("peers", what, NULL, "%s is not installed", program);
		return;
	}
	for (int i = 0; i < bench.rounds; i++)
		samples_add(&s, hit());
	value = samples_median(&s);
	if (isnan(value)) {
		row_missing("peers", what, NULL, "%s cannot attach here", program);
		return;
	}
	row_add("peers", what, value, "ns", NULL, -1);
	snprintf(ratio, sizeof(ratio), "%s / jump", program);
	if (!isnan(cost_of_jump))
		row_add("peers", ratio, value / cost_of_jump, "x", NULL, -1);
}

void bench_peers(void)
{
	peer("gdb", "a hit, gdb, Python breakpoint that returns False", gdb_hit);
	peer("strace", "a system call, strace delay_enter=1, less the 1 us", strace_hit);
}
