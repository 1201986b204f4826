/* SPDX-License-Identifier: MIT */
/* The counters of a control group, from files as each version of cgroups has them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "evidence/cgroup-place.h"
#include "evidence/cgroup.h"
#include "evidence/evidence.h"

static char dir[64];

static const char *const files[] = { "cpu.stat",	   "memory.events",  "memory.stat",
				     "memory.current",	   "cpu.pressure",   "memory.pressure",
				     "io.pressure",	   "memory.failcnt", "memory.oom_control",
				     "memory.swap.current" };

static void put(const char *name, const char *format, ...)
{
	va_list args;
	char path[128];
	FILE *to;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	to = fopen(path, "w");
	assert_non_null(to);
	va_start(args, format);
	assert_true(vfprintf(to, format, args) >= 0);
	va_end(args);
	assert_int_equal(fclose(to), 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/sbinject-cgroup.XXXXXX");
	assert_non_null(mkdtemp(dir));
	return 0;
}

static int teardown(void **state)
{
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		remove(path);
	}
	return rmdir(dir);
}

static void put_v2(unsigned int more)
{
	put("cpu.stat",
	    "usage_usec 99\nnr_periods %u\nnr_throttled %u\nthrottled_usec %u\nnr_bursts 0\n",
	    100 + 10 * more, 20 + more, 5000 + more);
	put("cpu.pressure", "some avg10=0.00 total=%u\nfull avg10=0.00 total=%u\n", 7 + more, 3u);
	put("memory.pressure", "some avg10=0.00 total=1\nfull avg10=0.00 total=1\n");
	put("memory.events", "low 9\nhigh %u\nmax 4\noom 1\noom_kill %u\noom_group_kill 8\n",
	    1 + 2 * more, 1 + more);
	put("memory.current", "%u\n", 1048576 - more);
	put("memory.stat",
	    "anon 5\npgmajfault %u\nworkingset_refault_anon 2\nworkingset_refault_file %u\n", more,
	    2 + more);
}

static struct cgroup_values grown(const char *const at[CGROUP_HIERARCHIES], void (*fill)(unsigned))
{
	struct cgroup_values v;
	struct cgroup *g;

	fill(0);
	g = cgroup_open_at(at, EVIDENCE_ALL);
	fill(3);
	cgroup_take(g, &v);
	assert_string_equal(cgroup_path(g), dir);
	cgroup_close(g);
	return v;
}

static void test_v2(void **state)
{
	const char *const at[CGROUP_HIERARCHIES] = { [CGROUP_V2] = dir };
	struct cgroup_values v = grown(at, put_v2);

	(void)state;
	assert_int_equal(v.of[CGROUP_PERIODS], 30);
	assert_int_equal(v.of[CGROUP_THROTTLED_PERIODS], 3);
	assert_int_equal(v.of[CGROUP_THROTTLED], 3000);
	assert_int_equal(v.of[CGROUP_CPU_PRESSURE], 3000);
	assert_int_equal(v.of[CGROUP_CPU_STALL], 0);
	assert_int_equal(v.why[CGROUP_CPU_STALL], 0);
	assert_int_equal(v.of[CGROUP_MEMORY_HIGH], 6);
	assert_int_equal(v.of[CGROUP_MEMORY_MAX], 0);
	assert_int_equal(v.why[CGROUP_MEMORY_MAX], 0);
	assert_int_equal(v.of[CGROUP_OOM_KILLS], 3);
	assert_int_equal(v.of[CGROUP_FAULTS_MAJOR], 3);
	assert_int_equal(v.of[CGROUP_REFAULTS_FILE], 3);
	assert_int_equal(v.of[CGROUP_MEMORY_CURRENT], 1048573); /* as of now, not a difference */
	assert_int_equal(v.why[CGROUP_MEMORY_CURRENT], 0);
	assert_int_equal(v.why[CGROUP_IO_PRESSURE], ENOENT);
	assert_int_equal(v.why[CGROUP_SWAP_CURRENT], ENOENT);
	assert_int_equal(v.why[CGROUP_SWAP_IN], CGROUP_LACKS);
}

