/* SPDX-License-Identifier: MIT */
/* A second local function of one name: `twin` alone is ambiguous. */
#include "victim.h"

uint64_t calls_twin_user(uint64_t x);

static VICTIM_HOOKED uint64_t twin(uint64_t x)
{
	VICTIM_OPAQUE(x);
	return x + 2;
}

uint64_t calls_twin_user(uint64_t x)
{
	return twin(x);
}
