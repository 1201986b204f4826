/* SPDX-License-Identifier: MIT */
/* Schema "sbinject.sweep/1": written, and read back for compare. An unknown value is null with a
 * reason. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sweep.h"
#include "host.h"
#include "out.h"
#include "sweep-adjust.h"
#include "sweep-changes.h"
#include "sweep-gain.h"
#include "sweep-headline.h"
#include "sweep-plan.h"
#include "src/base/json.h"
#include "src/base/must.h"

#define SCHEMA "sbinject.sweep/1"

static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *integer(double v)
{
	return isfinite(v) ? json_integer((json_int_t)llround(v)) : json_null();
}

static json_t *interval(struct sweep_estimate e)
{
	json_t *pair = json_must(json_array());

	json_add(pair, real(e.lo));
	json_add(pair, real(e.hi));
	return pair;
}

static void put_estimate(json_t *o, const char *name, struct sweep_estimate e, const char *why)
{
	char key[64];

	json_put(o, name, real(e.est));
	snprintf(key, sizeof(key), "%s_ci", name);
	json_put(o, key, interval(e));
	snprintf(key, sizeof(key), "%s_reason", name);
	if (!isfinite(e.est))
		json_put(o, key, json_name(why && *why ? why : "not known"));
}

static json_t *held_json(const struct sweep_hold *hold)
{
	json_t *o;

	if (!(hold->time_s > 0))
		return json_must(json_null());
	o = json_must(json_object());
	json_put(o, "time_s", real(hold->time_s));
	json_put(o, "x_ns", real(hold->x_ns));
	put_estimate(o, "delta_ns", hold->delta_ns, NULL);
	json_put(o, "late", json_boolean(hold->late));
	return o;
}

static json_t *dose_json(const struct sweep_dose *d)
{
	json_t *o = json_must(json_object());

	json_put(o, "delay_ns", json_integer((json_int_t)d->delay_ns));
	json_put(o, "x_ns", real(d->x_ns));
	put_estimate(o, "t_ns", d->t_ns, NULL);
	put_estimate(o, "delta_ns", d->delta_ns, NULL);
	json_put(o, "hits_per_item", real(d->hits_per_item));
	return o;
}

static json_t *part_json(const struct sweep_part *p)
{
	json_t *o = json_must(json_object());

	json_put(o, "name", json_name(p->name));
	json_put(o, "lanes", json_integer((json_int_t)lround(p->lanes)));
	json_put(o, "x_ns", real(p->x_ns));
	put_estimate(o, "kappa", p->kappa, NULL);
	return o;
}

static json_t *bounds(const double *bucket)
{
	json_t *pair = json_must(json_array());

	json_add(pair, real(bucket[0]));
	json_add(pair, real(bucket[1]));
	return pair;
}

static json_t *quantile_json(const struct sweep_quantile *q)
{
	json_t *o = json_must(json_object());

	json_put(o, "share", real(q->share));
	put_estimate(o, "sham_ns", q->sham_ns, q->reason);
	json_put(o, "dose_ns", real(q->dose_ns));
	put_estimate(o, "delta_ns", q->delta_ns, q->reason);
	put_estimate(o, "per_injected", q->slope, q->reason);
	json_put(o, "sham_bucket_ns", bounds(q->bucket_ns[0]));
	json_put(o, "dose_bucket_ns", bounds(q->bucket_ns[1]));
	json_put(o, "bound_ns", real(q->bound_ns));
	json_put(o, "slower", real(q->slower));
	put_estimate(o, "slower_delta", q->slower_delta, q->reason);
	return o;
}

static json_t *mean_json(const struct sweep_quantile *q)
{
	json_t *o = json_must(json_object());

	json_put(o, "sham_ns", real(q->sham_ns.est));
	json_put(o, "dose_ns", real(q->dose_ns));
	put_estimate(o, "delta_ns", q->delta_ns, NULL);
	put_estimate(o, "per_injected", q->slope, NULL);
	return o;
}

static json_t *quantiles_json(const struct sweep_target *t)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < t->n_quantiles; i++)
		json_add(list, quantile_json(&t->quantile[i]));
	return list;
}

static json_t *queue_json(const struct sweep_queue *q)
{
	json_t *o = json_must(json_object());

	json_put(o, "saturated", json_boolean(q->saturated));
	json_put(o, "saturated_reason", q->saturated ? json_name(q->reason) : json_null());
	json_put(o, "in_system", real(q->in_system));
	json_put(o, "in_system_dose", real(q->in_system_dose));
	json_put(o, "completed_s", real(q->completed_s));
	json_put(o, "completed_s_dose", real(q->completed_s_dose));
	json_put(o, "utilisation", real(q->utilisation));
	json_put(o, "delta_aicc", real(q->delta_aicc));
	json_put(o, "shaped", json_boolean(q->shaped));
	json_put(o, "most_ns", real(q->most_ns));
	json_put(o, "utilisation_dose", real(q->utilisation_dose));
	return o;
}

static json_t *remedy_json(const struct sweep_remedy *remedy)
{
	json_t *o = json_must(json_object());

	json_put(o, "option", json_string(remedy->option));
	json_put(o, "value", *remedy->value ? json_string(remedy->value) : json_null());
	json_put(o, "longer", json_boolean(remedy->longer));
	return o;
}

static void put_lists(json_t *o, const struct sweep_target *t)
{
	json_t *list = json_must(json_array());

	for (size_t i = 1; i < t->n_doses; i++)
		json_add(list, json_integer((json_int_t)t->dose[i].delay_ns));
	json_put(o, "doses_ns", list);
	list = json_must(json_array());
	for (size_t i = 0; i < t->n_doses; i++)
		json_array_append_new(list, dose_json(&t->dose[i]));
	json_put(o, "doses", list);
	list = json_must(json_array());
	for (size_t i = 0; i < t->n_parts; i++)
		json_array_append_new(list, part_json(&t->part[i]));
	json_put(o, "parts", list);
}

static json_t *target_json(const struct sweep_target *t, json_t *evidence)
{
	json_t *o = json_must(json_object());

	json_put(o, "spec", json_name(t->spec));
	json_put(o, "verdict", json_name(sweep_verdict_name(t->verdict)));
	json_put(o, "reason", json_name(t->reason));
	json_put(o, "remedy", t->remedy.option ? remedy_json(&t->remedy) : json_null());
	put_estimate(o, "kappa", t->kappa, t->reason);
	put_estimate(o, "kappa_unadjusted", t->unadjusted, "nothing was adjusted for");
	json_put(o, "adjusted_width", real(t->adjusted_width));
	put_estimate(o, "kappa_beyond", t->kappa_beyond, "there is no slack");
	put_estimate(o, "kappa_robust", t->kappa_robust, NULL);
	json_put(o, "robust_agrees", json_boolean(t->robust_agrees));
	json_put(o, "method", json_name(t->method));
	json_put(o, "kappa_se", real(t->kappa_se));
	json_put(o, "df", real(t->df));
	json_put(o, "blocks", json_integer((json_int_t)t->blocks));
	json_put(o, "p_random", real(t->p_random));
	json_put(o, "p_adjusted", real(t->p_adjusted));
	json_put(o, "mde", real(t->mde));
	json_put(o, "dose_given", real(t->dose_given));
	json_put(o, "slack_kind", json_name(sweep_slack_name(t->slack_kind)));
	put_estimate(o, "slack_ns", t->slack_ns, t->slack_reason);
	json_put(o, "last_delay_ns", real(t->last_delay_ns));
	json_put(o, "delta_aicc", real(t->delta_aicc));
	put_estimate(o, "inclusive_ns", t->inclusive_ns, t->inclusive_reason);
	put_estimate(o, "gain_ceiling_ns", t->gain_ceiling_ns, t->gain_reason);
	put_estimate(o, "gain_share", out_sweep_gain_share(t),
		     out_sweep_proven(t) ? t->gain_reason : "the verdict proves nothing");
	json_put(o, "t0_ns", real(t->t0_ns));
	json_put(o, "plain_ns", real(t->plain_ns));
	json_put(o, "hits", json_integer((json_int_t)t->hits));
	json_put(o, "hits_per_item", real(t->hits_per_item));
	put_estimate(o, "hits_change", t->hits_change, NULL);
	json_put(o, "hits_differ", json_boolean(t->hits_differ));
	put_estimate(o, "calls_behind", t->calls.behind, NULL);
	put_estimate(o, "calls_kappa", t->calls.kappa, NULL);
	json_put(o, "calls_ahead", json_boolean(t->calls.ahead));
	json_put(o, "settle_s", real(t->settle_s));
	json_put(o, "held", held_json(&t->hold));
	json_put(o, "screened", json_boolean(t->screened));
	json_put(o, "lanes", real(t->lanes));
	json_put(o, "lanes_unclear", json_boolean(t->lanes_unclear));
	put_estimate(o, "kappa_least_lanes", t->range[0], NULL);
	put_estimate(o, "kappa_most_lanes", t->range[1], NULL);
	put_lists(o, t);
	json_put(o, "mean", t->n_quantiles ? mean_json(&t->mean) : json_null());
	json_put(o, "quantiles", t->n_quantiles ? quantiles_json(t) : json_null());
	json_put(o, "queue", t->n_quantiles ? queue_json(&t->queue) : json_null());
	json_put(o, "evidence", evidence);
	return o;
}

static json_t *gates_json(const struct sweep_gates *g)
{
	json_t *o = json_must(json_object());

	put_estimate(o, "aa", g->aa, "no A/A blocks were run");
	json_put(o, "aa_p", real(g->aa_p));
	json_put(o, "unproven", json_boolean(g->unproven));
	put_estimate(o, "sham_ns", g->sham_ns, "OFF and SHAM were not both run");
	if (g->control_asked) {
		put_estimate(o, "control", g->control, NULL);
		json_put(o, "control_ok", json_boolean(g->control_ok));
	}
	json_put(o, "carry_t", real(g->carry_t));
	json_put(o, "carry_over", json_boolean(g->carry_over));
	json_put(o, "lanes", json_integer((json_int_t)lround(g->lanes)));
	json_put(o, "roles", json_integer((json_int_t)g->roles));
	json_put(o, "lane_mode", json_name(g->lane_mode));
	json_put(o, "load", json_name(sweep_load_name(g->load)));
	json_put(o, "load_reason", json_name(g->load_reason));
	return o;
}

static json_t *amounts_json(const struct sweep_result *res, const struct sweep_window *w)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < res->n_adjust; i++)
		json_add(list, real(w->amount[i]));
	return list;
}

static json_t *window_json(const struct sweep_result *res, const struct sweep_window *w)
{
	json_t *o = json_must(json_object());

	json_put(o, "stage", json_name(sweep_stage_name(w->stage)));
	json_put(o, "arm", json_name(sweep_arm_name(w->arm)));
	json_put(o, "target", json_integer(w->target));
	json_put(o, "experiment", json_integer(w->experiment));
	json_put(o, "block", json_integer(w->block));
	json_put(o, "dose", json_integer(w->dose));
	json_put(o, "delay_ns", json_integer((json_int_t)w->delay_ns));
	json_put(o, "end_s", real((double)w->end_ns / 1e9));
	json_put(o, "time_s", real((double)w->time_ns / 1e9));
	json_put(o, "items", real(w->items));
	json_put(o, "hits", json_integer((json_int_t)w->hits));
	json_put(o, "t_ns", real(w->t_ns));
	json_put(o, "x_ns", real(w->x_ns));
	if (!isnan(w->response_count)) {
		json_put(o, "response_sum_ns", real(w->response_sum_ns));
		json_put(o, "response_count", real(w->response_count));
	}
	if (res->n_adjust)
		json_put(o, "adjust", amounts_json(res, w));
	if (w->counter)
		json_put(o, "evidence", out_sweep_counters_json(res, w));
	return o;
}

static json_t *summary_json(const struct sweep_result *res, const struct out_sweep_about *about)
{
	json_t *list = json_must(json_array());
	struct out_headline h;

	out_sweep_headline(res, about, &h);
	for (size_t i = 0; i < h.n; i++)
		json_add(list, json_name(h.line[i]));
	out_headline_free(&h);
	return list;
}

static void put_about(json_t *doc, const struct out_sweep_about *about)
{
	json_t *argv = json_must(json_array());
	struct out_host host;
	char when[64];

	out_host(&host);
	for (int i = 0; i < about->argc; i++)
		json_add(argv, json_name(about->argv[i]));
	json_put(doc, "argv", argv);
	json_put(doc, "ended",
		 about->ended ? json_string(out_when(about->ended, when, sizeof(when))) :
				json_null());
	json_put(doc, "host", json_name(host.name));
	json_put(doc, "machine", json_name(host.kernel.machine));
	json_put(doc, "cpu", host.cpu[0] ? json_name(host.cpu) : json_null());
	json_put(doc, "kernel", json_name(host.kernel.release));
	json_put(doc, "cpus", json_integer(host.cpus));
	json_put(doc, "cpus_busy", real(about->busy));
	json_put(doc, "cpus_steal", real(about->steal));
	json_put(doc, "progress", json_name(about->progress));
	json_put(doc, "response", about->response ? json_name(about->response) : json_null());
}

int out_sweep_json(const char *path, const struct sweep_result *res,
		   const struct out_sweep_about *about, struct sb_err *err)
{
	json_t *doc = json_must(json_object()), *list = json_must(json_array());
	char *out;
	int ret;

	json_put(doc, "schema", json_string(SCHEMA));
	json_put(doc, "version", json_string(SB_VERSION));
	put_about(doc, about);
	json_put(doc, "quantile", about->quantile > 0 ? json_real(about->quantile) : json_null());
	json_put(doc, "seed", json_integer((json_int_t)res->seed));
	json_put(doc, "threshold", real(res->threshold));
	json_put(doc, "runs", json_boolean(res->runs));
	json_put(doc, "ended_early", json_boolean(res->ended_early));
	json_put(doc, "time_s", real(res->time_s));
	json_put(doc, "time_needed_s", real(res->time_needed_s));
	json_put(doc, "period_ns", integer(res->period_ns));
	json_put(doc, "window_s", real(res->window_s));
	json_put(doc, "autocorrelation_s", real(res->autocorrelation_s));
	json_put(doc, "unit", json_string(out_sweep_unit(res, about)));
	json_put(doc, "summary", summary_json(res, about));
	json_put(doc, "plan", out_sweep_plan_json(res));
	json_put(doc, "gates", gates_json(&res->gates));
	json_put(doc, "adjust", out_sweep_adjust_json(res, about));
	json_put(doc, "adjust_explained", real(res->adjust_explained));
	json_put(doc, "evidence", out_sweep_evidence_json(res, about));
	for (size_t i = 0; i < res->n_targets && i < about->n_targets; i++)
		json_array_append_new(
			list, target_json(&res->target[i],
					  out_sweep_changes_json(res, &res->target[i], about)));
	json_put(doc, "targets", list);
	list = json_must(json_array());
	for (size_t i = 0; i < res->n_windows; i++)
		json_array_append_new(list, window_json(res, &res->window[i]));
	json_put(doc, "windows", list);
	list = json_must(json_array());
	for (size_t i = 0; i < res->n_warnings; i++)
		json_add(list, json_name(res->warning[i]));
	json_put(doc, "warnings", list);
	out = json_document(doc, true);
	json_decref(doc);
	ret = out_document(path, out, err);
	free(out);
	return ret;
}

/* ---- reading ---- */

