/* SPDX-License-Identifier: MIT */
/* What a result has of a response beyond its kappa: its quantiles, and its queue. */
#include <stdio.h>
#include "drive-priv.h"
#include "queue.h"
#include "verdict.h"

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
