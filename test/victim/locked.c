/* SPDX-License-Identifier: MIT */
/*
 * locked future|onfault|full: all memory that it maps from now on is locked (mlockall). It calls
 * locked_fn() all the time. At SIGUSR1 it begins to map and unmap memory of its own in between
 * ("mapping"), at the next one it rests from that ("resting"). full: it has locked as much as its
 * limit allows, to the last page.
 */
#include <sys/mman.h>
#include "victim.h"

uint64_t locked_fn(uint64_t x);

VICTIM_HOOKED uint64_t locked_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 13 + 8;
	VICTIM_OPAQUE(x);
	return x;
}

static volatile sig_atomic_t asked;

static void on_usr1(int sig)
{
	(void)sig;
	asked = !asked;
}

/* What it could map before it can map at all times. */
static bool map_own(void)
{
	void *p = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	memset(p, 1, 16 * 4096);
	return munmap(p, 16 * 4096) == 0;
}

int main(int argc, char **argv)
{
	int how = argc > 1 && strcmp(argv[1], "onfault") == 0 ? MCL_ONFAULT : 0;
	bool full = argc > 1 && strcmp(argv[1], "full") == 0;
	bool mapping = false;
	uint64_t calls = 0, errors = 0;

	victim_catch_term();
	signal(SIGUSR1, on_usr1);
	if (mlockall(MCL_FUTURE | how) || !map_own())
		return 2;
	while (full &&
	       mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		;
	victim_ready();
	while (!victim_stop) {
		if (locked_fn(calls) != calls * 13 + 8)
			errors++;
		calls++;
		if (mapping != (bool)asked) {
			mapping = asked;
			puts(mapping ? "mapping" : "resting");
		}
		if (mapping && calls % 64 == 0 && !map_own())
			errors++;
		victim_sleep_ns(100000);
	}
	victim_calls("locked_fn", calls);
	return victim_done(errors == 0);
}
