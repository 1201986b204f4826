/* SPDX-License-Identifier: MIT */
#include "drive-priv.h"

#include <stdio.h>
#include <stdlib.h>
#include "account.h"
#include "behind.h"
#include "stat.h"
#include "verdict.h"
#include "src/base/must.h"

#define ANALYSIS_SEED 0x5eedfaceu /* not the design's: drive_end() may run twice */
#define ACCOUNT_SEED  0xacc0017u
#define HITS_LEVEL    0.01
#define HITS_SHARE    0.02
#define LATE_HINT     3.0 /* of record_carry(): from there on it is allowed for */

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
	const struct sweep_dose *most = &target->dose[target->n_doses - 1];
	struct carry carry = work->carry;

	target->settle_s = NAN;
	if (drive->cfg.runs || isnan(target->kappa.est))
		return;
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

/* Its own time per item, as a lane spends it: of the same lanes as kappa. */
static struct sweep_estimate own_of_lane(const struct drive *drive, const struct work *work)
{
	double share = drive_share(drive, work->experiment, (size_t)(work - drive->work));

	return (struct sweep_estimate){ work->own_ns.est * share, work->own_ns.lo * share,
					work->own_ns.hi * share };
}

/* Its own time per item, as far as a delay of it is felt: never below 0, never above the time per
 * item, and never above the whole of it unless it is shown that a delay is amplified. */
static void fill_gain(const struct drive *drive, const struct work *work,
		      struct sweep_target *target)
{
	struct sweep_estimate k = target->kappa, own = own_of_lane(drive, work);
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
		double all = target->t0_ns > 0 ? target->t0_ns : INFINITY;
		double most = amplified ? all : fmin(own.est, all);
		double most_hi = amplified ? all : fmin(own.hi, all);

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

static void fill_hits(const struct drive *drive, const struct infer_data *data,
		      struct sweep_target *target)
{
	double p;

	target->hits_per_item = infer_level(data, 0).h;
	target->t0_ns = infer_level(data, 0).t;
	target->hits_change = infer_hits(data, data->n_arms - 1, &p);
	target->hits_differ = p < HITS_LEVEL && fabs(target->hits_change.est) > HITS_SHARE;
	if (!drive->cfg.response && !drive->cfg.runs)
		behind_fill(data, drive->cfg.threshold, &target->calls);
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
	fill_hits(drive, &judged.data, target);
	fill_unadjusted(drive, &of, &judged.data, target);
	fill_doses(&judged, work, target);
	drive_slack(drive, work, &judged, rng, target);
	if (drive->cfg.response)
		drive_shape(drive, &judged, rng, target, (size_t)of.target);
	fill_late(drive, work, target);
	hold_fill(drive, (size_t)of.target, target);
	if (drive->cfg.response)
		drive_quantiles(drive, &of, &judged, target);
	fill_gain(drive, work, target);
	fill_parts(drive, work, lanes, target);
	fill_changes(drive, work, judged.data.resolution_ns, target);
	if (drive->cfg.response)
		drive_queue(drive, &of, &res->gates, target);
	target->dose_given = record_given(&drive->rec, &of, drive->cfg.every[of.target]);
	judged_close(&judged);
	if (lanes > res->gates.lanes)
		res->gates.lanes = lanes;
}

static void screened(const struct drive *drive, const struct work *work,
		     struct sweep_target *target)
{
	uint64_t every = drive->cfg.every[work - drive->work];

	target->screened = true;
	target->kappa = (struct sweep_estimate){ NAN, -INFINITY, work->bound };
	target->hits_per_item = work->felt * fmax(1, (double)every);
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
	target->remedy = work->remedy;
	if (work->experiment >= 0)
		measured(drive, work, rng, res, target);
	else if (work->state == WORK_SCREENED)
		screened(drive, work, target);
	else if (!target->reason[0])
		snprintf(target->reason, sizeof(target->reason), "%s",
			 drive->done ? "called too rarely to measure" :
				       "the sweep ended before its turn");
	if (isnan(target->inclusive_ns.est) && !target->inclusive_reason[0])
		fill_gain(drive, work, target);
}

/* --- the whole --- */

/* What is felt late, in each experiment once: the targets that share it differ in their slopes. */
static void find_late(struct drive *drive)
{
	size_t n_targets = drive->cfg.n_targets;
	struct carry *carry = must_calloc(n_targets + 1, sizeof(*carry));
	int *target = must_calloc(n_targets + 1, sizeof(*target));

	for (size_t i = 0; i < n_targets; i++)
		drive->work[i].carry = (struct carry){ 0 };
	for (int e = 0; e < drive->n_experiments && !drive->cfg.runs; e++) {
		size_t n = 0;

		for (size_t i = 0; i < n_targets; i++)
			if (drive->work[i].experiment == e)
				target[n++] = (int)i;
		if (n)
			record_carries(&drive->rec, e, target, n, carry);
		for (size_t i = 0; i < n; i++)
			drive->work[target[i]].carry = carry[i];
	}
	free(target);
	free(carry);
}

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
	struct carry carry = { 0 };
	int last = -1;

	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		if (drive->work[i].experiment > last) {
			last = drive->work[i].experiment;
			carry = drive->work[i].carry;
		}
	if (last < 0 || drive->cfg.runs)
		return;
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
		if (target->hits_differ && !target->calls.ahead)
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
		throughput = drive_throughput(drive, i);
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

/* Counting alone takes a part of the time of a function that is called thousands of times an item.
 * sham_ns is of items; of a response nothing is taken off. */
static void study_plain(const struct drive *drive, struct sweep_result *res)
{
	const struct sweep_estimate *sham = &res->gates.sham_ns;

	for (size_t i = 0; i < res->n_targets; i++) {
		struct sweep_target *target = &res->target[i];

		target->plain_ns = target->t0_ns;
		if (!drive->cfg.response && sham->lo > 0 && sham->est < target->t0_ns)
			target->plain_ns -= sham->est;
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
	drive_adjust(drive);
	copy_adjust(drive, res);
	find_late(drive);
	drive_gates(drive, &rng, &res->gates);
	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		if (drive_has_row(drive, i))
			fill_target(drive, &drive->work[i], &rng, res, &res->target[at++]);
	study_plain(drive, res);
	judge_load(drive, res);
	verdict_judge(res);
	account_judge(res);
	time_needed(drive, res);
	warn_all(drive, res);
	copy_plan(drive, res);
	copy_windows(drive, res);
	return res;
}
