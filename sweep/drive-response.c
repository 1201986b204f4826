/* SPDX-License-Identifier: MIT */
/* What a result has of a response beyond its kappa: its quantiles, and its queue. */
#include <stdio.h>
#include <stdlib.h>
#include "drive-priv.h"
#include "queue.h"
#include "stat.h"
#include "verdict.h"
#include "src/base/must.h"

#define RESPONSE_GROWN 0.5
#define CLOSED_LEVEL   0.99
#define EVEN	       0.15	 /* of a queue it is far more, if it has a server to itself */
#define SAFE_SHARE     (1.0 / 3) /* of the idle time */

double drive_response_safe_ns(const struct drive *drive, size_t target)
{
	const struct record_of all = { -1, -1, 0, 0 };
	struct queue_level level = queue_level(&drive->rec, &all, COLUMN_NONE);
	double share = drive_share(drive, -1, target), busy;

	if (!(level.in_system > 0) || level.spread < EVEN)
		return INFINITY;
	busy = queue_utilisation(level.in_system, share > 0 ? 1 / share : 1);
	return (1 - busy) * SAFE_SHARE * drive->pilot.t_ns;
}

/* Do fewer requests come under a delay, by all probes so far? Then the loop is closed. */
static bool is_closed(const struct drive *drive, const struct record_of *of, double x,
		      struct throughput *sum)
{
	double *v = must_calloc(record_blocks(&drive->rec, of->experiment), sizeof(*v)), slope,
	       left;
	size_t n = record_contrast(&drive->rec, of->experiment, COLUMN_SHAM,
				   COLUMN_DOSE + (int)of->first, RECORD_THROUGHPUT, v);

	for (size_t i = 0; i < n; i++) {
		sum->xx += x * x;
		sum->xt += x * v[i];
		sum->tt += v[i] * v[i];
		sum->n++;
	}
	free(v);
	if (sum->n < 3)
		return false;
	slope = sum->xt / sum->xx;
	left = fmax(0, sum->tt - slope * sum->xt) / (sum->n - 1);
	return slope > CLOSED &&
	       slope > stat_t_quantile(CLOSED_LEVEL, sum->n - 1) * sqrt(left / sum->xx);
}

/*
 * The queue of a single server with random arrivals makes the response longer by a half, beside the
 * delay itself, when that takes a third of the server's idle time. That is far enough from
 * saturation for a slope. Requests that wait for something else are in the system, too, so that
 * what is safe by their number may be far too little. A dose is safe if the response grew by far
 * less than that; all are if the loop is closed.
 */
void drive_response_probed(struct drive *drive, const struct record_of *of, double x)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1 };
	double *v = must_calloc(record_blocks(&drive->rec, of->experiment), sizeof(*v));
	struct work *work = &drive->work[of->target];
	int column = COLUMN_DOSE + (int)of->first;
	size_t n = record_contrast(&drive->rec, of->experiment, COLUMN_SHAM, column, RECORD_SHARE,
				   v);
	double grown, se;

	grown = n > 1 ? stat_mean(v, n) -
				record_level(&drive->rec, of, column, &view).x /
					record_level(&drive->rec, of, COLUMN_SHAM, &view).t :
			NAN;
	se = n > 1 ? sqrt(stat_var(v, n) / (double)n) : NAN;
	free(v);
	if (is_closed(drive, of, x, &work->throughput))
		escalate_safe(&work->esc, INFINITY);
	else if (grown - se > RESPONSE_GROWN)
		escalate_limit(&work->esc, x * RESPONSE_GROWN / (grown - se));
	else if (grown + 2 * se < RESPONSE_GROWN / 2)
		escalate_safe(&work->esc, fmax(work->esc.safe_ns, x));
}

/* Is the wait so much longer, beside what the delay itself takes, that little idle time is left? */
static bool far_longer(const struct sweep_target *target)
{
	const struct sweep_quantile *mean = &target->mean;
	double x = target->dose[target->n_doses - 1].x_ns, service = mean->sham_ns.est + x;

	return mean->delta_ns.est - x > QUEUE_LONGER * service &&
	       mean->delta_ns.lo - x > QUEUE_LONGER / 2 * service;
}

