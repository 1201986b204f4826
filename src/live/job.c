/* SPDX-License-Identifier: MIT */
#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "inject/clock.h"

static const char *why_untimed(const struct backend *backend)
{
	if (!backend->time)
		return "its own time is not measured: this backend sees where a function begins, "
		       "and not where it returns";
	return "its own time is not measured: the exits of an inlined function or of a line are "
	       "not known";
}

uint64_t sweep_floor_ns(const struct backend *backend)
{
	struct hook_cost cost = { 0 };
	struct clock clk;

	if (strcmp(backend->name, "inject") != 0)
		return SWEEP_FLOOR_NS;
	clock_open(&clk);
	if (clock_hook_cost(&clk, false, &cost, NULL) < 0)
		return SWEEP_FLOOR_NS;
	return (uint64_t)fmax(SWEEP_FLOOR_NS, ceil(cost.floor_ns));
}

struct drive *sweep_drive(struct sweep_job *job, struct sb_err *err)
{
	const struct spec_list *targets = &job->opt->session.targets;
	uint64_t *every = calloc(job->cfg.n_targets + 1, sizeof(*every));
	struct drive *drive;
	int ret;

	job->can_time = calloc(job->cfg.n_targets + 1, sizeof(*job->can_time));
	if (!job->can_time || !every)
		abort();
	for (size_t i = 0; i < job->cfg.n_targets; i++) {
		job->can_time[i] = session_can_time(job->backend, &targets->spec[i]);
		every[i] = targets->spec[i].every;
	}
	job->cfg.can_time = job->can_time;
	job->cfg.every = every; /* copied */
	job->cfg.floor_ns = sweep_floor_ns(job->backend);
	ret = drive_open(&job->cfg, &drive, err);
	free(every);
	job->cfg.every = NULL;
	if (ret < 0)
		return NULL;
	for (size_t i = 0; i < job->cfg.n_targets; i++)
		if (!job->can_time[i])
			drive_own_why(drive, i, why_untimed(job->backend));
	return drive;
}
