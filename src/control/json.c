/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <stdlib.h>
#include <string.h>
#include "elf/symbol.h"
#include "src/result/times.h"

static json_t *named_target(size_t index, const char *text, pid_t pid)
{
	json_t *o = json_must(json_object());

	json_put(o, "index", json_integer((json_int_t)index));
	json_put(o, "target", json_name(text));
	if (pid)
		json_put(o, "pid", json_integer(pid));
	return o;
}

static void put_counts(json_t *o, const char *state, const struct result_counts *counts,
		       size_t untimed)
{
	json_put(o, "state", json_string(state));
	json_put(o, "hits", json_integer((json_int_t)counts->hits));
	json_put(o, "delayed", json_integer((json_int_t)counts->delayed));
	json_put(o, "injected_ns", json_integer((json_int_t)counts->injected_ns));
	json_put(o, "overrun_ns", json_integer((json_int_t)counts->overrun_ns));
	if (untimed)
		json_put(o, "untimed", json_integer((json_int_t)untimed));
}

json_t *control_target(const struct session_target *t, size_t index)
{
	json_t *o = named_target(index, t->spec->text, t->spec->pid);

	json_put(o, "delay_ns", json_integer((json_int_t)t->delay_ns));
	json_put(o, "every", json_integer((json_int_t)t->every));
	put_counts(o, t->pending ? "pending" : t->open ? "on" : "off", &t->counts, t->untimed);
	return o;
}

json_t *control_ended_target(const struct result_target *t, size_t index)
{
	json_t *o = named_target(index, t->spec, t->pid);

	json_put(o, "delay_ns", json_integer((json_int_t)t->delay_ns));
	json_put(o, "every", json_integer((json_int_t)t->every));
	put_counts(o, t->outcome == OUTCOME_PENDING ? "pending" : "off", &t->counts, t->n_untimed);
	if (t->times.known)
		json_put(o, "spans", times_json(&t->times, false));
	return o;
}

static json_t *function_json(const struct session_function *f)
{
	char *name = symbol_shown(f->symbol);
	json_t *o = json_must(json_object());

	json_put(o, "module", json_name(f->module));
	json_put(o, "name", json_name(name ? name : f->symbol));
	json_put(o, "hits", json_integer((json_int_t)f->hits));
	free(name);
	return o;
}

void control_functions(const struct backend *b, struct session_core *s, size_t index,
		       json_t *target)
{
	struct session_function *list = NULL;
	size_t n = b->functions ? b->functions(s, index, &list) : 0;
	json_t *array;

	if (!list)
		return;
	array = json_must(json_array());
	for (size_t i = 0; i < n; i++)
		json_add(array, function_json(&list[i]));
	free(list);
	json_put(target, "functions", array);
}

void control_times(const struct backend *b, struct session_core *s, size_t index, bool histogram,
		   json_t *target)
{
	struct result_times times = { 0 };

	if (b->times)
		b->times(s, index, &times);
	if (times.known)
		json_put(target, "spans", times_json(&times, histogram));
	free(times.bucket);
}
