/* SPDX-License-Identifier: MIT */
#include "drive-priv.h"

#include <stdio.h>
#include <stdlib.h>
#include "account.h"
#include "quantile.h"
#include "queue.h"
#include "slack.h"
#include "stat.h"
#include "verdict.h"
#include "src/base/must.h"

#define ANALYSIS_SEED 0x5eedfaceu /* not the design's: drive_end() may run twice */
#define ACCOUNT_SEED  0xacc0017u
#define GATE_LEVEL    0.01   /* a valid run is marked unproven once in a hundred */
#define CONTROL_LEVEL 0.9995 /* and fails its control once in a thousand */
#define CONTROL_SLACK 0.05
#define HITS_LEVEL    0.01
#define HITS_SHARE    0.02
#define CLOSED	      0.5 /* kappa of the throughput, at the least */
#define LATE_HINT     3.0 /* of record_carry(): from there on it is allowed for */

/* --- gates --- */

/* The contrast of two columns over all gates of the sweep, each experiment's own T0 subtracted. */
static size_t gather(const struct drive *drive, int a, int b, bool relative, double **out)
{
	size_t n = 0, room = 0;
	double *v = NULL;

	for (int e = 0; e < drive->n_experiments; e++) {
		room = n + record_blocks(&drive->rec, e);
		v = must_realloc(v, room * sizeof(*v));
		n += record_contrast(&drive->rec, e, a, b, relative, v + n);
	}
	*out = v;
	return n;
}

/* A/A of a quantile, by the blocks of all experiments; fewer than two: too few responses. */
static size_t gather_quantile(const struct drive *drive, double **out)
{
	struct record_view view = { .mode = LANE_ALL, .role = -1 };
	size_t n = 0;

	*out = NULL;
	for (int e = 0; e < drive->n_experiments; e++) {
		/* the second A in the place of a dose */
		struct record_of of = { e, -1, (size_t)(COLUMN_SHAM2 - COLUMN_DOSE), 1 };
		struct judged judged;
		double level;

		judged_open(drive, &of, &view, &judged, NULL);
		level = infer_level(&judged.data, 0).t;
		*out = must_realloc(*out, (n + judged.data.n_blocks + 1) * sizeof(**out));
		for (size_t b = 0; b < judged.data.n_blocks; b++)
			(*out)[n++] = (judged.data.cell[2 * b + 1].t - judged.data.cell[2 * b].t) /
				      level;
		judged_close(&judged);
	}
	return n;
}

/* With too few responses for a quantile the means of equal arms are compared. */
static size_t gather_aa(const struct drive *drive, double **v)
{
	size_t n = drive->cfg.quantile > 0 ? gather_quantile(drive, v) : 0;

	if (n >= 2)
		return n;
	if (drive->cfg.quantile > 0)
		free(*v);
	return gather(drive, COLUMN_SHAM, COLUMN_SHAM2, true, v);
}

static void gate_aa(const struct drive *drive, struct sweep_gates *gates)
{
	double *v;
	size_t n = gather_aa(drive, &v);

	gates->aa = infer_mean(v, n, &gates->aa_p);
	gates->aa_known = n >= 2;
	gates->unproven = gates->aa_known && gates->aa_p < GATE_LEVEL;
	free(v);
	n = gather(drive, COLUMN_OFF, COLUMN_SHAM, false, &v);
	gates->sham_ns = infer_mean(v, n, NULL);
	free(v);
}

static void gate_queue(const struct drive *drive, struct sweep_gates *gates)
{
	gates->queue_grows = queue_growth(&drive->rec).grows;
}

static void gate_control(const struct drive *drive, struct rng *rng, struct sweep_gates *gates)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1, .throughput = true };
	struct record_of of = { drive->control_experiment, -1, 0, 1 };
	struct infer_kappa kappa;
	struct infer_data data;
	double allowed;

	gates->control_asked = drive->cfg.control != DRIVE_NONE && !drive->cfg.control_auto;
	if (drive->control_experiment < 0)
		return;
	if (drive->cfg.control_auto) /* items may be done side by side by threads */
		view.mode = LANE_THREAD;
	record_data(&drive->rec, &of, &view, &data, NULL);
	infer_kappa(&data, rng, &kappa);
	record_data_free(&data);
	gates->control = kappa.kappa;
	allowed = fmax(CONTROL_SLACK, stat_t_quantile(CONTROL_LEVEL, kappa.df) * kappa.se);
	gates->control_ok = fabs(kappa.kappa.est - 1) <= allowed;
}

