/* SPDX-License-Identifier: MIT */
/* The evidence of a sweep in schema "sbinject.sweep/1"; counters are named as in a run's. */
#include <math.h>
#include "src/base/json.h"
#include "src/base/must.h"
#include "sweep-changes.h"
#include "sweep-words.h"

static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *interval(struct sweep_estimate e, double unit)
{
	json_t *pair = json_must(json_array());

	json_add(pair, real(e.lo * unit));
	json_add(pair, real(e.hi * unit));
	return pair;
}

static json_t *groups(const struct sides_about *sides)
{
	json_t *list = json_must(json_array());

	for (int i = 0; i < GROUP_COUNT; i++)
		if (sides->group[i])
			json_add(list, json_string(evidence_groups[i]));
	return list;
}

json_t *out_sweep_evidence_json(const struct sweep_result *res, const struct out_sweep_about *about)
{
	const struct sides_about *sides = about->sides;
	json_t *o;

	if (!sides || (!sides->read && !sides->limit.code))
		return json_must(json_null());
	o = json_must(json_object());
	json_put(o, "source", sides->read ? json_string(sides->bpf ? "bpf" : "proc") : json_null());
	json_put(o, "limit", sides->limit.code ? json_name(sides->limit.what) : json_null());
	json_put(o, "remedy",
		 sides->limit.code ? json_name(err_remedy(&sides->limit)) : json_null());
	json_put(o, "threads_lost", json_integer((json_int_t)sides->lost));
	json_put(o, "sample", sides->read ? json_integer(sides->sample) : json_null());
	json_put(o, "hardware", hardware_json(&sides->hardware));
	json_put(o, "groups", groups(sides));
	json_put(o, "family", json_integer((json_int_t)res->n_tests));
	return o;
}

static json_t *change(const struct sweep_change *c)
{
	json_t *o = json_must(json_object());

	json_put(o, "sham", real(c->sham));
	json_put(o, "dose", real(c->dose));
	json_put(o, "delta", real(c->delta.est));
	json_put(o, "delta_ci", interval(c->delta, 1));
	json_put(o, "per_injected_us", real(1e3 * c->slope.est));
	json_put(o, "per_injected_us_ci", interval(c->slope, 1e3));
	json_put(o, "p_random", real(c->p_random));
	json_put(o, "p_adjusted", real(c->p_adjusted));
	json_put(o, "significant", json_boolean(c->significant));
	return o;
}

static json_t *futex_change(const struct sides_futex_change *c)
{
	json_t *o = json_must(json_object()), *pair = json_must(json_array());

	json_add(pair, real(c->lo));
	json_add(pair, real(c->hi));
	json_put(o, "sham", real(c->sham));
	json_put(o, "dose", real(c->dose));
	json_put(o, "delta", real(c->delta));
	json_put(o, "delta_ci", pair);
	json_put(o, "p_adjusted", real(c->p_adjusted));
	json_put(o, "significant", json_boolean(c->significant));
	return o;
}

/* Of a target; null without BPF. */
static json_t *futexes(const struct out_sweep_about *about, size_t target)
{
	const struct sides_about *sides = about->sides;
	json_t *list;

	if (!sides || !sides->bpf)
		return json_must(json_null());
	list = json_must(json_array());
	for (size_t i = 0; i < sides->n_futexes; i++) {
		const struct sides_futex *f = &sides->futex[i];
		json_t *o, *callers;
		char address[32];

		if (f->target != target)
			continue;
		o = json_must(json_object());
		callers = json_must(json_array());
		snprintf(address, sizeof(address), "0x%llx", (unsigned long long)f->addr);
		for (int k = 0; k < SIDES_CALLERS && f->caller[k]; k++)
			json_add(callers, json_name(f->caller[k]));
		json_put(o, "pid", json_integer(f->pid));
		json_put(o, "address", json_string(address));
		json_put(o, "symbol", json_name(f->symbol));
		json_put(o, "callers", callers);
		json_put(o, "share", real(f->share));
		json_put(o, "delayed", futex_change(&f->change[SIDE_DELAYED]));
		json_put(o, "others", futex_change(&f->change[SIDE_OTHERS]));
		json_add(list, o);
	}
	return list;
}

json_t *out_sweep_changes_json(const struct sweep_result *res, const struct sweep_target *target,
			       const struct out_sweep_about *about)
{
	char sentence[OUT_SENTENCES][OUT_SENTENCE];
	json_t *o, *list;
	size_t n;

	if (!target->change)
		return json_must(json_null());
	o = json_must(json_object());
	list = json_must(json_array());
	n = out_sweep_words(res, target, about, sentence);
	for (size_t i = 0; i < n; i++)
		json_add(list, json_name(sentence[i]));
	json_put(o, "explanation", list);
	json_put(o, "x_ns", real(target->n_doses ? target->dose[target->n_doses - 1].x_ns : NAN));
	json_put(o, "futexes", futexes(about, (size_t)(target - res->target)));
	for (size_t side = 0; side < SIDE_COUNT; side++) {
		json_t *of = json_must(json_object());

		for (size_t i = 0; i < res->n_counters; i++) {
			const struct sweep_change *c = &target->change[side * res->n_counters + i];

			json_put(of, sides_name(i),
				 isnan(c->sham) ? json_must(json_null()) : change(c));
		}
		json_put(o, out_sweep_side((enum sweep_side)side), of);
	}
	return o;
}

json_t *out_sweep_counters_json(const struct sweep_result *res, const struct sweep_window *win)
{
	json_t *o;

	if (!win->counter)
		return json_must(json_null());
	o = json_must(json_object());
	for (size_t side = 0; side < SIDE_COUNT; side++) {
		json_t *of = json_must(json_object());

		for (size_t i = 0; i < res->n_counters; i++)
			json_put(of, sides_name(i), real(win->counter[side * res->n_counters + i]));
		json_put(o, out_sweep_side((enum sweep_side)side), of);
	}
	return o;
}
