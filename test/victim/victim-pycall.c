/* SPDX-License-Identifier: MIT */
/* Functions for a Python program to call by ctypes: a slow one, a fast one, one that calls back,
 * and one whose thread's state of the interpreter is nonsense while it runs. */
#include <dlfcn.h>
#include "victim.h"

VICTIM_HOOKED int pycall_slow(int id);
VICTIM_HOOKED int pycall_fast(int id);
VICTIM_HOOKED int pycall_back(int id, int (*back)(int));
int pycall_nonsense(int id, uint64_t *field, uint64_t value);

static volatile int last;

VICTIM_HOOKED int pycall_slow(int id)
{
	victim_sleep_ns(2000000);
	return id;
}

VICTIM_HOOKED int pycall_fast(int id)
{
	last = id;
	return id;
}

VICTIM_HOOKED int pycall_back(int id, int (*back)(int))
{
	victim_sleep_ns(2000000);
	return back(id) + 1;
}

int pycall_nonsense(int id, uint64_t *field, uint64_t value)
{
	uint64_t was = *field;
	int ret;

	*(volatile uint64_t *)field = value;
	ret = pycall_fast(id);
	*(volatile uint64_t *)field = was;
	return ret;
}
