/* SPDX-License-Identifier: MIT */
/* victim-lib.so: lib_fn() is called from the constructor already, and from the destructor. */
#include "victim.h"
#include "victim-lib.h"

uint64_t lib_fn(uint64_t x);

VICTIM_HOOKED uint64_t lib_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x += 5;
	VICTIM_OPAQUE(x);
	return x;
}

static __attribute__((constructor)) void lib_load(void)
{
	for (uint64_t i = 0; i < LIB_CONSTRUCTOR_CALLS; i++)
		if (lib_fn(i) != i + 5)
			abort();
}

static __attribute__((destructor)) void lib_unload(void)
{
	for (uint64_t i = 0; i < LIB_DESTRUCTOR_CALLS; i++)
		if (lib_fn(i) != i + 5)
			abort();
}