/* --- a target --- */

static void fill_doses(const struct judged *judged, const struct work *work,
		       struct sweep_target *target)
{
	const struct infer_data *data = &judged->data;
	double t0 = infer_level(data, 0).t;

	target->n_doses = data->n_arms;
	target->dose = must_calloc(data->n_arms, sizeof(*target->dose));
	for (size_t a = 0; a < data->n_arms; a++) {
		struct sweep_dose *dose = &target->dose[a];
		struct infer_cell level = infer_level(data, a);

		*dose = (struct sweep_dose){ .delay_ns = a ? work->dose_ns[a - 1] : 0,
					     .x_ns = level.x,
					     .hits_per_item = level.h,
					     .t_ns = { t0, NAN, NAN } };
		if (!a)
			continue;
		dose->delta_ns = infer_delta(data, a, NULL);
		if (judged->quantile)
			quantile_widen_delta(&judged->of, a, &dose->delta_ns);
		dose->t_ns = (struct sweep_estimate){ t0 + dose->delta_ns.est,
						      t0 + dose->delta_ns.lo,
						      t0 + dose->delta_ns.hi };
	}
}

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

static void fill_slack(const struct judged *judged, double threshold, struct rng *rng,
		       struct sweep_target *target)
{
	const struct infer_data *data = &judged->data;
	struct infer_kappa line;
	struct slack_fit fit;

	infer_kappa(data, rng, &line);
	slack_fit(data, &line, threshold, rng, &fit);
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
static struct sweep_estimate throughput_of(const struct drive *drive, size_t target)
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
static void fill_shape(const struct drive *drive, const struct judged *judged, struct rng *rng,
		       struct sweep_target *target, size_t index)
{
	bool slack = target->slack_kind == SLACK_FOUND || target->slack_kind == SLACK_BRACKET;
	struct queue_shape *queue = &(struct queue_shape){ .delta_aicc = NAN };

	if (!queue_shape(&judged->data, queue) || isnan(target->kappa.est))
		return;
	target->queue.delta_aicc = queue->delta_aicc;
	if ((slack && !(queue->delta_aicc > target->delta_aicc)) ||
	    throughput_of(drive, index).lo > CLOSED)
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

/* As many times as much, in the end: from `least` to `most` times. */
static void widen_by_share(struct sweep_estimate *k, double least, double most)
{
	k->lo = fmin(k->lo, fmin(k->lo * least, k->lo * most));
	k->hi = fmax(k->hi, fmax(k->hi * least, k->hi * most));
}

/*
 * With a slack the course of the windows shows what a line through all doses adds late, which is
 * neither kappa nor what is felt beyond the slack: both are allowed the same share of it.
 */
static void fill_late_share(const struct carry *carry, struct sweep_target *target)
{
	struct sweep_estimate *both[] = { &target->kappa, &target->kappa_beyond };
	double soon = 1 + carry->soon / carry->alone;

	for (size_t i = 0; i < 2; i++) {
		widen_by_share(both[i], soon, soon);
		if (!(carry->t > LATE_HINT))
			continue;
		if (target->settle_s > 0)
			both[i]->est *= carry->total / carry->alone;
		widen_by_share(both[i], carry->lo / carry->alone, carry->hi / carry->alone);
	}
}

static void fill_late_line(const struct carry *carry, double per, struct sweep_target *target)
{
	struct sweep_estimate *kappa = &target->kappa;

	kappa->lo += fmin(0, carry->soon * per);
	kappa->hi += fmax(0, carry->soon * per);
	if (!(carry->t > LATE_HINT))
		return;
	if (target->settle_s > 0)
		*kappa = (struct sweep_estimate){ carry->total * per, INFINITY, -INFINITY };
	kappa->lo = fmin(kappa->lo, carry->lo * per);
	kappa->hi = fmax(kappa->hi, carry->hi * per);
}

/*
 * Does a delay take longer than its window to be felt? kappa is what it adds in the end: then its
 * interval holds that, too, as far as it is known. Where it is certain, that is the estimate.
 */
static void fill_late(const struct drive *drive, const struct work *work,
		      struct sweep_target *target)
{
	int index = (int)(work - drive->work);
	const struct sweep_dose *most = &target->dose[target->n_doses - 1];
	struct carry carry;

