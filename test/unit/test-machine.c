/* SPDX-License-Identifier: MIT */
/* What the machine counts: by files as the kernel has them; what is not there is unknown with the
 * reason, and never 0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "evidence/evidence.h"
#include "evidence/machine.h"

static char cpus[80];
static char proc[64];

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *to;

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	to = fopen(path, "w");
	assert_non_null(to);
	fputs(text, to);
	fclose(to);
}

static void drop(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	remove(path);
}

static int setup(void **state)
{
	char path[128];

	(void)state;
	strcpy(proc, "/tmp/sbinject-machine.XXXXXX");
	assert_non_null(mkdtemp(proc));
	snprintf(path, sizeof(path), "%s/pressure", proc);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(cpus, sizeof(cpus), "%s/cpu", proc);
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "pressure/cpu", "pressure/memory", "pressure/io",
					     "pressure",     "vmstat",		"stat" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		drop(names[i]);
	return rmdir(proc);
}

static void put_all(unsigned int more)
{
	char text[20000];
	int n;

	snprintf(text, sizeof(text),
		 "some avg10=1.00 avg60=2.00 avg300=3.00 total=%u\n"
		 "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
		 1000 + more);
	put("pressure/cpu", text);
	put("pressure/memory", text);
	put("pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
			   "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
	snprintf(text, sizeof(text), "nr_free 5\npswpin %u\npswpinned 99\npswpout 4\noom_kill 1\n",
		 10 + more);
	put("vmstat", text);
	n = snprintf(text, sizeof(text), "cpu  1 2 3\nintr %u", 500 + more);
	for (int i = 0; i < 3000; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " 12");
	snprintf(text + n, sizeof(text) - (size_t)n, "\nctxt 8\nsoftirq %u 1 2\n", 300 + 2 * more);
	put("stat", text);
}

static void test_all(void **state)
{
	struct machine_values before, now;

	(void)state;
	put_all(0);
	machine_read(proc, cpus, EVIDENCE_ALL, false, &before);
	put_all(50);
	machine_read(proc, cpus, EVIDENCE_ALL, false, &now);
	machine_since(&now, &before);
	for (int i = 0; i < MACHINE_IDLE; i++)
		assert_int_equal(now.why[i], 0);
	for (int i = MACHINE_IDLE; i < MACHINE_COUNTERS; i++)
		assert_int_equal(now.why[i], ENOENT);
	assert_int_equal(now.of[MACHINE_CPU_PRESSURE], 50000);
	assert_int_equal(now.of[MACHINE_MEMORY_PRESSURE], 50000);
	assert_int_equal(now.of[MACHINE_MEMORY_STALL], 0);
	assert_int_equal(now.of[MACHINE_IO_PRESSURE], 0);
	assert_int_equal(now.of[MACHINE_SWAP_IN], 50);
	assert_int_equal(now.of[MACHINE_SWAP_OUT], 0);
	assert_int_equal(now.of[MACHINE_OOM_KILLS], 0);
	assert_int_equal(now.of[MACHINE_INTERRUPTS], 50);
	assert_int_equal(now.of[MACHINE_SOFTIRQS], 100);
	assert_int_equal(before.of[MACHINE_MEMORY_STALL], 7000);
}

static void test_absent(void **state)
{
	struct machine_values before, now;
	char why[MACHINE_WHY_SIZE];

	(void)state;
	put_all(0);
	drop("pressure/io");
	put("pressure/cpu", "some avg10=1.00 total=x\n");
	put("vmstat", "pswpin 1\n");
	machine_read(proc, cpus, EVIDENCE_ALL, false, &before);
	put_all(0); /* known too late */
	machine_read(proc, cpus, EVIDENCE_ALL, false, &now);
	machine_since(&now, &before);
	assert_int_equal(now.why[MACHINE_IO_PRESSURE], ENOENT);
	assert_int_equal(now.why[MACHINE_CPU_PRESSURE], ENODATA);
	assert_int_equal(now.why[MACHINE_OOM_KILLS], ENODATA);
	assert_int_equal(now.why[MACHINE_SWAP_IN], 0);
	assert_string_equal(machine_unknown(MACHINE_IO_PRESSURE, ENOENT, why, sizeof(why)),
			    "not on this machine: /proc/pressure/io: No such file or directory");
	assert_string_equal(machine_unknown(MACHINE_OOM_KILLS, ENODATA, why, sizeof(why)),
			    "not on this machine: /proc/vmstat does not have it");
}

