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

int out_explain_json(const char *path, const struct explain_result *res, int argc, char **argv,
		     struct sb_err *err)
{
	json_t *doc = json_must(json_object());
	char *text;
	int ret;

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
	json_put(doc, "threads_lost", json_integer((json_int_t)res->lost));
	json_put(doc, "by_thread", threads(res));
	json_put(doc, "counters", counters(res));
	text = must(json_dumps(doc, JSON_INDENT(2)));
	json_decref(doc);
	ret = out_document(path, text, err);
	free(text);
	return ret;
}