	target->settle_s = NAN;
	if (drive->cfg.runs || isnan(target->kappa.est))
		return;
	carry = record_carry(&drive->rec, work->experiment, index);
	target->settle_s = carry_seen(&carry) ? carry.tau_ns / 1e9 : carry.tau_ns > 0 ? 0 : NAN;
	if (!(most->x_ns > 0))
		return;
	/* The course is that of the mean: a quantile is late by the same share. */
	if (drive->cfg.quantile > 0 && !(carry.alone > 0))
		return;
	if (target->slack_kind == SLACK_FOUND ? carry.alone > 0 : drive->cfg.quantile > 0)
		fill_late_share(&carry, target);
	else
		fill_late_line(&carry, (double)most->delay_ns / most->x_ns, target);
}

/*
 * Of a product of two estimates: the ends of its interval from those of its factors (the method of
 * variance estimates recovery; Zou and Donner, 2008).
 */
static double product_end(double a, double a_end, double b, double b_end)
{
	double way = a_end < a || b_end < b ? -1 : 1;

	return a * b + way * hypot(b * (a_end - a), a * (b_end - b));
}

/* Its own time per item, as far as a delay of it is felt: never below 0, and never above the whole
 * of it unless it is shown that a delay is amplified. */
static void fill_gain(const struct work *work, struct sweep_target *target)
{
	struct sweep_estimate k = target->kappa, own = work->own_ns;
	const char *why = work->own_why;

	target->inclusive_ns = own;
	if (!why[0])
		why = "its own time was not measured";
	if (isnan(own.est)) {
		snprintf(target->inclusive_reason, SWEEP_REASON, "%s", why);
		snprintf(target->gain_reason, SWEEP_REASON, "%s", why);
	} else if (isnan(k.est)) {
		snprintf(target->gain_reason, SWEEP_REASON, "kappa is not known");
	} else {
		bool amplified = k.lo > 1;
		double most = amplified ? INFINITY : own.est,
		       most_hi = amplified ? INFINITY : own.hi;

		target->gain_ceiling_ns = (struct sweep_estimate){
			fmin(fmax(0, k.est * own.est), most),
			fmin(fmax(0, product_end(k.est, k.lo, own.est, own.lo)), most),
			fmin(fmax(0, product_end(k.est, k.hi, own.est, own.hi)), most_hi)
		};
	}
}

static void add_part(const struct drive *drive, const struct work *work, const char *name,
		     const struct record_view *view, struct sweep_target *target)
{
	struct infer_kappa kappa;
	struct judged judged;
	struct sweep_part part = { 0 };
	struct record_of of = work_of(drive, (size_t)(work - drive->work));

	judged_open(drive, &of, view, &judged, &part.lanes);
	judged_infer(&judged, NULL, &kappa);
	part.kappa = kappa.kappa;
	part.x_ns = infer_level(&judged.data, work->n_doses).x;
	judged_close(&judged);
	if (!(part.lanes > 0))
		return;
	part.name = must_strdup(name);
	target->part = must_realloc(target->part, (target->n_parts + 1) * sizeof(part));
	target->part[target->n_parts++] = part;
}

/* Adds what kappa is with another number of lanes, if that is another number. */
static bool add_lanes(const struct drive *drive, const struct work *work, const char *name,
		      enum lane_mode mode, double lanes, struct sweep_target *target)
{
	struct record_view view = { .mode = mode, .role = -1 };

	add_part(drive, work, name, &view, target);
	if (!target->n_parts || fabs(target->part[target->n_parts - 1].lanes - lanes) >= 0.5)
		return target->n_parts > 0;
	free(target->part[--target->n_parts].name);
	return false;
}

/*
 * If it is not clear how many lanes are side by side, kappa is known up to that: as far as it may
 * be, from the fewest lanes to the most, is what the verdict has to hold for.
 */
static void fill_range(const struct drive *drive, const struct work *work, double lanes,
		       struct sweep_target *target)
{
	static const struct {
		enum lane_mode mode;
		const char *name;
	} end[] = { { LANE_LEAST, "if they take turns" }, { LANE_MOST, "if side by side" } };

