/* SPDX-License-Identifier: MIT */
#include "later.h"

#include <stdio.h>
#include <stdlib.h>
#include "inject/space.h"
#include "src/session/processes.h"

void later_open(struct later *later, const struct session_config *cfg)
{
	processes_descendants(cfg, &later->pids, &later->n);
}

void later_count(struct later *later, const struct session_config *cfg)
{
	pid_t *pids, tracer;
	size_t n;

	processes_descendants(cfg, &pids, &n);
	for (size_t i = 0; i < n; i++)
		later->unhooked += !processes_listed(later->pids, later->n, pids[i]) &&
				   !space_is_hooked(pids[i], &tracer);
	free(pids);
}

void later_tell(const struct later *later, struct sweep_result *res, struct sb_err *err)
{
	const char *plural = later->unhooked > 1 ? "es" : "", *are = *plural ? "are" : "is";
	char text[SWEEP_REASON];

	if (!later->unhooked)
		return;
	snprintf(text, sizeof(text),
		 "%zu process%s began after the attach and %s not hooked: --follow, or let sweep "
		 "start the command (-- COMMAND)",
		 later->unhooked, plural, are);
	if (err->code && !res->n_windows)
		err_hint(err, "%s", text);
	for (size_t i = 0; i < res->n_targets && res->dead_source; i++)
		if (res->target[i].verdict == VERDICT_INVALID)
			snprintf(res->target[i].reason, sizeof(res->target[i].reason),
				 "the progress source did not move: %.150s", text);
}

void later_close(struct later *later)
{
	free(later->pids);
	*later = (struct later){ 0 };
}
