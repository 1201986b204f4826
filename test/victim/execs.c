/* SPDX-License-Identifier: MIT */
/*
 * execs leader|follower GATE: two threads call execs_fn() all the time, until the file GATE exists:
 * then another, or the leader, replaces the program by the same one without a GATE, which says
 * "ready" once more.
 * execs loop GATE: the same, with forty threads, every few milliseconds until GATE exists.
 */
#include "victim.h"

uint64_t execs_fn(uint64_t x);

static uint64_t errors, calls;
static const char *gate;
static char **self;
static bool loops;

VICTIM_HOOKED uint64_t execs_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 19 + 1;
	VICTIM_OPAQUE(x);
	return x;
}

static void *caller(void *arg)
{
	uint64_t done = 0;

	while (!victim_stop) {
		if (execs_fn(done) != done * 19 + 1)
			__atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED);
		done++;
		if (done % 256 == 0)
			victim_sleep_ns(loops ? 1000000 :
						20000); /* forty leave others a processor */
	}
	__atomic_add_fetch(&calls, done, __ATOMIC_RELAXED);
	return arg;
}

static void *exec_at_gate(void *arg)
{
	char *args[] = { self[0], NULL };

	while (!victim_stop && !loops && access(gate, F_OK) != 0)
		victim_sleep_ns(1000000);
	victim_sleep_ns(loops ? 3000000 : 0);
	if (!victim_stop)
		execv("/proc/self/exe", loops && access(gate, F_OK) != 0 ? self : args);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[64];
	int n = 2;

	self = argv;
	loops = argc == 3 && strcmp(argv[1], "loop") == 0;
	if (loops)
		n = 40;
	victim_catch_term();
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, caller, NULL))
			return 2;
	gate = argc == 3 ? argv[2] : NULL;
	if (gate && strcmp(argv[1], "leader") != 0 &&
	    pthread_create(&t[n++], NULL, exec_at_gate, NULL))
		return 2;
	victim_ready();
	if (gate && strcmp(argv[1], "leader") == 0)
		exec_at_gate(NULL);
	while (!victim_stop)
		victim_sleep_ns(5000000);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	victim_calls("execs_fn", calls);
	return victim_done(errors == 0);
}
