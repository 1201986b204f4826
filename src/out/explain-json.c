/* SPDX-License-Identifier: MIT */
/* Schema "sbinject.explain/1". An unknown value is null, with the reason in "unknown". */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include "explain.h"
#include "out.h"
#include "src/base/json.h"
#include "src/base/must.h"

static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *interval(struct ratio r)
{
	json_t *pair = json_must(json_array());

	json_add(pair, real(r.lo));
	json_add(pair, real(r.hi));
	return pair;
}

static json_t *measured(const char *key, const char *name, const char *value, struct ratio r,
			const char *unknown)
{
	json_t *o = json_must(json_object());

	json_put(o, key, json_string(name));
	json_put(o, value, real(unknown ? NAN : r.est));
	json_put(o, "ci", interval(unknown ? ratio_unknown : r));
	if (unknown)
		json_put(o, "unknown", json_string(unknown));
	return o;
}

static json_t *breakdown(const struct explain_result *res, const struct explain_part *part)
{
	json_t *list = json_must(json_array());

	for (int r = 0; r < EVIDENCE_REASONS; r++)
		json_add(list, measured("reason", evidence_reason(r), "ns_per_item",
					part->reason[r], res->unknown[r]));
	return list;
}

static json_t *threads(const struct explain_result *res)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < res->n_threads; i++) {
		const struct explain_thread *t = &res->thread[i];
		json_t *o = json_must(json_object());

		json_put(o, "pid", json_integer(t->pid));
		json_put(o, "tid", json_integer(t->tid));
		json_put(o, "name", t->name[0] ? json_name(t->name) : json_null());
		json_put(o, "watched", real(t->watched));
		json_put(o, "breakdown", breakdown(res, &t->part));
		json_put(o, "off_cpu_ns_per_item", real(t->part.off_cpu.est));
		json_add(list, o);
	}
	return list;
}

static json_t *counters(const struct explain_result *res)
{
	json_t *list = json_must(json_array());

	for (int i = 0; i < EVIDENCE_COUNTERS; i++)
		json_add(list, measured("counter", evidence_kinds[i].name, "per_item",
					res->counter[i], res->unknown[i]));
	return list;
}

static json_t *futex(const struct explain_futex *f)
{
	json_t *o = json_must(json_object());

	json_put(o, "ns_per_item", real(f->time.est));
	json_put(o, "ci", interval(f->time));
	json_put(o, "all_threads_ns_per_item", real(f->all.est));
	json_put(o, "waits_per_item", real(f->waits.est));
	return o;
}

static json_t *futexes(const struct explain_result *res)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < res->n_futexes; i++) {
		const struct explain_futex *f = &res->futex[i];
		json_t *o = futex(f), *callers = json_must(json_array());
		char address[32];

		snprintf(address, sizeof(address), "0x%llx", (unsigned long long)f->addr);
		for (int k = 0; k < EXPLAIN_CALLERS && f->caller[k]; k++)
			json_add(callers, json_name(f->caller[k]));
		json_put(o, "pid", json_integer(f->pid));
		json_put(o, "address", json_string(address));
		json_put(o, "symbol", json_name(f->symbol));
		json_put(o, "callers", callers);
		json_add(list, o);
	}
	return list;
}

static void put_futexes(json_t *doc, const struct explain_result *res)
{
	bool known = !res->limit.code, checked = known && isfinite(res->futexes_off_by);
	json_t *others = known ? futex(&res->futex_rest) : json_null();

	if (known)
		json_put(others, "addresses", json_integer((json_int_t)res->futexes_rest));
	json_put(doc, "futexes", known ? futexes(res) : json_null());
	json_put(doc, "futexes_other", others);
	json_put(doc, "futexes_add_up", checked ? json_boolean(res->futexes_add_up) : json_null());
	json_put(doc, "futexes_off_by", real(checked ? res->futexes_off_by : NAN));
}

static json_t *candidates(const struct explain_candidate *from, size_t n)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < n; i++) {
		const struct explain_candidate *c = &from[i];
		json_t *o = json_must(json_object());

		json_put(o, "target", json_name(c->target));
		json_put(o, "share", real(c->share.est));
		json_put(o, "ci", interval(c->share));
		json_put(o, "samples", json_integer((json_int_t)c->samples));
		json_put(o, "hookable", json_boolean(c->hookable));
		if (!c->hookable)
			json_put(o, "reason", json_name(c->why));
		json_add(list, o);
	}
	return list;
}

