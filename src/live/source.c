/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <stdlib.h>
#include "job.h"
#include "progress.h"
#include "inject/clock.h"
#include "src/base/must.h"

#define S	      1000000000ull
#define PROBE_CHANGES 5
#define LOOK_MOST_NS  (6 * S / 5) /* before a source is taken for one that is up to date */

uint64_t source_limit_ns(const struct sweep_job *job)
{
	uint64_t limit = job->cfg.time_ns / 4;

	return limit < 2 * S ? 2 * S : limit > 30 * S ? 30 * S : limit;
}

int source_does_not_move(const struct sweep_job *job, double was, uint64_t limit_ns,
			 struct sb_err *err)
{
	err_set(err, SB_EFILE, "progress: '%s' does not move: it was %.15g for %.3g s",
		job->progress_text, was, (double)limit_ns / 1e9);
	if (job->progress)
		err_hint(err, "is the program under load, and is this what counts its items?");
	else
		err_hint(err,
			 "is the program under load? sbinject -p PID '%s' 0 counts a function's "
			 "calls",
			 job->progress_text);
	return -1;
}

/* The first reading; of a command that starts, the first that succeeds. */
static int first_read(const struct source_look *look, struct progress *source,
		      struct progress_value *v, struct sb_err *err)
{
	uint64_t until = clock_ns() + source_limit_ns(look->job);

	while (progress_read(source, v, err) < 0) {
		if (!look->starting || clock_ns() >= until)
			return -1;
		*err = (struct sb_err){ 0 };
		if (!look->wait(look->of, progress_poll_ns(source)))
			return -1;
	}
	return 0;
}

static int look_again(const struct source_look *look, struct looks *looks, double *was,
		      struct sb_err *err)
{
	const struct sweep_job *job = look->job;
	struct progress_value v;

	if (progress_read(job->progress, &v, err) < 0)
		return -1;
	if (v.count < *was && look->starting) {
		*was = v.count; /* what was there before the command */
	} else if (v.count < *was) {
		err_set(err, SB_EFILE, "progress: '%s' went back, from %.15g to %.15g",
			job->progress_text, *was, v.count);
		return err_hint(err, "a sweep needs a number that only grows"), -1;
	}
	looks->grown = must_realloc(looks->grown, (looks->n + 1) * sizeof(*looks->grown));
	looks->at_ns = must_realloc(looks->at_ns, (looks->n + 1) * sizeof(*looks->at_ns));
	looks->grown[looks->n] = v.count - *was;
	looks->at_ns[looks->n++] = clock_ns();
	*was = v.count;
	return 0;
}

int source_probe(const struct source_look *look, struct source_rhythm *out, struct sb_err *err)
{
	const struct sweep_job *job = look->job;
	uint64_t limit = source_limit_ns(job), from, spent = 0;
	uint64_t poll = progress_poll_ns(job->progress), first_look = job->cfg.time_ns / 10;
	struct looks looks = { 0 };
	struct progress_value v;
	double was, least, share = 0;
	size_t jumps = 0;
	int ret = first_read(look, job->progress, &v, err);

	from = clock_ns();
	first_look = first_look < LOOK_MOST_NS ? first_look : LOOK_MOST_NS;
	was = v.count;
	while (ret == 0 && spent < (jumps ? limit / 2 : limit) &&
	       (jumps < PROBE_CHANGES || spent < first_look)) {
		ret = look->wait(look->of, poll) ? look_again(look, &looks, &was, err) : -1;
		if (ret == 0 && looks.grown[looks.n - 1] > 0)
			jumps = rhythm_jumps(&looks, &least, &share);
		spent = clock_ns() - from;
	}
	if (ret == 0 && !jumps)
		ret = source_does_not_move(job, was, limit, err);
	else if (ret == 0)
		rhythm_find(&looks, out);
	free(looks.grown);
	free(looks.at_ns);
	return ret;
}

/* Without an item there is no latency: at least one must complete during the test. */
int source_probe_response(const struct source_look *look, struct sb_err *err)
{
	struct progress *response = look->job->response;
	uint64_t limit = source_limit_ns(look->job), until;
	struct progress_value was, v;

	if (first_read(look, response, &was, err) < 0)
		return -1;
	until = clock_ns() + limit;
	while (clock_ns() < until) {
		if (!look->wait(look->of, progress_poll_ns(response)) ||
		    progress_read(response, &v, err) < 0)
			return -1;
		if (v.count > was.count)
			return 0;
	}
	err_set(err, SB_EFILE, "response: '%s' does not move: its count was %.15g for %.3g s",
		progress_text(response), was.count, (double)limit / 1e9);
	return err_hint(err, "is the program under load, and are these its requests?"), -1;
}

/* That they answer; whether they move is seen in the windows. */
int source_probe_covariates(const struct source_look *look, struct sb_err *err)
{
	const struct sweep_job *job = look->job;
	struct progress_value v;

	for (size_t i = 0; i < job->cfg.n_adjust; i++)
		if (job->covariate[i].source &&
		    first_read(look, job->covariate[i].source, &v, err) < 0)
			return -1;
	return 0;
}