static void test_groups(void **state)
{
	struct machine_values values;

	(void)state;
	put_all(0);
	machine_read(proc, cpus, 1u << GROUP_IO, false, &values);
	assert_int_equal(values.why[MACHINE_IO_STALL], 0);
	assert_int_equal(values.why[MACHINE_INTERRUPTS], ECANCELED);
	assert_int_equal(values.of[MACHINE_INTERRUPTS], 0);
}

/* ---- processors ---- */

static void put_cpu(int cpu, const char *name, const char *format, ...)
{
	char path[200], text[200], *slash;
	va_list args;

	snprintf(path, sizeof(path), "%s/cpu%d/%s", cpus, cpu, name);
	for (slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(path, sizeof(path), "cpu/cpu%d/%s", cpu, name);
	put(path, text);
}

static void put_cpus(unsigned int more)
{
	for (int cpu = 0; cpu < 2; cpu++) {
		put_cpu(cpu, "cpuidle/state0/time", "%u\n", 1000 + more);
		put_cpu(cpu, "cpuidle/state0/usage", "%u\n", 10);
		put_cpu(cpu, "cpuidle/state1/time", "%u\n", 500 + 2 * more);
		put_cpu(cpu, "cpuidle/state1/usage", "%u\n", 3 + more);
		put_cpu(cpu, "cpufreq/scaling_cur_freq", "%u\n", 1000000 + 1000000 * (unsigned)cpu);
		put_cpu(cpu, "cpufreq/stats/time_in_state", "2000000 %u\n1000000 %u\n", 100 + more,
			7 + 3 * more);
	}
	put_cpu(2, "online", "0\n"); /* it has nothing else */
	put_cpu(0, "online", "1\n");
}

static int teardown_cpus(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", cpus);
	return system(command) ? -1 : teardown(state);
}

static void test_cpus(void **state)
{
	struct machine_values before, now;
	char why[MACHINE_WHY_SIZE];

	(void)state;
	put_all(0);
	put_cpus(0);
	machine_read(proc, cpus, EVIDENCE_ALL, false, &before);
	put_cpus(20);
	machine_read(proc, cpus, EVIDENCE_ALL, true, &now);
	machine_since(&now, &before);
	assert_int_equal(now.why[MACHINE_IDLE], 0);
	assert_int_equal(now.of[MACHINE_IDLE], 2 * (20 + 40) * 1000);
	assert_int_equal(now.of[MACHINE_IDLE_ENTRIES], 40);
	if (!now.why[MACHINE_FREQUENCY])
		assert_int_equal(now.of[MACHINE_FREQUENCY], 1500000000);
	assert_int_equal(now.of[MACHINE_FREQUENCY_MEAN], 1250000000); /* 20 ticks and 60 */
	/* No tick has passed. */
	machine_read(proc, cpus, EVIDENCE_ALL, false, &before);
	machine_read(proc, cpus, EVIDENCE_ALL, false, &now);
	machine_since(&now, &before);
	assert_int_equal(now.of[MACHINE_IDLE], 0);
	assert_int_equal(now.why[MACHINE_IDLE], 0);
	assert_int_equal(now.why[MACHINE_FREQUENCY_MEAN], ETIME);
	/* One processor without idle states: the sum is not known. */
	put_cpu(3, "online", "1\n");
	machine_read(proc, cpus, EVIDENCE_ALL, false, &now);
	assert_int_equal(now.why[MACHINE_IDLE], ENOENT);
	assert_int_equal(now.of[MACHINE_IDLE], 0);
	assert_string_equal(machine_unknown(MACHINE_IDLE, ENOENT, why, sizeof(why)),
			    "not on this machine: /sys/devices/system/cpu/cpu*/cpuidle: No such "
			    "file or directory");
}

/* For one who asks again and again it would take too long. */
static void test_many_cpus(void **state)
{
	struct machine_values values;

	(void)state;
	put_all(0);
	for (int cpu = 0; cpu < 33; cpu++)
		put_cpu(cpu, "cpuidle/state0/time", "5\n");
	for (int cpu = 0; cpu < 33; cpu++)
		put_cpu(cpu, "cpuidle/state0/usage", "1\n");
	machine_read(proc, cpus, EVIDENCE_ALL, true, &values);
	assert_int_equal(values.why[MACHINE_IDLE], EAGAIN);
	machine_read(proc, cpus, EVIDENCE_ALL, false, &values);
	assert_int_equal(values.why[MACHINE_IDLE], 0);
	assert_int_equal(values.of[MACHINE_IDLE], 33 * 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_absent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cpus, setup, teardown_cpus),
		cmocka_unit_test_setup_teardown(test_many_cpus, setup, teardown_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