static void put_v1(unsigned int more)
{
	put("cpu.stat", "nr_periods %u\nnr_throttled %u\nthrottled_time %u\n", 5 + more, 1 + more,
	    70 + more);
	put("memory.failcnt", "%u\n", 11 + more);
	put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill %u\n", more);
	/* The second ones are of the groups below, too. */
	put("memory.stat", "pgmajfault 1\nswap 5\ntotal_pgmajfault %u\ntotal_swap 4096\n", more);
}

static void test_v1(void **state)
{
	const char *const at[CGROUP_HIERARCHIES] = {
		[CGROUP_V1_CPU] = dir, [CGROUP_V1_MEMORY] = dir
	};
	struct cgroup_values v;
	char why[CGROUP_WHY_SIZE];
	struct cgroup *g;

	(void)state;
	put_v1(0);
	g = cgroup_open_at(at, EVIDENCE_ALL);
	put_v1(2);
	cgroup_take(g, &v);
	assert_int_equal(v.of[CGROUP_PERIODS], 2);
	assert_int_equal(v.of[CGROUP_THROTTLED], 2);
	assert_int_equal(v.of[CGROUP_MEMORY_MAX], 2);
	assert_int_equal(v.of[CGROUP_OOM_KILLS], 2);
	assert_int_equal(v.of[CGROUP_FAULTS_MAJOR], 2);
	assert_int_equal(v.of[CGROUP_SWAP_CURRENT], 4096);
	assert_int_equal(v.why[CGROUP_MEMORY_HIGH], CGROUP_OLD);
	assert_int_equal(v.why[CGROUP_CPU_PRESSURE], CGROUP_NOWHERE);
	assert_int_equal(v.why[CGROUP_REFAULTS_ANON], CGROUP_LACKS);
	assert_string_equal(
		cgroup_unknown(g, CGROUP_REFAULTS_ANON, CGROUP_LACKS, why, sizeof(why)),
		"not on this machine: the control group's memory.stat does not have it");
	cgroup_close(g);
}

/* A number that was not there at the begin has no difference; a group that is not asked for none at
 * all; nor has a group that is gone. */
static void test_absent(void **state)
{
	const char *const at[CGROUP_HIERARCHIES] = { [CGROUP_V2] = dir }, *const none[3] = { NULL };
	struct cgroup_values v;
	char why[CGROUP_WHY_SIZE];
	struct cgroup *g;

	(void)state;
	put("memory.events", "max x\n");
	g = cgroup_open_at(at, 1u << GROUP_FAULTS);
	put_v2(0);
	cgroup_take(g, &v);
	assert_int_equal(v.why[CGROUP_MEMORY_MAX], CGROUP_LACKS);
	assert_int_equal(v.why[CGROUP_FAULTS_MAJOR], ENOENT);
	assert_int_equal(v.why[CGROUP_PERIODS], CGROUP_UNASKED);
	assert_string_equal(
		cgroup_unknown(g, CGROUP_FAULTS_MAJOR, ENOENT, why, sizeof(why)),
		"the control group's memory.stat: No such file or directory: it is the root, its "
		"controller is not enabled, or the group is gone");
	cgroup_close(g);
	g = cgroup_open_at(none, EVIDENCE_ALL);
	cgroup_take(g, &v);
	assert_string_equal(cgroup_path(g), "");
	for (int c = 0; c < CGROUP_COUNTERS; c++)
		assert_int_equal(v.why[c], CGROUP_NOWHERE);
	cgroup_close(g);
}

static void test_place(void **state)
{
	struct cgroup_place place;
	struct stat st;

	(void)state;
	assert_false(cgroup_find(getpid(), "no-such-controller", &place));
	assert_false(cgroup_find(-1, NULL, &place));
	if (!cgroup_find(getpid(), NULL, &place))
		skip();
	assert_int_equal(stat(place.mount, &st), 0);
	assert_true(!*place.below || *place.below == '/');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_v2, setup, teardown),
		cmocka_unit_test_setup_teardown(test_v1, setup, teardown),
		cmocka_unit_test_setup_teardown(test_absent, setup, teardown),
		cmocka_unit_test(test_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
