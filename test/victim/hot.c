/* SPDX-License-Identifier: MIT */
/*
 * A thread that divides its time on a processor among three functions in the ratio 7 : 2 : 1: each
 * round calls hot(), warm() and cold(), which turn one and the same loop so many times, and item().
 */
#include "victim.h"

enum { UNIT = 20000 };

static uint64_t items;
static volatile uint64_t sink;

#define BURN(units)                                           \
	do {                                                  \
		uint64_t x = sink + 1;                        \
		for (uint32_t i = 0; i < (units)*UNIT; i++) { \
			x = x * 6364136223846793005u + 1;     \
			VICTIM_OPAQUE(x);                     \
		}                                             \
		sink = x;                                     \
	} while (0)

VICTIM_HOOKED void hot(void);
void hot(void)
{
	BURN(7);
}

VICTIM_HOOKED void warm(void);
void warm(void)
{
	BURN(2);
}

VICTIM_HOOKED void cold(void);
void cold(void)
{
	BURN(1);
}

VICTIM_HOOKED void item(void);
void item(void)
{
	items++;
}

int main(void)
{
	victim_catch_term();
	victim_ready();
	while (!victim_stop) {
		hot();
		warm();
		cold();
		item();
	}
	victim_calls("item", items);
	return victim_done(items > 0);
}
