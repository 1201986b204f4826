/* SPDX-License-Identifier: MIT */
#include "verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "stat.h"
#include "src/base/must.h"

#define LEVEL	  0.05
#define FULL_HALF 0.5
/* From so many lanes on, what one of them feels is not what is felt of all injected time. */
#define LANES_SEVERAL 1.2
/* A slack that is worth a word, as a share of the time per item. */
#define SLACK_MATTERS 0.05
/* A slack that leaves it open whether small delays are felt, as a share of the largest dose. */
#define SLACK_PART     0.5
#define SLACK_PART_ONE (1.0 / 3)
/* Between these the injected time is hits times dose. */
#define GIVEN_LEAST 0.95
#define GIVEN_MOST  1.1

static void decide(struct sweep_target *target, enum sweep_verdict verdict, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void decide(struct sweep_target *target, enum sweep_verdict verdict, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(target->reason, sizeof(target->reason), fmt, ap);
	va_end(ap);
	target->verdict = verdict;
	target->remedy.option = NULL;
}

static void remedy(struct sweep_target *target, const char *option, bool longer, const char *fmt,
		   ...) __attribute__((format(printf, 4, 5)));

/* Behind decide(): the same option as in the reason, for programs. */
static void remedy(struct sweep_target *target, const char *option, bool longer, const char *fmt,
		   ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(target->remedy.value, sizeof(target->remedy.value), fmt, ap);
	va_end(ap);
	target->remedy.option = option;
	target->remedy.longer = longer;
}

static void inconclusive(struct sweep_target *target, const char *why)
{
	if (isfinite(target->mde))
		decide(target, VERDICT_INCONCLUSIVE, "%s; a kappa of %.2g would have been seen",
		       why, target->mde);
	else
		decide(target, VERDICT_INCONCLUSIVE, "%s", why);
}

/* ... by throughput, which the load may pin. */
static void not_felt(const struct sweep_gates *gates, struct sweep_target *target)
{
	decide(target, VERDICT_INCONCLUSIVE, "not felt; %s", gates->load_reason);
	if (!isfinite(gates->control.est))
		remedy(target, "--self-check", true, "%s", "");
}

/* Verdicts that do not depend on kappa. */
static bool gated(const struct sweep_result *res, struct sweep_target *target)
{
	const struct sweep_gates *gates = &res->gates;

	if (target->tested && !target->hits)
		decide(target, VERDICT_NOT_CALLED,
		       "not called while it was watched; a compiler may have put it into its "
		       "callers: sbinject list TARGET inline=yes");
	else if (res->dead_source && target->blocks < VERDICT_BLOCKS && !target->screened)
		decide(target, VERDICT_INVALID, "the progress source did not move");
	else if (gates->load == LOAD_OPEN)
		decide(target, VERDICT_INVALID, "%s: use --response", gates->load_reason);
	else if (target->queue.saturated)
		decide(target, VERDICT_INVALID, "saturated: %s", target->queue.reason);
	else if (gates->control_asked && !gates->control_ok)
		decide(target, VERDICT_INVALID, "the positive control's kappa is %.2f and not 1",
		       gates->control.est);
	else if (target->kappa.hi < res->threshold && gates->load == LOAD_UNKNOWN &&
		 !gates->control_asked && (gates->idle || isfinite(gates->control.est)))
		not_felt(gates, target);
	else if (target->dose_given < GIVEN_LEAST || target->dose_given > GIVEN_MOST)
		decide(target, VERDICT_INVALID,
		       "its calls were given %.0f %% of the delay that was asked: hits x dose and "
		       "what was injected must agree",
		       target->dose_given * 100);
	else if (target->lost * 10 > target->blocks)
		decide(target, VERDICT_INVALID,
		       "no items in %zu of %zu blocks: the load stopped, or a window is shorter "
		       "than an item with that delay: smaller --doses, or more --time",
		       target->lost, target->lost + target->blocks);
	else
		return false;
	return true;
}

static bool too_little(struct sweep_target *target)
{
	if ((!target->blocks || target->judged) && target->reason[0])
		target->verdict = VERDICT_INCONCLUSIVE; /* keeps its reason */
	else if (target->blocks < VERDICT_BLOCKS) {
		inconclusive(target, target->blocks ? "one block shows no spread: more --time" :
						      "no block was completed: more --time");
	} else if (!isfinite(target->kappa.lo) || !isfinite(target->kappa.hi)) {
		inconclusive(target,
			     "by its blocks the time injected does not differ from none (few "
			     "calls, or uneven ones), so kappa has no interval: more --time");
	} else {
		return false;
	}
	return true;
}

static const char *time_text(double ns, char *buf, size_t size)
{
	static const char *const unit[] = { "ns", "us", "ms", "s" };
	int i = 0;

	for (; fabs(ns) >= 1000 && i < 3; i++)
		ns /= 1000;
	snprintf(buf, size, "%.3g%s", ns, unit[i]);
	return buf;
}

/* Hidden at no delay. Is more of it felt? */
static void hidden(struct sweep_target *target)
{
	const struct sweep_estimate *s = &target->slack_ns, *k = &target->kappa_beyond;
	char est[32], lo[32], hi[32];

	time_text(s->est, est, sizeof(est));
	time_text(s->lo, lo, sizeof(lo));
	time_text(s->hi, hi, sizeof(hi));
	if (target->slack_kind == SLACK_FOUND)
		decide(target, VERDICT_SLACK,
		       "hidden up to %s [%s, %s] an item, beyond that %.2f [%.2f, %.2f] of a delay "
		       "is "
		       "felt",
		       est, lo, hi, k->est, k->lo, k->hi);
	else if (target->slack_kind == SLACK_BRACKET)
		decide(target, VERDICT_SLACK,
		       "hidden up to %s an item, and felt beyond %s at the latest", lo, hi);
	else if (target->hold.time_s > 0)
		decide(target, VERDICT_HIDDEN,
		       "at most %.2g of a delay is felt, and no more of one that lasts %.2gs",
		       fmax(0, target->kappa.hi), target->hold.time_s);
	else
		decide(target, VERDICT_HIDDEN, "at most %.2g of a delay is felt",
		       fmax(0, target->kappa.hi));
}

/*
 * A part of a delay is felt; or none up to a slack, and all of it beyond. The largest dose alone
 * does not tell them apart.
 */
static bool slack_refuted(const struct sweep_target *target)
{
	double most = target->n_doses > 1 ? target->dose[target->n_doses - 1].x_ns : NAN;

	return target->slack_kind == SLACK_NONE &&
	       !(target->slack_ns.hi >= most * (1 - target->kappa.est));
}

/* Injected per item by the largest dose; NAN: there is none. */
static double largest_x(const struct sweep_target *target)
{
	return target->n_doses > 1 ? target->dose[target->n_doses - 1].x_ns : NAN;
}

/*
 * The largest slack that is not excluded: that of the hinge, or, of a single dose, what is left of
 * the dose if all of it was felt beyond a slack. 0: none that matters.
 */
static double slack_allowed(const struct sweep_target *target)
{
	double slack = target->slack_kind == SLACK_NONE ?
			       target->slack_ns.hi :
			       largest_x(target) * (1 - target->kappa.lo);

	return slack > SLACK_MATTERS * target->t0_ns ? slack : 0;
}

/*
 * Is it shown that what is felt is felt of small delays, too? Not if a slack may be a large part of
 * the largest dose: half of it by the shape of several, a third of a single one.
 */
static bool felt_from_the_first(const struct sweep_target *target)
{
	double part = target->slack_kind == SLACK_NONE ? SLACK_PART : SLACK_PART_ONE;

	return !(slack_allowed(target) > part * largest_x(target));
}

bool verdict_may_be_full(const struct sweep_target *target, double threshold)
{
	return target->kappa.hi > 1 - threshold;
}

static void partial(struct sweep_target *target, double d)
{
	const struct sweep_dose *most = target->n_doses > 1 ? &target->dose[target->n_doses - 1] :
							      NULL;
	bool reaches = verdict_may_be_full(target, d);
	double largest = most ? (double)most->delay_ns : NAN;
	char dose[32], half[32], quarter[32];

	if (reaches &&
	    (!most || (target->slack_kind == SLACK_NONE && felt_from_the_first(target)))) {
		decide(target, VERDICT_PARTIAL, "at least partly: the interval reaches 1");
	} else if (!most || (!reaches && slack_refuted(target))) {
		decide(target, VERDICT_PARTIAL, "a part of a delay is felt");
	} else if (target->kappa.est >= 1) {
		decide(target, VERDICT_INCONCLUSIVE,
		       "felt, and it is not shown that it is felt in full: more --time");
	} else {
		decide(target, VERDICT_INCONCLUSIVE,
		       "%.2f of %s is felt: a part of each delay, or all of it beyond a slack; "
		       "--doses %s,%s,%s would tell",
		       target->kappa.est, time_text(largest, dose, sizeof(dose)),
		       time_text(largest / 4, quarter, sizeof(quarter)),
		       time_text(largest / 2, half, sizeof(half)), dose);
		remedy(target, "--doses", false, "%s,%s,%s", quarter, half, dose);
	}
}

static void critical(struct sweep_target *target, bool amplified)
{
	double slack = slack_allowed(target);
	char text[32];

	if (amplified && target->lanes >= LANES_SEVERAL)
		decide(target, VERDICT_CRITICAL,
		       "a delay is amplified: a lane that is delayed holds others up; of the time "
		       "injected into all %.2g lanes %.2f is felt",
		       target->lanes, target->kappa.est / target->lanes);
	else if (amplified || !(slack > 0))
		decide(target, VERDICT_CRITICAL, "%s",
		       amplified ? "a delay is amplified" : "a delay is felt in full");
	else
		decide(target, VERDICT_CRITICAL,
		       "a delay is felt in full; a slack of up to %s an item is not excluded",
		       time_text(slack, text, sizeof(text)));
}

/* By kappa's interval alone; returns the p that the verdict rests on, NAN where there is none. */
static double by_interval(struct sweep_target *target, double d)
{
	bool slack = target->slack_kind == SLACK_FOUND || target->slack_kind == SLACK_BRACKET;
	double lo = target->kappa.lo, hi = target->kappa.hi, none;

	double full = target->lanes_unclear ? target->range[0].lo : lo; /* with the fewest lanes */

	none = fmax(target->p_none, isnan(target->p_random) ? 0 : target->p_random);
	if (hi < -d)
		inconclusive(target, "slowing it made the program faster");
	else if (hi < d) {
		hidden(target);
		return target->p_felt;
	} else if (lo > FULL_HALF && hi > 1 - d && felt_from_the_first(target)) {
		critical(target, fmin(lo, full) > 1 + d);
		return none;
	} else if (lo > d) {
		partial(target, d);
		return target->verdict == VERDICT_PARTIAL ? none : NAN;
	} else {
		inconclusive(target,
			     slack  ? "felt beyond the slack; before it neither felt nor shown "
				      "to be hidden" :
			     lo > 0 ? "felt, but perhaps less than the threshold" :
				      "neither felt nor shown to be hidden");
	}
	return NAN;
}

/*
 * Could the arms have been distinguished? Equal arms differ by as much as A/A's interval allows;
 * what a verdict claims must be more: what was seen under the largest dose, or, to be hidden, that
 * a full response would have been seen.
 */
static bool told_apart(const struct sweep_result *res, struct sweep_target *target)
{
	const struct sweep_estimate *aa = &res->gates.aa;
	const struct sweep_dose *most = target->n_doses > 1 ? &target->dose[target->n_doses - 1] :
							      NULL;
	double apart = (aa->hi - aa->lo) / 2, claim;

	if (!res->gates.aa_known || !most || !(apart >= 0) || !(target->t0_ns > 0))
		return true;
	claim = target->kappa.hi < res->threshold ? most->x_ns : fabs(most->delta_ns.est);
	if (apart * target->t0_ns < claim)
		return true;
	decide(target, VERDICT_INCONCLUSIVE,
	       "noise: equal arms may differ by %.2g %%, and the largest delay %s %.2g %%: more "
	       "--time, or larger --doses",
	       apart * 100, target->kappa.hi < res->threshold ? "adds" : "changed",
	       claim / target->t0_ns * 100);
	return false;
}

/* What is felt late is felt in part, or not at all, as long as one looks: only "in full" is sure.
 */
static bool in_time(struct sweep_target *target)
{
	char tau[32], guard[32];

	if (!(target->settle_s > 0) || target->kappa.lo > FULL_HALF)
		return true;
	decide(target, VERDICT_INCONCLUSIVE,
	       "a delay is felt late, over about %s, and outlives its window: --guard %s, with "
	       "more "
	       "--time",
	       time_text(target->settle_s * 1e9, tau, sizeof(tau)),
	       time_text(target->settle_s * 3e9, guard, sizeof(guard)));
	remedy(target, "--guard", true, "%s", guard);
	return false;
}

/* What a buffer hides for the length of a window is not hidden. */
static bool for_long(const struct sweep_result *res, struct sweep_target *target)
{
	const struct sweep_hold *hold = &target->hold;
	char more[32], x[32], guard[32];

	if (!hold->late || !(target->kappa.hi < res->threshold))
		return true;
	decide(target, VERDICT_INCONCLUSIVE,
	       "hidden in windows, and felt after %.2gs: %s an item, of %s; a buffer may hide it "
	       "until it is empty: --guard %s, with more --time",
	       hold->time_s, time_text(hold->delta_ns.est, more, sizeof(more)),
	       time_text(hold->x_ns, x, sizeof(x)),
	       time_text(hold->time_s * 1e9, guard, sizeof(guard)));
	remedy(target, "--guard", true, "%s", guard);
	return false;
}

/* What work done ahead hides until it is used up is neither hidden nor felt in part. */
static bool keeps_up(struct sweep_target *target)
{
	const struct sweep_calls *calls = &target->calls;
	const struct sweep_dose *dose;
	char delay[32], beyond[32];
	double h0, h;

	if (!calls->ahead || target->kappa.lo > FULL_HALF)
		return true;
	dose = &target->dose[calls->arm];
	h0 = target->hits_per_item;
	h = dose->hits_per_item;
	decide(target, VERDICT_INCONCLUSIVE,
	       "its calls fall behind the items (%+.2g %% with %s): work done ahead may hide a "
	       "delay until it is used up; beyond about %s an item it is felt then: more --time",
	       (h / h0 - 1) * 100, time_text((double)dose->delay_ns, delay, sizeof(delay)),
	       time_text(fmax(0, 1 - calls->kappa.est) * dose->x_ns * h0 / h, beyond,
			 sizeof(beyond)));
	return false;
}

/*
 * That a covariate is not changed by the delay can be refuted, but not shown: a small change is as
 * much as its noise. So what an adjusted time says may not be what is excluded without adjusting,
 * nor rest on it alone that a delay is hidden.
 */
static bool unadjusted_agrees(const struct sweep_result *res, struct sweep_target *target)
{
	const struct sweep_estimate *with = &target->kappa, *without = &target->unadjusted;
	bool hidden = with->hi < res->threshold;
	bool full = with->lo > FULL_HALF && with->hi > 1 - res->threshold;

	if (isnan(without->est) || (hidden && without->hi < FULL_HALF) ||
	    (full && without->hi > FULL_HALF) || (!hidden && !full))
		return true;
	decide(target, VERDICT_INCONCLUSIVE,
	       "%s by adjusted times, if a delay does not change what they are adjusted for; "
	       "without adjusting kappa is %.2f [%.2f, %.2f]: more --time",
	       hidden ? "hidden" : "felt in full", without->est, without->lo, without->hi);
	return false;
}

enum felt { FELT_NOT, FELT_PERHAPS, FELT_PARTLY, FELT_FULLY };

static enum felt how_felt(const struct sweep_estimate *kappa, double d)
{
	if (kappa->hi < d)
		return FELT_NOT;
	if (!(kappa->lo > d))
		return FELT_PERHAPS;
	return kappa->lo > FULL_HALF && kappa->hi > 1 - d ? FELT_FULLY : FELT_PARTLY;
}

/* False: with another number of lanes, which the data allow, the verdict would be another. */
static bool lanes_agree(struct sweep_target *target, double d)
{
	const struct sweep_estimate *least = &target->range[0], *most = &target->range[1];

	if (!target->lanes_unclear || how_felt(least, d) == how_felt(most, d))
		return true;
	decide(target, VERDICT_INCONCLUSIVE,
	       "it depends on how many of its threads work side by side, which was not to be "
	       "seen: kappa is %.2f if they take turns and %.2f if not (--lane process, --lane "
	       "thread)",
	       least->est, most->est);
	remedy(target, "--lane", false, "%s", "");
	return false;
}

/* At saturation a slope of the response is a property of the time that one looked. */
static void forget(struct sweep_target *target)
{
	const char *why = "the queue was saturated";

	target->kappa = target->kappa_beyond = target->kappa_robust = SWEEP_UNKNOWN;
	target->unadjusted = target->range[0] = target->range[1] = SWEEP_UNKNOWN;
	target->gain_ceiling_ns = target->slack_ns = SWEEP_UNKNOWN;
	target->slack_kind = SLACK_UNKNOWN;
	target->queue.shaped = target->lanes_unclear = false;
	target->robust_agrees = true;
	target->mde = NAN;
	snprintf(target->gain_reason, sizeof(target->gain_reason), "%s", why);
	snprintf(target->slack_reason, sizeof(target->slack_reason), "%s", why);
	for (size_t i = 0; i < target->n_quantiles; i++) {
		target->quantile[i].delta_ns = target->quantile[i].slope = SWEEP_UNKNOWN;
		snprintf(target->quantile[i].reason, SWEEP_REASON, "%s", why);
	}
}

void verdict_judge(struct sweep_result *res)
{
	double *p = must_calloc(res->n_targets, sizeof(*p));

	for (size_t i = 0; i < res->n_targets; i++) {
		struct sweep_target *target = &res->target[i];

		p[i] = NAN;
		if (target->queue.saturated)
			forget(target);
		if (gated(res, target) || target->screened || too_little(target))
			continue;
		if (in_time(target) && for_long(res, target) && keeps_up(target) &&
		    told_apart(res, target) && unadjusted_agrees(res, target) &&
		    lanes_agree(target, res->threshold))
			p[i] = by_interval(target, res->threshold);
	}
	stat_holm(p, res->n_targets);
	for (size_t i = 0; i < res->n_targets; i++) {
		res->target[i].p_adjusted = p[i];
		if (p[i] > LEVEL)
			inconclusive(&res->target[i],
				     "what was seen may be chance (randomisation, Holm)");
	}
	free(p);
}

static void load_is(struct sweep_gates *gates, enum sweep_load load, const char *why)
{
	gates->load = load;
	snprintf(gates->load_reason, sizeof(gates->load_reason), "%s", why);
}

void verdict_load(struct sweep_gates *gates, double threshold, double busy,
		  const struct sweep_estimate *throughput, const struct sweep_estimate *response)
{
	if (response) {
		bool pinned = throughput->hi < threshold && response->lo > threshold;

		load_is(gates, LOAD_UNKNOWN, "the response was judged, not the throughput");
		gates->pinned = pinned;
		if (pinned)
			snprintf(gates->load_reason, sizeof(gates->load_reason),
				 "open loop: throughput stood still while the response grew");
	} else if (gates->control_asked && gates->control.hi < FULL_HALF) {
		load_is(gates, LOAD_OPEN,
			"open loop: a delay of the progress function itself did not slow it");
	} else if (gates->control_asked && gates->control_ok) {
		load_is(gates, LOAD_CLOSED, "a delay of the progress function slowed it in full");
	} else if (busy >= VERDICT_BUSY) {
		load_is(gates, LOAD_CLOSED, "a thread was always busy");
	} else if (isnan(busy)) {
		load_is(gates, LOAD_UNKNOWN, "neither --self-check nor --response was given");
	} else {
		gates->idle = true;
		load_is(gates, LOAD_UNKNOWN,
			"no thread was always busy: if load arrives at a rate of its own, "
			"throughput "
			"is pinned; see --self-check, --response");
	}
}

void verdict_load_seen(struct sweep_result *res)
{
	struct sweep_gates *gates = &res->gates;
	bool measured = false, felt = gates->control.lo > FULL_HALF;

	if (gates->load != LOAD_UNKNOWN || gates->control_asked)
		return;
	for (size_t i = 0; i < res->n_targets; i++) {
		measured |= res->target[i].kappa.hi < FULL_HALF;
		felt |= res->target[i].kappa.lo > res->threshold ||
			res->target[i].hold.delta_ns.lo > res->threshold * res->target[i].hold.x_ns;
	}
	if (felt)
		load_is(gates, LOAD_CLOSED, "a delay slowed it");
	else if (measured && gates->control.hi < FULL_HALF)
		load_is(gates, LOAD_OPEN,
			"open loop: no thread is always busy, and a delay of the progress "
			"function itself did not slow it");
	else if (isfinite(gates->control.est))
		load_is(gates, LOAD_UNKNOWN,
			"cannot determine whether the load has a rate of its own: give more "
			"--time");
}
