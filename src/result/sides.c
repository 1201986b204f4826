/* SPDX-License-Identifier: MIT */
#include "sides.h"

#include <stdlib.h>
#include <string.h>

const char *sides_name(size_t counter)
{
	return counter == SIDES_OFF_CPU ? "off_cpu_ns" : evidence_kinds[counter].name;
}

enum evidence_group sides_group(size_t counter)
{
	return counter == SIDES_OFF_CPU ? GROUP_TIME : evidence_kinds[counter].group;
}

bool sides_is_time(size_t counter)
{
	const char *name = sides_name(counter);
	size_t len = strlen(name);

	return len > 3 && !strcmp(name + len - 3, "_ns");
}

void sides_futex_free(struct sides_about *about)
{
	for (size_t i = 0; i < about->n_futexes; i++) {
		free(about->futex[i].symbol);
		for (int k = 0; k < SIDES_CALLERS; k++)
			free(about->futex[i].caller[k]);
	}
	free(about->futex);
	free(about->hardware.limit);
	about->hardware.limit = NULL;
	about->futex = NULL;
	about->n_futexes = 0;
}
