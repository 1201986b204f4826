/* SPDX-License-Identifier: MIT */
#include "explain.h"

#include <stdlib.h>

void explain_free(struct explain_result *res)
{
	if (!res)
		return;
	free(res->progress);
	for (int i = 0; i < EVIDENCE_COUNTERS; i++)
		free(res->unknown[i]);
	free(res->thread);
	for (size_t i = 0; i < res->n_candidates; i++) {
		free(res->candidate[i].target);
		free(res->candidate[i].why);
	}
	free(res->candidate);
	for (size_t i = 0; i < res->n_futexes; i++) {
		free(res->futex[i].symbol);
		for (int k = 0; k < EXPLAIN_CALLERS; k++)
			free(res->futex[i].caller[k]);
	}
	free(res->sweep);
	free(res->quota.group);
	free(res->hardware.limit);
	free(res);
}