static double real_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static struct sweep_estimate estimate_of(const json_t *o, const char *name)
{
	struct sweep_estimate e = { .est = real_of(o, name) };
	char key[64];
	const json_t *pair;

	snprintf(key, sizeof(key), "%s_ci", name);
	pair = json_object_get(o, key);
	e.lo = json_is_number(json_array_get(pair, 0)) ?
		       json_number_value(json_array_get(pair, 0)) :
		       NAN;
	e.hi = json_is_number(json_array_get(pair, 1)) ?
		       json_number_value(json_array_get(pair, 1)) :
		       NAN;
	return e;
}

static int name_index(const json_t *o, const char *key, int n, const char *(*name)(int i))
{
	const char *s = json_string_value(json_object_get(o, key));

	for (int i = 0; s && i < n; i++)
		if (!strcmp(s, name(i)))
			return i;
	return 0;
}

static const char *verdict_at(int i)
{
	return sweep_verdict_name((enum sweep_verdict)i);
}

static const char *slack_at(int i)
{
	return sweep_slack_name((enum sweep_slack_kind)i);
}

static void read_target(const json_t *o, struct sweep_target *t)
{
	free(t->spec);
	t->spec = json_name_of(o, "spec");
	if (!t->spec)
		t->spec = must_strdup("");
	t->kappa = estimate_of(o, "kappa");
	t->kappa_beyond = estimate_of(o, "kappa_beyond");
	t->kappa_se = real_of(o, "kappa_se");
	t->df = real_of(o, "df");
	t->slack_ns = estimate_of(o, "slack_ns");
	t->slack_kind = (enum sweep_slack_kind)name_index(o, "slack_kind", SLACK_COUNT, slack_at);
	if (t->slack_kind == SLACK_BEYOND)
		t->slack_ns.hi = INFINITY;
	t->t0_ns = real_of(o, "t0_ns");
	t->verdict = (enum sweep_verdict)name_index(o, "verdict", VERDICT_COUNT, verdict_at);
	t->blocks = (size_t)json_integer_value(json_object_get(o, "blocks"));
	t->hits = (uint64_t)json_integer_value(json_object_get(o, "hits"));
}

int out_sweep_read(const char *path, struct sweep_result **res, struct sb_err *err)
{
	json_error_t why;
	json_t *doc = json_load_file(path, 0, &why), *list;
	const char *schema = json_string_value(json_object_get(doc, "schema"));

	if (!doc)
		return err_set(err, SB_EFILE, "%s: %s (line %d)", path, why.text, why.line);
	list = json_object_get(doc, "targets");
	if (!schema || strcmp(schema, SCHEMA) != 0 || !json_is_array(list)) {
		json_decref(doc);
		err_set(err, SB_EFILE, "%s is not the result of a sweep", path);
		err_hint(err, "sbinject sweep --json FILE writes one");
		return -SB_EFILE;
	}
	*res = sweep_result_new(json_array_size(list));
	for (size_t i = 0; i < json_array_size(list); i++)
		read_target(json_array_get(list, i), &(*res)->target[i]);
	json_decref(doc);
	return 0;
}
