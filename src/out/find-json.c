/* SPDX-License-Identifier: MIT */
/* Schema "sbinject.find/1": the documents of the steps, and what follows from them. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include "explain.h"
#include "find.h"
#include "out.h"
#include "src/base/json.h"
#include "src/base/must.h"

static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *rates_json(const struct find_rates *rates)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < rates->n; i++) {
		const struct find_rate *r = &rates->rate[i];
		json_t *o = json_must(json_object());

		json_put(o, "target", json_name(r->target));
		json_put(o, "share", real(r->share));
		json_put(o, "waits", json_boolean(r->waits));
		json_put(o, "calls", json_integer((json_int_t)r->calls));
		json_put(o, "per_s", real(r->per_s));
		json_put(o, "scatter", real(r->scatter));
		json_put(o, "steady", json_boolean(r->steady));
		json_put(o, "hook_cost", real(r->cost));
		json_put(o, "multiple_of",
			 json_name(r->multiple_of == FIND_NONE ?
					   NULL :
					   rates->rate[r->multiple_of].target));
		json_add(list, o);
	}
	return list;
}

static json_t *counters_json(const struct find_rates *rates)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < rates->n_counters; i++) {
		const struct find_rate *r = &rates->counter[i];
		json_t *o = json_must(json_object());

		json_put(o, "source", json_name(r->target));
		json_put(o, "count", json_integer((json_int_t)r->calls));
		json_put(o, "per_s", real(r->per_s));
		json_put(o, "scatter", real(r->scatter));
		json_put(o, "steady", json_boolean(r->steady));
		json_add(list, o);
	}
	return list;
}

static json_t *document_of(const char *text)
{
	json_t *doc = text ? json_loads(text, 0, NULL) : NULL;

	return doc ? doc : json_null();
}

static json_t *commands(const struct out_find *find)
{
	static const char *const name[FIND_STEPS] = { "explain", "count", "sweep" };
	json_t *o = json_must(json_object());

	for (int i = 0; i < FIND_STEPS; i++)
		json_put(o, name[i], json_name(find->command[i]));
	return o;
}

static json_t *next_json(const struct out_find *find)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < find->n_next; i++) {
		json_t *o = json_must(json_object());

		json_put(o, "reason", json_string(find->next[i].why));
		json_put(o, "command", json_name(find->next[i].command));
		json_add(list, o);
	}
	return list;
}

int out_find_json(const char *path, const struct out_find *find, struct sb_err *err)
{
	json_t *doc = json_must(json_object()), *words = json_must(json_array());
	char *explain = find->explain ? out_explain_text(find->explain, find->argc, find->argv) :
					NULL;
	char *text;
	int ret;

	for (int i = 0; i < find->argc; i++)
		json_add(words, json_name(find->argv[i]));
	json_put(doc, "schema", json_string("sbinject.find/1"));
	json_put(doc, "version", json_string(SB_VERSION));
	json_put(doc, "argv", words);
	json_put(doc, "commands", commands(find));
	json_put(doc, "explain", document_of(explain));
	json_put(doc, "rates", find->rates ? rates_json(find->rates) : json_null());
	json_put(doc, "counters",
		 find->rates && find->rates->n_counters ? counters_json(find->rates) : json_null());
	json_put(doc, "response",
		 json_name(find->rates && find->rates->response_point != FIND_NONE ?
				   find->rates->counter[find->rates->response_point].target :
				   NULL));
	json_put(doc, "progress", json_name(find->progress));
	json_put(doc, "progress_given", json_boolean(find->given));
	json_put(doc, "sweep", document_of(find->sweep));
	if (!find->sweep)
		json_put(doc, "sweep_reason", json_name(find->why));
	json_put(doc, "unhooked",
		 find->rates && find->rates->unhooked != FIND_NONE ?
			 json_integer(find->rates->unhooked) :
			 json_null());
	json_put(doc, "next", next_json(find));
	json_put(doc, "ended_early", json_boolean(find->ended_early));
	text = json_document(doc, true);
	json_decref(doc);
	free(explain);
	ret = out_document(path, text, err);
	free(text);
	return ret;
}
