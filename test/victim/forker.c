/* SPDX-License-Identifier: MIT */
/*
 * forker FILE: calls fork_work(), and has children all the time that call it too and end. A child
 * that ends in any other way than well is a line in FILE. One thread, so that what the test
 * compares stays as it is.
 */
#include <sys/wait.h>
#include "victim.h"

enum { CHILDREN = 3, CALLS = 200 };

uint64_t fork_work(uint64_t x);

VICTIM_HOOKED uint64_t fork_work(uint64_t x)
{
	volatile uint64_t kept = x * 9 + 4; /* long enough for hooks at both of its ends */

	return kept;
}

static uint64_t work(void)
{
	uint64_t errors = 0;

	for (uint64_t i = 0; i < CALLS; i++)
		errors += fork_work(i) != i * 9 + 4;
	return errors;
}

static void child(void)
{
	uint64_t errors = work();

	victim_sleep_ns(3000000);
	_exit(errors + work() ? 1 : 0);
}

static uint64_t reap(const char *file)
{
	int status;
	FILE *f;

	if (waitpid(-1, &status, 0) <= 0 || status == 0)
		return 0;
	f = fopen(file, "ae");
	if (f) {
		fprintf(f, "a child ended with status 0x%x\n", status);
		fclose(f);
	}
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t errors = 0;

	if (argc != 2)
		return 2;
	victim_catch_term();
	victim_ready();
	for (int n = 0; !victim_stop; n++) {
		pid_t pid = fork();

		if (pid == 0)
			child();
		errors += work();
		if (n >= CHILDREN)
			errors += reap(argv[1]);
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	return victim_done(errors == 0);
}
