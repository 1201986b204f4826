/* SPDX-License-Identifier: MIT */
/* kappa of a target, by the shape that its doses have: a line, a slack, a queue. */
#include <stdio.h>
#include "drive-priv.h"
#include "slack.h"
#include "stat.h"

static void fill_kappa(const struct infer_kappa *kappa, struct sweep_target *target)
{
	target->kappa = kappa->kappa;
	target->kappa_se = kappa->se;
	target->df = kappa->df;
	target->method = kappa->method;
	target->blocks = kappa->n;
	target->lost = kappa->lost;
	target->p_none = kappa->p_t;
	target->p_random = kappa->p_random;
	target->kappa_robust = kappa->robust;
	target->robust_agrees = kappa->robust_agrees;
	target->mde = kappa->mde;
}

static void fill_felt(double threshold, struct sweep_target *target)
{
	if (!(target->kappa_se >= 0))
		return;
	target->p_felt = stat_t_cdf((target->kappa.est - threshold) / target->kappa_se, target->df);
	if (!(target->kappa_se > 0))
		target->p_felt = target->kappa.est < threshold ? 0 : 1;
}

/* kappa below the slack, from all blocks: the last ones had a dose below it alone. */
static void fill_origin(const struct drive *drive, const struct work *work, double resolution_ns,
			struct rng *rng, struct slack_fit *fit)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1 };
	struct record_of of = work_last(drive, (size_t)(work - drive->work));
	struct infer_data data;

	record_data(&drive->rec, &of, &view, &data, NULL);
	data.resolution_ns = resolution_ns;
	slack_origin(&data, rng, fit);
	record_data_free(&data);
}

void drive_slack(const struct drive *drive, const struct work *work, const struct judged *judged,
		 struct rng *rng, struct sweep_target *target)
{
	const struct infer_data *data = &judged->data;
	double threshold = drive->cfg.threshold;
	struct infer_kappa line;
	struct slack_fit fit;

	infer_kappa(data, rng, &line);
	slack_fit(data, &line, threshold, rng, &fit);
	if (work->last)
		target->last_delay_ns = (double)work->last_ns;
	if (work->last && fit.below >= work->last)
		fill_origin(drive, work, data->resolution_ns, rng, &fit);
	fill_kappa(&fit.origin, target);
	judged_widen(judged, &target->kappa);
	target->kappa_beyond = fit.beyond;
	judged_widen(judged, &target->kappa_beyond);
	target->slack_kind = fit.kind;
	target->slack_ns = fit.slack_ns;
	target->delta_aicc = fit.delta_aicc;
	if (fit.why)
		snprintf(target->slack_reason, sizeof(target->slack_reason), "%s", fit.why);
	fill_felt(threshold, target);
}

/* kappa of the throughput, of a target whose response was judged. */
struct sweep_estimate drive_throughput(const struct drive *drive, size_t target)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1, .throughput = true };
	struct record_of of = work_of(drive, target);
	struct infer_kappa kappa;
	struct infer_data data;

	record_data(&drive->rec, &of, &view, &data, NULL);
	infer_kappa(&data, NULL, &kappa);
	record_data_free(&data);
	return kappa.kappa;
}

/* Without a slack: kappa is that of the line, or of the queue. */
static void fill_straight(const struct judged *judged, double threshold, struct rng *rng,
			  struct sweep_target *target)
{
	struct infer_kappa line;

	judged_infer(judged, rng, &line);
	fill_kappa(&line, target);
	fill_felt(threshold, target);
	target->kappa_beyond = target->slack_ns = SWEEP_UNKNOWN;
	target->slack_kind = SLACK_UNKNOWN;
	snprintf(target->slack_reason, sizeof(target->slack_reason),
		 "a queue explains the responses better than a slack");
}

/*
 * In an open loop a response grows faster than the delay, and kappa is the slope at none. In a
 * closed loop, where fewer are completed by as much as the delay, it is a line.
 */
void drive_shape(const struct drive *drive, const struct judged *judged, struct rng *rng,
		 struct sweep_target *target, size_t index)
{
	bool slack = target->slack_kind == SLACK_FOUND || target->slack_kind == SLACK_BRACKET;
	struct queue_shape *queue = &(struct queue_shape){ .delta_aicc = NAN };

	if (!queue_shape(&judged->data, queue) || isnan(target->kappa.est))
		return;
	target->queue.delta_aicc = queue->delta_aicc;
	if ((slack && !(queue->delta_aicc > target->delta_aicc)) ||
	    drive_throughput(drive, index).lo > CLOSED)
		return;
	if (slack)
		fill_straight(judged, drive->cfg.threshold, rng, target);
	judged_widen(judged, &queue->kappa);
	target->kappa.lo = fmin(target->kappa.lo, queue->kappa.lo);
	target->kappa.hi = fmax(target->kappa.hi, queue->kappa.hi);
	if (!(queue->delta_aicc > 0))
		return;
	target->kappa.est = queue->kappa.est;
	target->queue.shaped = true;
	target->queue.most_ns = queue->most_ns;
}