	for (size_t i = 0; i < 2; i++) {
		if (!add_lanes(drive, work, end[i].name, end[i].mode, lanes, target))
			continue;
		target->range[i] = target->part[target->n_parts - 1].kappa;
		target->lanes_unclear = true;
	}
}

/* Roles apart where there are several, and what another number of lanes would mean. */
static void fill_parts(const struct drive *drive, const struct work *work, double lanes,
		       struct sweep_target *target)
{
	struct record_view view = { .mode = drive->cfg.lane_mode };
	char name[SWEEP_REASON];

	for (size_t r = 0; r < drive->rec.n_roles && drive->rec.n_roles > 1; r++) {
		view.role = (int)r;
		snprintf(name, sizeof(name), "role %s", drive->rec.role[r]);
		add_part(drive, work, name, &view, target);
	}
	target->lanes = lanes;
	target->range[0] = target->range[1] = target->kappa;
	if (drive->cfg.lane_mode == LANE_AUTO)
		fill_range(drive, work, lanes, target);
	else if (drive->cfg.lane_mode != LANE_THREAD)
		add_lanes(drive, work, "by thread", LANE_THREAD, lanes, target);
}

static void fill_hits(const struct infer_data *data, struct sweep_target *target)
{
	double p;

	target->hits_per_item = infer_level(data, 0).h;
	target->t0_ns = infer_level(data, 0).t;
	target->hits_change = infer_hits(data, data->n_arms - 1, &p);
	target->hits_differ = p < HITS_LEVEL && fabs(target->hits_change.est) > HITS_SHARE;
}

/* Numbers of its own: kappa does not depend on whether there are counters. */
static void fill_changes(const struct drive *drive, const struct work *work, double resolution_ns,
			 struct sweep_target *target)
{
	struct account_of of = { .of = work_of(drive, (size_t)(work - drive->work)),
				 .mode = drive->cfg.lane_mode,
				 .rounding = resolution_ns > 0 ? resolution_ns / target->t0_ns :
								 0 };
	struct rng rng;

	if (!drive->rec.n_counters)
		return;
	rng_seed(&rng, drive->cfg.seed ^ ACCOUNT_SEED ^ (uint64_t)of.of.target << 32);
	account_target(&drive->rec, &of, &rng, target);
}

/* What adjusting did: the same estimate without it, by the same method. */
static void fill_unadjusted(const struct drive *drive, const struct record_of *of,
			    const struct infer_data *data, struct sweep_target *target)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1, .raw = true };
	struct infer_kappa with, without;
	struct infer_data raw;

