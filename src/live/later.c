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

/* True: the reason is about what was not seen, and has the text now. */
static bool explains(struct sweep_target *target, bool dead_source, const char *text)
{
	bool unmoved = dead_source && target->verdict == VERDICT_INVALID;

	if (!unmoved && target->verdict != VERDICT_NOT_CALLED)
		return false;
	snprintf(target->reason, sizeof(target->reason), "%s: %.140s",
		 unmoved ? "the progress source did not move" :
			   "not called in the processes that are hooked",
		 text);
	return true;
}

void later_tell(const struct later *later, struct sweep_result *res, struct sb_err *err)
{
	const char *plural = later->unhooked > 1 ? "es" : "", *are = *plural ? "are" : "is";
	char text[SWEEP_REASON];
	bool explained = false;

	if (!later->unhooked)
		return;
	snprintf(text, sizeof(text),
		 "%zu process%s began after the attach and %s not hooked: --follow, or let sweep "
		 "start the command (-- COMMAND)",
		 later->unhooked, plural, are);
	if (err->code && !res->n_windows)
		err_hint(err, "%s", text);
	for (size_t i = 0; i < res->n_targets; i++)
		explained |= explains(&res->target[i], res->dead_source, text);
	if (!explained && res->n_windows)
		sweep_result_warn(res, "%s", text);
}

void later_close(struct later *later)
{
	free(later->pids);
	*later = (struct later){ 0 };
}
