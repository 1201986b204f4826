/* SPDX-License-Identifier: MIT */
/*
 * lowest: one thread closes a descriptor and opens a file, and again, as a program does that
 * redirects a stream. The kernel gives the lowest free number, and the program counts on it.
 */
#include <fcntl.h>
#include "victim.h"

/* Between the two. */
enum { WAIT_CALLS = 3000 };

uint64_t lowest_fn(uint64_t x);

VICTIM_HOOKED uint64_t lowest_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	return x + 1;
}

int main(void)
{
	int fd = open("/dev/null", O_RDONLY);
	bool same = fd >= 0;
	uint64_t x = 0;

	victim_catch_term();
	victim_ready();
	while (!victim_stop && same) {
		close(fd);
		for (int i = 0; i < WAIT_CALLS; i++)
			x = lowest_fn(x);
		same = open("/dev/null", O_RDONLY) == fd;
	}
	victim_calls("lowest_fn", x);
	return victim_done(same);
}