static void why_saturated(const struct sweep_gates *gates, const struct queue_flow *flow,
			  struct sweep_target *target)
{
	struct sweep_queue *queue = &target->queue;
	const struct sweep_quantile *mean = &target->mean;

	if (gates->queue_grows)
		snprintf(queue->reason, sizeof(queue->reason),
			 "the response grew from one window without a delay to the next: requests "
			 "come faster than they are completed");
	else if (flow->saturated)
		snprintf(queue->reason, sizeof(queue->reason),
			 "under its delay %.0f %% fewer requests are completed than come, and they "
			 "are worked off after it: smaller --doses, or a lower rate",
			 -100 * flow->during);
	else if (queue->utilisation < VERDICT_BUSY &&
		 1 - queue->utilisation_dose < QUEUE_IDLE * (1 - queue->utilisation))
		snprintf(queue->reason, sizeof(queue->reason),
			 "the busiest thread is busy for %.0f %% of the time, and the largest dose "
			 "takes it to %.0f %%: smaller --doses, or a lower rate",
			 100 * queue->utilisation, 100 * queue->utilisation_dose);
	else if (far_longer(target))
		snprintf(queue->reason, sizeof(queue->reason),
			 "under its largest delay a response takes %.1f times as long, and that is "
			 "no slope: --doses of at most a %.0fth of it, or a lower rate",
			 1 + mean->delta_ns.est / mean->sham_ns.est,
			 ceil(2 * mean->delta_ns.est / mean->sham_ns.est));
}

void drive_queue(const struct drive *drive, const struct record_of *of,
		 const struct sweep_gates *gates, struct sweep_target *target)
{
	int most = COLUMN_DOSE + (int)(of->first + of->n_doses) - 1;
	struct queue_level sham = queue_level(&drive->rec, of, COLUMN_SHAM);
	struct queue_level dose = queue_level(&drive->rec, of, most);
	struct queue_flow flow = queue_flow(&drive->rec, of->experiment);
	struct sweep_queue *queue = &target->queue;

	queue->in_system = sham.in_system;
	queue->in_system_dose = dose.in_system;
	queue->completed_s = sham.per_s;
	queue->completed_s_dose = dose.per_s;
	queue->utilisation = sham.busy;
	queue->utilisation_dose = dose.busy;
	why_saturated(gates, &flow, target);
	queue->saturated = queue->reason[0];
}

/* The mean, too, where a quantile is judged; and why there is no quantile. */
void drive_quantiles(const struct drive *drive, const struct record_of *of,
		     const struct judged *judged, struct sweep_target *target)
{
	struct infer_kappa kappa;
	struct sweep_quantile *mean = &target->mean;
	size_t most = judged->mean.n_arms - 1;

	infer_kappa(&judged->mean, NULL, &kappa);
	mean->sham_ns.est = infer_level(&judged->mean, 0).t;
	mean->delta_ns = infer_delta(&judged->mean, most, NULL);
	mean->dose_ns = mean->sham_ns.est + mean->delta_ns.est;
	mean->slope = judged->quantile ? kappa.kappa : target->kappa;
	quantile_fill(&drive->rec, of, &judged->mean, target);
	for (size_t i = 0; i < target->n_quantiles; i++)
		if (target->quantile[i].share == drive->cfg.quantile)
			target->judged = &target->quantile[i];
	if (!target->judged || isfinite(target->judged->slope.est))
		return;
	/* What is no figure may still be seen to be little. */
	target->kappa.est = NAN;
	if (target->kappa.hi < drive->cfg.threshold && target->slack_kind == SLACK_BEYOND)
		return;
	target->kappa = target->kappa_beyond = target->kappa_robust = SWEEP_UNKNOWN;
	snprintf(target->reason, sizeof(target->reason), "p%.3g: %.170s", 100 * drive->cfg.quantile,
		 target->judged->reason);
}