static void put_candidates(json_t *doc, const struct explain_result *res)
{
	bool known = !res->samples_limit.code;

	json_put(doc, "candidates",
		 known ? candidates(res->candidate, res->n_candidates) : json_null());
	if (!known)
		json_put(doc, "candidates_reason", json_name(res->samples_limit.what));
	json_put(doc, "samples", known ? json_integer((json_int_t)res->samples) : json_null());
	json_put(doc, "samples_in_no_function",
		 known ? json_integer((json_int_t)res->samples_nowhere) : json_null());
	json_put(doc, "samples_in_interpreters",
		 known ? json_integer((json_int_t)res->samples_interpreter) : json_null());
	json_put(doc, "waits", res->looks ? candidates(res->wait, res->n_waits) : json_null());
	json_put(doc, "looks", res->looks ? json_integer((json_int_t)res->looks) : json_null());
	json_put(doc, "samples_in_kernel", json_boolean(known && !res->samples_user_only));
	json_put(doc, "samples_lost", json_integer((json_int_t)res->samples_lost));
	json_put(doc, "threads_unsampled", json_integer((json_int_t)res->threads_unsampled));
	json_put(doc, "sweep", json_name(res->sweep));
	if (!res->sweep)
		json_put(doc, "sweep_reason",
			 json_string(known ? res->sweep_why : "there are no samples"));
}

static json_t *limit_of(const struct explain_result *res)
{
	json_t *o;

	if (!res->limit.code)
		return json_null();
	o = json_must(json_object());
	json_put(o, "reason", json_name(res->limit.what));
	json_put(o, "remedy", json_name(err_remedy(&res->limit)));
	return o;
}

static void put_check(json_t *doc, const struct explain_result *res)
{
	bool checked = isfinite(res->off_by);
	double sum = 0;

	for (int r = 0; r < EVIDENCE_REASONS; r++)
		sum += res->whole.reason[r].est;
	json_put(doc, "sum_ns_per_item", real(sum));
	json_put(doc, "adds_up", checked ? json_boolean(res->adds_up) : json_null());
	json_put(doc, "off_by", real(res->off_by));
	if (!checked)
		json_put(doc, "adds_up_reason",
			 json_string(res->limit.code ? "not all parts are known" :
						       "no thread lived all the time"));
}

static json_t *words(int argc, char **argv)
{
	json_t *list = json_must(json_array());

	for (int i = 0; i < argc; i++)
		json_add(list, json_name(argv[i]));
	return list;
}

static json_t *quota(const struct quota_use *q)
{
	json_t *o;

	if (!q->group)
		return json_must(json_null());
	o = json_must(json_object());
	json_put(o, "group", json_name(q->group));
	json_put(o, "periods", json_integer((json_int_t)q->periods));
	json_put(o, "used_up", json_integer((json_int_t)q->used_up));
	json_put(o, "throttled_ns", json_integer((json_int_t)q->ns));
	return o;
}

char *out_explain_text(const struct explain_result *res, int argc, char **argv)
{
	json_t *doc = json_must(json_object());
	char *text;

	json_put(doc, "schema", json_string("sbinject.explain/1"));
	json_put(doc, "version", json_string(SB_VERSION));
	json_put(doc, "argv", words(argc, argv));
	json_put(doc, "source", json_string(res->limit.code ? "proc" : "bpf"));
	json_put(doc, "limit", limit_of(res));
	json_put(doc, "progress", json_name(res->progress));
	json_put(doc, "item", json_string(res->progress ? "item" : "second"));
	json_put(doc, "time_s", real(res->time_s));
	json_put(doc, "items", real(res->items));
	json_put(doc, "blocks", json_integer((json_int_t)res->blocks));
	json_put(doc, "ended_early", json_boolean(res->ended_early));
	json_put(doc, "time_per_item_ns", real(res->time_per_item.est));
	json_put(doc, "time_per_item_ci", interval(res->time_per_item));
	json_put(doc, "breakdown", breakdown(res, &res->whole));
	json_put(doc, "off_cpu_ns_per_item", real(res->whole.off_cpu.est));
	put_check(doc, res);
	json_put(doc, "threads", real(res->threads));
	json_put(doc, "threads_idle", json_integer((json_int_t)res->idle));
	json_put(doc, "sample", json_integer(res->sample));
	json_put(doc, "hardware", hardware_json(&res->hardware));
	json_put(doc, "threads_lost", json_integer((json_int_t)res->lost));
	json_put(doc, "quota", quota(&res->quota));
	json_put(doc, "by_thread", threads(res));
	json_put(doc, "counters", counters(res));
	put_futexes(doc, res);
	put_candidates(doc, res);
	text = json_document(doc, true);
	json_decref(doc);
	return text;
}

int out_explain_json(const char *path, const struct explain_result *res, int argc, char **argv,
		     struct sb_err *err)
{
	char *text = out_explain_text(res, argc, argv);
	int ret = out_document(path, text, err);

	free(text);
	return ret;
}
