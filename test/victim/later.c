/* SPDX-License-Identifier: MIT */
/*
 * later LIB CALLS ROUNDS [GATE]: dlopen()s LIB (after GATE exists), calls its lib_fn() CALLS
 * times, dlclose()s it; ROUNDS times (0: until SIGTERM). Counts the calls that the library's
 * constructor and destructor make as well.
 */
#include <dlfcn.h>
#include "victim.h"
#include "victim-lib.h"

int main(int argc, char **argv)
{
	uint64_t calls, rounds, total = 0, errors = 0;

	victim_catch_term();
	if (argc < 4)
		return 2;
	calls = strtoull(argv[2], NULL, 0);
	rounds = strtoull(argv[3], NULL, 0);
	victim_ready();
	victim_gate(argc > 4 ? argv[4] : NULL);
	for (uint64_t r = 0; !victim_stop && (!rounds || r < rounds); r++) {
		void *lib = dlopen(argv[1], RTLD_NOW);
		uint64_t (*lib_fn)(uint64_t);

		lib_fn = lib ? (uint64_t(*)(uint64_t))dlsym(lib, "lib_fn") : NULL;
		if (!lib_fn) {
			fprintf(stderr, "later: %s\n", dlerror());
			return 2;
		}
		for (uint64_t i = 0; i < calls; i++)
			if (lib_fn(i) != i + 5)
				errors++;
		dlclose(lib);
		total += calls + LIB_CONSTRUCTOR_CALLS + LIB_DESTRUCTOR_CALLS;
	}
	victim_calls("lib_fn", total);
	puts("called");
	while (argc > 4 && !victim_stop)
		victim_sleep_ns(2000000);
	return victim_done(errors == 0);
}
