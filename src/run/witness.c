/* SPDX-License-Identifier: MIT */
#include "witness.h"

#include <stdlib.h>
#include "src/session/processes.h"

enum { LOOKS = 8 };

/* Again while there are new ones: a process forks before it is watched. */
struct evidence *witness_open(const struct session_config *cfg)
{
	struct evidence *e = evidence_open(cfg->children);
	size_t n = 0, before;

	if (cfg->launched) {
		evidence_add(e, cfg->launched);
		return e;
	}
	for (int i = 0; i < LOOKS; i++) {
		pid_t *pids;

		before = n;
		processes_descendants(cfg, &pids, &n);
		for (size_t k = 0; k < n; k++)
			evidence_add(e, pids[k]);
		free(pids);
		if (n == before)
			break;
	}
	return e;
}
