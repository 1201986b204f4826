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

/* No dose is smaller than what a stub can give here. */
static void measure_floor(struct drive_cfg *cfg)
{
	struct hook_cost cost = { 0 };
	struct clock clk;

	clock_open(&clk);
	if (clock_hook_cost(&clk, false, &cost, NULL) == 0 && cost.floor_ns > (double)cfg->floor_ns)
		cfg->floor_ns = (uint64_t)ceil(cost.floor_ns);
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
	if (!strcmp(job->backend->name, "inject"))
		measure_floor(&job->cfg);
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
