/* SPDX-License-Identifier: MIT */
#include "explain.h"

#include <stdlib.h>

static void free_candidates(struct explain_candidate *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].target);
		free(list[i].why);
	}
	free(list);
}

void explain_free(struct explain_result *res)
{
	if (!res)
		return;
	free(res->progress);
	for (int i = 0; i < EVIDENCE_COUNTERS; i++)
		free(res->unknown[i]);
	free(res->thread);
	free_candidates(res->candidate, res->n_candidates);
	free_candidates(res->wait, res->n_waits);
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