	if (!drive->rec.adjust.n)
		return;
	record_data(&drive->rec, of, &view, &raw, NULL);
	raw.resolution_ns = data->resolution_ns;
	infer_kappa(&raw, NULL, &without);
	infer_kappa(data, NULL, &with);
	record_data_free(&raw);
	target->unadjusted = without.kappa;
	target->adjusted_width = (with.kappa.hi - with.kappa.lo) /
				 (without.kappa.hi - without.kappa.lo);
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

static void fill_queue(const struct drive *drive, const struct record_of *of,
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
static void fill_quantiles(const struct drive *drive, const struct record_of *of,
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

static void measured(const struct drive *drive, const struct work *work, struct rng *rng,
		     struct sweep_result *res, struct sweep_target *target)
{
	struct record_view view = { .mode = drive->cfg.lane_mode, .role = -1 };
	struct record_of of = work_of(drive, (size_t)(work - drive->work));
	struct judged judged;
	double lanes;

	judged_open(drive, &of, &view, &judged, &lanes);
	if (!drive->cfg.aligned && drive->rounded && work->window_ns > 0 && !drive->cfg.response)
		judged.data.resolution_ns = drive->pilot.t_ns / work->window_ns *
					    fmax(drive->pilot.t_ns, drive->pilot.period_ns);
	fill_hits(&judged.data, target);
	fill_unadjusted(drive, &of, &judged.data, target);
	fill_doses(&judged, work, target);
	fill_slack(&judged, drive->cfg.threshold, rng, target);
	if (drive->cfg.response)
		fill_shape(drive, &judged, rng, target, (size_t)of.target);
	fill_late(drive, work, target);
	if (drive->cfg.response)
		fill_quantiles(drive, &of, &judged, target);
	fill_gain(work, target);
	fill_parts(drive, work, lanes, target);
	fill_changes(drive, work, judged.data.resolution_ns, target);
	if (drive->cfg.response)
		fill_queue(drive, &of, &res->gates, target);
	target->dose_given = record_given(&drive->rec, &of, drive->cfg.every[of.target]);
	judged_close(&judged);
	if (lanes > res->gates.lanes)
		res->gates.lanes = lanes;
}

static void screened(const struct work *work, struct sweep_target *target)
{
	target->screened = true;
	target->kappa = (struct sweep_estimate){ NAN, -INFINITY, work->bound };
	target->hits_per_item = work->felt;
	target->verdict = VERDICT_HIDDEN;
	snprintf(target->reason, sizeof(target->reason),
		 "in a group whose kappas sum to less than %.2g", fmax(0, work->bound));
}

static void fill_target(const struct drive *drive, const struct work *work, struct rng *rng,
			struct sweep_result *res, struct sweep_target *target)
{
	target->spec = must_strdup(work->spec);
	target->hits = work->hits;
	target->tested = drive->stage > STAGE_PILOT || (drive->done && !drive->dead);
	target->robust_agrees = true;
	snprintf(target->reason, sizeof(target->reason), "%s", work->reason);
	if (work->experiment >= 0)
		measured(drive, work, rng, res, target);
	else if (work->state == WORK_SCREENED)
		screened(work, target);
	else if (!target->reason[0])
		snprintf(target->reason, sizeof(target->reason), "%s",
			 drive->done ? "called too rarely to measure" :
				       "the sweep ended before its turn");
	if (isnan(target->inclusive_ns.est) && !target->inclusive_reason[0])
		fill_gain(work, target);
}

/* --- the whole --- */

/* Time for the request: enough blocks, and an interval as narrow as the threshold requires. */
static void time_needed(const struct drive *drive, struct sweep_result *res)
{
	double needed = NAN;

	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		needed = fmax(needed, drive->work[i].needed_ns);
	for (size_t i = 0; i < res->n_targets; i++) {
		const struct sweep_target *target = &res->target[i];
		double ratio = target->mde / drive->cfg.threshold;

		if (target->verdict == VERDICT_INCONCLUSIVE && target->blocks && ratio > 1)
			needed = fmax(needed, (double)drive->now_ns * ratio * ratio);
	}
	if (!drive->cfg.runs)
		res->time_needed_s = needed / 1e9;
}

/* Of the last experiment: the guard may have been raised before it. */
static void judge_carry(const struct drive *drive, struct sweep_result *res)
{
	struct carry carry;
	int last = -1;

	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		if (drive->work[i].experiment > last)
			last = drive->work[i].experiment;
	if (last < 0 || drive->cfg.runs)
		return;
	carry = record_carry(&drive->rec, last, -1);
	if (carry.t != 0) /* 0: unknown */
		res->gates.carry_t = carry.t;
	res->gates.carry_over = carry_seen(&carry);
	if (res->gates.carry_over)
		sweep_result_warn(res,
				  "an arm is still felt in the next: the guard of %.0f ms is "
				  "too short, and kappa too low",
				  drive->exp_guard_ns / 1e6);
}

static void warn_all(const struct drive *drive, struct sweep_result *res)
{
	bool hidden = false;

	if (drive->unsettled)
		sweep_result_warn(res, "time per item still had a trend after the warm-up");
	judge_carry(drive, res);
	if (res->gates.unproven)
		sweep_result_warn(res, "A and A differed by %.2g %%: nothing here is proven",
				  100 * res->gates.aa.est);
	for (size_t i = 0; i < res->n_targets; i++) {
		const struct sweep_target *target = &res->target[i];

		if (target->verdict == VERDICT_HIDDEN && res->gates.load == LOAD_UNKNOWN &&
		    !drive->cfg.response && !res->runs)
			hidden = true;
		if (target->hits_differ)
			sweep_result_warn(res,
					  "%s: hits per item changed by %.1f %% with the delay: "
					  "a poller absorbs it, or the work changed",
					  target->spec, 100 * target->hits_change.est);
		if (!target->robust_agrees)
			sweep_result_warn(res, "%s: the robust estimate %.2f disagrees: outliers",
					  target->spec, target->kappa_robust.est);
	}
	if (hidden)
		sweep_result_warn(res, "HIDDEN holds if the load is closed: %s",
				  res->gates.load_reason);
}

/* By each target: one that is not felt anywhere says nothing of the load. */
static void judge_load(const struct drive *drive, struct sweep_result *res)
{
	double busy = drive_busiest(drive);
	bool measured = false;

	for (size_t i = 0; i < drive->cfg.n_targets && drive->cfg.response; i++) {
		struct sweep_estimate throughput, response;

		if (drive->work[i].experiment < 0)
			continue;
		throughput = throughput_of(drive, i);
		response = drive_kappa(drive, i);
		measured = true;
		verdict_load(&res->gates, drive->cfg.threshold, busy, &throughput, &response);
		if (res->gates.pinned)
			return;
	}
	if (measured)
		return;
	verdict_load(&res->gates, drive->cfg.threshold, busy, NULL, NULL);
	verdict_load_seen(res);
}

/* A target's row in the result, which has none for the control. */
static int row_of(const struct drive *drive, int target)
{
	if (target < 0 || drive->cfg.control_too || (size_t)target < drive->cfg.control)
		return target; /* DRIVE_NONE is the largest value */
	return (size_t)target == drive->cfg.control ? -1 : target - 1;
}

static void copy_plan(const struct drive *drive, struct sweep_result *res)
{
	sweep_plan_copy(&res->plan, &drive->plan);
	for (size_t i = 0; i < res->plan.n_targets; i++)
		res->plan.target[i].target = row_of(drive, res->plan.target[i].target);
}

static void copy_adjust(const struct drive *drive, struct sweep_result *res)
{
	res->n_adjust = drive->cfg.n_adjust;
	res->adjust_explained = drive->rec.adjust.n ? drive->rec.adjust.explained : NAN;
	memcpy(res->adjust, drive->adjust, sizeof(res->adjust));
	for (size_t i = 0; i < res->n_adjust; i++) {
		struct sweep_adjust *adjust = &res->adjust[i];

		adjust->moved_target = adjust->moved ? row_of(drive, adjust->moved_target) : -1;
	}
}

static void copy_counters(const struct record_row *row, size_t n, struct sweep_window *win)
{
	size_t size = SIDE_COUNT * n * sizeof(*row->counter);

	win->counter = row->counter ? memcpy(must_calloc(1, size), row->counter, size) : NULL;
}

static void copy_windows(struct drive *drive, struct sweep_result *res)
{
	record_finish(&drive->rec, drive->cfg.lane_mode);
	res->window = must_calloc(drive->rec.n, sizeof(*res->window));
	res->n_windows = drive->rec.n;
	for (size_t i = 0; i < drive->rec.n; i++) {
		res->window[i] = drive->rec.row[i].win;
		res->window[i].target = row_of(drive, res->window[i].target);
		copy_counters(&drive->rec.row[i], drive->rec.n_counters, &res->window[i]);
	}
}

struct sweep_result *drive_end(struct drive *drive)
{
	bool without = drive->cfg.control != DRIVE_NONE && !drive->cfg.control_too;
	size_t n = drive->cfg.n_targets - without, at = 0;
	struct sweep_result *res = sweep_result_new(n);
	struct rng rng;

	rng_seed(&rng, drive->cfg.seed ^ ANALYSIS_SEED);
	res->seed = drive->cfg.seed;
	res->threshold = drive->cfg.threshold;
	res->runs = drive->cfg.runs;
	res->ended_early = !drive->done;
	res->dead_source = drive->dead;
	res->time_s = (double)drive->now_ns / 1e9;
	res->period_ns = drive->pilot.period_ns > 0 ? drive->pilot.period_ns : NAN;
	res->window_s = drive->window_ns > 0 ? drive->window_ns / 1e9 : NAN;
	res->autocorrelation_s = drive->pilot.iact_ns > 0 ? drive->pilot.iact_ns / 1e9 : NAN;
	res->n_counters = drive->rec.n_counters;
	res->gates.roles = drive->rec.n_roles;
	res->gates.lane_mode = lane_mode_name(drive->cfg.lane_mode);
	drive_adjust(drive);
	copy_adjust(drive, res);
	gate_aa(drive, &res->gates);
	if (drive->cfg.response)
		gate_queue(drive, &res->gates);
	gate_control(drive, &rng, &res->gates);
	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		if (drive_has_row(drive, i))
			fill_target(drive, &drive->work[i], &rng, res, &res->target[at++]);
	judge_load(drive, res);
	verdict_judge(res);
	account_judge(res);
	time_needed(drive, res);
	warn_all(drive, res);
	copy_plan(drive, res);
	copy_windows(drive, res);
	return res;
}
