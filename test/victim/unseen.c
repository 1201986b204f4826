/* SPDX-License-Identifier: MIT */
/*
 * unseen LIBRARY [GATE]: until SIGTERM, once GATE is there, forks children that load a library and
 * call unseen_work(), as their parent does. A child that takes long was held up.
 */
#include <dlfcn.h>
#include <sys/wait.h>
#include "victim.h"

#define LATE_NS 20000000000u

int unseen_work(int x);
VICTIM_HOOKED int unseen_work(int x)
{
	VICTIM_OPAQUE(x);
	return x + 1;
}

static int child(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW);

	return !handle || dlclose(handle) || unseen_work(1) != 2;
}

int main(int argc, char **argv)
{
	uint64_t calls = 0;
	bool ok = true;

	victim_catch_term();
	victim_ready();
	victim_gate(argc > 2 ? argv[2] : NULL);
	while (!victim_stop && argc > 1) {
		uint64_t begin = victim_now_ns();
		int status = 1;
		pid_t pid = fork();

		if (pid == 0)
			_exit(child(argv[1]));
		while (waitpid(pid, &status, 0) < 0)
			;
		ok = ok && unseen_work(1) == 2 && !status && victim_now_ns() - begin < LATE_NS;
		calls += 2;
		if (calls == 20)
			puts("forked");
		victim_sleep_ns(5000000);
	}
	victim_calls("unseen_work", calls);
	return victim_done(ok);
}
