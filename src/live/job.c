/* SPDX-License-Identifier: MIT */
#include "job.h"

#include <stdlib.h>

static const char *why_untimed(const struct backend *backend)
{
	if (!backend->time)
		return "its own time is not measured: this backend sees where a function begins, "
		       "and not where it returns";
	return "its own time is not measured: the exits of an inlined function or of a line are "
	       "not known";
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
