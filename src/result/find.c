/* SPDX-License-Identifier: MIT */
#include "find.h"

#include <stdlib.h>

void find_rates_free(struct find_rates *rates)
{
	if (!rates)
		return;
	for (size_t i = 0; i < rates->n; i++)
		free(rates->rate[i].target);
	for (size_t i = 0; i < rates->n_counters; i++)
		free(rates->counter[i].target);
	free(rates->counter);
	free(rates->rate);
	free(rates);
}
