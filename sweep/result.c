/* SPDX-License-Identifier: MIT */
#include "result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "src/base/must.h"

static const char *const verdict_names[VERDICT_COUNT] = {
	[VERDICT_CRITICAL] = "CRITICAL",
	[VERDICT_PARTIAL] = "PARTIAL",
	[VERDICT_HIDDEN] = "HIDDEN",
	[VERDICT_SLACK] = "SLACK",
	[VERDICT_INCONCLUSIVE] = "INCONCLUSIVE",
	[VERDICT_NOT_CALLED] = "NOT CALLED",
	[VERDICT_INVALID] = "INVALID",
};
static const char *const arm_names[ARM_COUNT] = { "off", "sham", "dose" };
static const char *const stage_names[STAGE_COUNT] = {
	[STAGE_WARMUP] = "warm-up",  [STAGE_PILOT] = "pilot",	[STAGE_OWN] = "own time",
	[STAGE_CONTROL] = "control", [STAGE_SCREEN] = "screen", [STAGE_ESCALATE] = "escalate",
	[STAGE_MAIN] = "main",	     [STAGE_HOLD] = "hold",
};
static const char *const slack_names[SLACK_COUNT] = {
	[SLACK_UNKNOWN] = "unknown", [SLACK_NONE] = "none",	[SLACK_FOUND] = "found",
	[SLACK_BRACKET] = "bracket", [SLACK_BEYOND] = "beyond",
};
static const char *const load_names[LOAD_COUNT] = { "unknown", "closed", "open" };

static const char *name_of(const char *const *names, unsigned int i, unsigned int n)
{
	return i < n ? names[i] : "?";
}

const char *sweep_verdict_name(enum sweep_verdict verdict)
{
	return name_of(verdict_names, verdict, VERDICT_COUNT);
}

const char *sweep_arm_name(enum sweep_arm arm)
{
	return name_of(arm_names, arm, ARM_COUNT);
}

const char *sweep_stage_name(enum sweep_stage stage)
{
	return name_of(stage_names, stage, STAGE_COUNT);
}

const char *sweep_slack_name(enum sweep_slack_kind kind)
{
	return name_of(slack_names, kind, SLACK_COUNT);
}

const char *sweep_load_name(enum sweep_load load)
{
	return name_of(load_names, load, LOAD_COUNT);
}

static void target_init(struct sweep_target *target)
{
	target->kappa = target->kappa_beyond = target->kappa_robust = SWEEP_UNKNOWN;
	target->slack_ns = target->gain_ceiling_ns = target->hits_change = SWEEP_UNKNOWN;
	target->calls.behind = target->calls.kappa = SWEEP_UNKNOWN;
	target->inclusive_ns = target->range[0] = target->range[1] = SWEEP_UNKNOWN;
	target->unadjusted = SWEEP_UNKNOWN;
	target->adjusted_width = NAN;
	target->mean = (struct sweep_quantile){ .share = NAN,
						.sham_ns = SWEEP_UNKNOWN,
						.dose_ns = NAN,
						.delta_ns = SWEEP_UNKNOWN,
						.slope = SWEEP_UNKNOWN };
	target->hold = (struct sweep_hold){ NAN, NAN, SWEEP_UNKNOWN, false };
	target->queue = (struct sweep_queue){
		NAN, NAN, NAN, NAN, NAN, NAN, .delta_aicc = NAN, .most_ns = NAN
	};
	target->p_none = target->p_felt = target->kappa_se = target->df = target->p_random =
		target->p_adjusted = NAN;
	target->dose_given = target->mde = target->delta_aicc = target->t0_ns = target->plain_ns =
		target->hits_per_item = target->lanes = target->last_delay_ns = NAN;
	target->method = "";
	target->verdict = VERDICT_INCONCLUSIVE;
}

struct sweep_result *sweep_result_new(size_t n_targets)
{
	struct sweep_result *res = must_calloc(1, sizeof(*res));

	res->target = must_calloc(n_targets, sizeof(*res->target));
	res->n_targets = n_targets;
	for (size_t i = 0; i < n_targets; i++)
		target_init(&res->target[i]);
	res->time_s = res->time_needed_s = res->period_ns = NAN;
	res->window_s = res->autocorrelation_s = NAN;
	res->gates.aa = res->gates.sham_ns = res->gates.control = SWEEP_UNKNOWN;
	res->adjust_explained = NAN;
	res->gates.aa_p = res->gates.carry_t = NAN;
	res->gates.lane_mode = "";
	return res;
}

void sweep_plan_free(struct sweep_plan *plan)
{
	for (size_t i = 0; i < plan->n_targets; i++)
		free(plan->target[i].delay_ns);
	free(plan->target);
	*plan = (struct sweep_plan){ 0 };
}

void sweep_plan_copy(struct sweep_plan *to, const struct sweep_plan *from)
{
	*to = *from;
	to->target = must_calloc(from->n_targets, sizeof(*to->target));
	for (size_t i = 0; i < from->n_targets; i++) {
		struct sweep_planned *target = &to->target[i];
		size_t size = from->target[i].n_doses * sizeof(*target->delay_ns);

		*target = from->target[i];
		target->delay_ns = memcpy(must_calloc(1, size), from->target[i].delay_ns, size);
	}
}

void sweep_result_free(struct sweep_result *res)
{
	if (!res)
		return;
	for (size_t i = 0; i < res->n_targets; i++) {
		struct sweep_target *target = &res->target[i];

		for (size_t p = 0; p < target->n_parts; p++)
			free(target->part[p].name);
		free(target->part);
		free(target->change);
		free(target->dose);
		free(target->spec);
	}
	for (size_t i = 0; i < res->n_windows; i++)
		free(res->window[i].counter);
	for (size_t i = 0; i < res->n_warnings; i++)
		free(res->warning[i]);
	sweep_plan_free(&res->plan);
	free(res->warning);
	free(res->window);
	free(res->target);
	free(res);
}

void sweep_result_warn(struct sweep_result *res, const char *fmt, ...)
{
	char *line = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&line, fmt, ap) < 0)
		abort();
	va_end(ap);
	res->warning = must_realloc(res->warning, (res->n_warnings + 1) * sizeof(char *));
	res->warning[res->n_warnings++] = line;
}

int sweep_exit_status(const struct sweep_result *res)
{
	if (res->gates.unproven || !res->n_targets)
		return 6;
	for (size_t i = 0; i < res->n_targets; i++) {
		enum sweep_verdict verdict = res->target[i].verdict;

		if (verdict == VERDICT_INCONCLUSIVE || verdict == VERDICT_INVALID)
			return 6;
	}
	return 0;
}
