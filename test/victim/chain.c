/* SPDX-License-Identifier: MIT */
/*
 * chain CALLS EXECS [thread]: calls chain_fn() CALLS times and execs itself, EXECS times over;
 * with `thread` each exec is made by a thread that is not the leader.
 */
#include "victim.h"

uint64_t chain_fn(uint64_t x);

static char **next_argv;

VICTIM_HOOKED uint64_t chain_fn(uint64_t x)
{
	volatile uint64_t kept = x * 7 + 3; /* long enough for hooks at both of its ends */

	return kept;
}

static void *exec_next(void *arg)
{
	(void)arg;
	execv(next_argv[0], next_argv);
	_exit(5);
}

int main(int argc, char **argv)
{
	uint64_t calls, execs, total;
	char left[24], sum[24];
	char *args[6];

	victim_catch_term();
	if (argc < 3)
		return 2;
	calls = strtoull(argv[1], NULL, 0);
	execs = strtoull(argv[2], NULL, 0);
	total = argc > 4 ? strtoull(argv[4], NULL, 0) : 0;
	if (total == 0)
		victim_ready();
	for (uint64_t i = 0; i < calls; i++)
		if (chain_fn(i) != i * 7 + 3)
			return victim_done(false);
	total += calls;
	if (execs == 0) {
		victim_calls("chain_fn", total);
		return victim_done(true);
	}
	snprintf(left, sizeof(left), "%llu", (unsigned long long)(execs - 1));
	snprintf(sum, sizeof(sum), "%llu", (unsigned long long)total);
	args[0] = argv[0];
	args[1] = argv[1];
	args[2] = left;
	args[3] = argc > 3 ? argv[3] : (char *)"leader";
	args[4] = sum;
	args[5] = NULL;
	next_argv = args;
	if (strcmp(args[3], "thread") == 0) {
		pthread_t t;

		if (pthread_create(&t, NULL, exec_next, NULL))
			return 2;
		pthread_join(t, NULL);
		return 5;
	}
	exec_next(NULL);
	return 5;
}
