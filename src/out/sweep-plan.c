/* SPDX-License-Identifier: MIT */
/* The plan of a sweep, before its blocks begin: lines for a terminal, and the same as JSON. */
#include "sweep-plan.h"
#include <inttypes.h>
#include <math.h>
#include "grid.h"
#include "out.h"
#include "src/base/json.h"

static void print_whole(FILE *to, const struct sweep_plan *plan)
{
	char window[32], guard[32];
	bool several = plan->n_targets > 1;

	fprintf(to, "plan: %zu target%s", plan->n_targets, several ? "s" : "");
	if (several && plan->groups == 1)
		fputs(" in the same blocks", to);
	else if (several)
		fprintf(to, " in %zu groups that share blocks", plan->groups);
	if (isnan(plan->window_s)) {
		fprintf(to, ": %zu runs of each arm, %zu in all", plan->blocks, plan->windows);
	} else {
		fprintf(to, ": %zu blocks of each, windows of %s", plan->blocks,
			out_time(plan->window_s * 1e9, window, sizeof(window)));
		fprintf(to, " after %s, %zu blocks without delay",
			out_time(plan->guard_s * 1e9, guard, sizeof(guard)), plan->gates);
	}
	if (isfinite(plan->time_s))
		fprintf(to, "; %.0f s", plan->time_s);
	fputs("\n", to);
}

void out_sweep_plan(FILE *to, const struct sweep_plan *plan, const char *const *spec)
{
	char delay[32];

	print_whole(to, plan);
	for (size_t i = 0; i < plan->n_targets; i++) {
		const struct sweep_planned *t = &plan->target[i];

		fputs("plan: ", to);
		out_shown(to, spec[t->target]);
		for (size_t k = 0; k < t->n_doses; k++)
			fprintf(to, " %s", out_time((double)t->delay_ns[k], delay, sizeof(delay)));
		if (isfinite(t->half_width))
			fprintf(to, ", kappa to about +- %.2g", t->half_width);
		fputs("\n", to);
	}
}

static json_t *real(double v)
{
	return isfinite(v) ? json_must(json_real(v)) : json_null();
}

static json_t *planned_json(const struct sweep_planned *t, const struct sweep_result *res)
{
	json_t *o = json_must(json_object()), *list = json_must(json_array());
	bool row = t->target >= 0 && (size_t)t->target < res->n_targets;

	json_put(o, "spec", row ? json_name(res->target[t->target].spec) : json_null());
	for (size_t i = 0; i < t->n_doses; i++)
		json_add(list, json_integer((json_int_t)t->delay_ns[i]));
	json_put(o, "doses_ns", list);
	json_put(o, "half_width", real(t->half_width));
	return o;
}

json_t *out_sweep_plan_json(const struct sweep_result *res)
{
	const struct sweep_plan *plan = &res->plan;
	json_t *o, *list;

	if (!plan->n_targets)
		return json_null();
	o = json_must(json_object());
	list = json_must(json_array());
	json_put(o, "groups", json_integer((json_int_t)plan->groups));
	json_put(o, "blocks", json_integer((json_int_t)plan->blocks));
	json_put(o, "gates", json_integer((json_int_t)plan->gates));
	json_put(o, "windows", json_integer((json_int_t)plan->windows));
	json_put(o, "window_s", real(plan->window_s));
	json_put(o, "guard_s", real(plan->guard_s));
	json_put(o, "time_s", real(plan->time_s));
	for (size_t i = 0; i < plan->n_targets; i++)
		json_array_append_new(list, planned_json(&plan->target[i], res));
	json_put(o, "targets", list);
	return o;
}
