/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "sample.h"

static void same_string(const char *a, const char *b)
{
	if (a && b)
		assert_string_equal(a, b);
	else
		assert_true(a == b);
}

static void same_strings(char **a, char **b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		same_string(a[i], b[i]);
}

static void same_times(const struct result_times *a, const struct result_times *b)
{
	struct result_times x = *a, y = *b;

	assert_int_equal(x.n_buckets, y.n_buckets);
	if (x.n_buckets)
		assert_memory_equal(x.bucket, y.bucket, x.n_buckets * sizeof(*x.bucket));
	x.bucket = y.bucket = NULL;
	assert_int_equal(x.n_values, y.n_values);
	for (size_t i = 0; i < x.n_values; i++) {
		const struct result_value *v = &x.value[i], *w = &y.value[i];

		assert_string_equal(v->name, w->name);
		assert_true(v->position == w->position && v->type == w->type);
		assert_true(v->offset == w->offset && v->memory == w->memory);
		assert_true(v->summed == w->summed);
		if (!v->summed)
			continue;
		assert_true(v->sum_known == w->sum_known && v->sum_calls == w->sum_calls);
		assert_true(!v->sum_known || v->sum == w->sum);
	}
	assert_true(x.known == y.known && x.own_known == y.own_known);
	assert_true(x.calls == y.calls && x.missed == y.missed);
	assert_true(x.inclusive_ns == y.inclusive_ns && x.exclusive_ns == y.exclusive_ns);
	if (x.calls)
		assert_memory_equal(&x.min_ns, &y.min_ns, 5 * sizeof(x.min_ns));
}

static void same_refused(const struct result_refused *a, const struct result_refused *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		same_string(a[i].module, b[i].module);
		same_string(a[i].symbol, b[i].symbol);
		same_string(a[i].name, b[i].name);
		same_string(a[i].reason, b[i].reason);
		assert_int_equal(a[i].n_pids, b[i].n_pids);
		assert_true(a[i].address == b[i].address);
	}
}

static void same_target(const struct result_target *a, const struct result_target *b)
{
	same_string(a->spec, b->spec);
	assert_int_equal(a->pid, b->pid);
	same_string(a->reason, b->reason);
	assert_true(a->delay_ns == b->delay_ns && a->every == b->every);
	assert_int_equal(a->outcome, b->outcome);
	assert_true(a->active_s == b->active_s);
	assert_memory_equal(&a->counts, &b->counts, sizeof(a->counts));
	assert_true(a->given.known == b->given.known && a->given.mean == b->given.mean);
	assert_true(a->given.p50 == b->given.p50 && a->given.p99 == b->given.p99);
	assert_true(!a->given.known || a->given.uncertainty == b->given.uncertainty);
	assert_true(a->given.max == b->given.max && a->procs == b->procs);
	same_string(a->given.reason, b->given.reason);
	assert_int_equal(a->n_sites, b->n_sites);
	assert_int_equal(a->n_refused, b->n_refused);
	for (size_t i = 0; i < a->n_sites; i++) {
		const struct result_site *x = &a->site[i], *y = &b->site[i];

		same_string(x->module, y->module);
		same_string(x->build_id, y->build_id);
		same_string(x->symbol, y->symbol);
		same_string(x->name, y->name);
		same_string(x->mechanism, y->mechanism);
		same_string(x->untimed, y->untimed);
		assert_true(x->address == y->address && x->size == y->size);
		assert_int_equal(x->n_pids, y->n_pids);
		if (x->n_pids)
			assert_memory_equal(x->pids, y->pids, x->n_pids * sizeof(*x->pids));
	}
	same_refused(a->refused, b->refused, a->n_refused);
	assert_int_equal(a->n_untimed, b->n_untimed);
	same_refused(a->untimed, b->untimed, a->n_untimed);
	assert_true(a->timed == b->timed);
	if (a->times.known)
		same_times(&a->times, &b->times);
}

static void same_process(const struct result_process *a, const struct result_process *b, size_t n)
{
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->generation, b->generation);
	same_string(a->comm, b->comm);
	same_string(a->exe, b->exe);
	assert_true(!a->counts == !b->counts);
	if (a->counts)
		assert_memory_equal(a->counts, b->counts, n * sizeof(*a->counts));
}

static void same_result(const struct result *a, const struct result *b)
{
	same_string(a->version, b->version);
	same_string(a->host, b->host);
	same_string(a->backend, b->backend);
	same_string(a->exit_reason, b->exit_reason);
	assert_int_equal(a->n_argv, b->n_argv);
	same_strings(a->argv, b->argv, a->n_argv);
	assert_int_equal(a->n_warnings, b->n_warnings);
	same_strings(a->warning, b->warning, a->n_warnings);
	assert_int_equal(a->n_tags, b->n_tags);
	for (size_t i = 0; i < a->n_tags; i++) {
		same_string(a->tag[i].key, b->tag[i].key);
		same_string(a->tag[i].value, b->tag[i].value);
	}
	assert_true(a->started.s == b->started.s && a->started.ns == b->started.ns);
	assert_true(a->ended.s == b->ended.s && a->ended.ns == b->ended.ns);
	assert_true(a->wall_s == b->wall_s && a->exit == b->exit);
	assert_true(a->lease_lapsed_hits == b->lease_lapsed_hits);
	assert_true(a->doorbells_lost == b->doorbells_lost && a->stalled_s == b->stalled_s);
	assert_true(a->stop_known == b->stop_known);
	assert_true(a->stop_attach_us == b->stop_attach_us);
	assert_true(a->stop_detach_us == b->stop_detach_us);
	assert_true(a->gil_known == b->gil_known);
	assert_true(a->gil_attach_us == b->gil_attach_us);
	assert_true(a->gil_detach_us == b->gil_detach_us);
	assert_int_equal(a->n_targets, b->n_targets);
	for (size_t i = 0; i < a->n_targets; i++)
		same_target(&a->target[i], &b->target[i]);
	assert_int_equal(a->n_processes, b->n_processes);
	for (size_t i = 0; i < a->n_processes; i++)
		same_process(&a->process[i], &b->process[i], a->n_targets);
}

static void round_trip(struct result *res)
{
	for (int indent = 0; indent < 2; indent++) {
		struct sb_err err = { 0 };
		struct result *again = NULL;
		char *json = result_to_json(res, indent);

		assert_true(indent == !!strchr(json, '\n'));
		assert_int_equal(result_from_json(json, &again, &err), 0);
		same_result(res, again);
		result_free(again);
		free(json);
	}
	result_free(res);
}

static void test_round_trip_loses_nothing(void **state)
{
	struct result *timed;

	(void)state;
	round_trip(result_new(0));
	round_trip(sample_plain());
	round_trip(sample_full());
	round_trip(sample_timed());
	timed = sample_timed();
	timed->target->times.inclusive_ns = UINT64_MAX;
	timed->target->times.bucket->calls = UINT64_MAX - 1;
	timed->target[1].site->untimed = sample_copy("no space");
	timed->target[1].pid = 4711;
	timed->target->times.n_values = 4;
	timed->target->times.value[0] =
		(struct result_value){ .name = "fd", .position = 1, .type = VALUE_I32 };
	timed->target->times.value[0].offset = 4;
	timed->target->times.value[1] =
		(struct result_value){ "n", 6, VALUE_U64, true, true, UINT64_MAX - 1, 7, 0, 0 };
	timed->target->times.value[2] = (struct result_value){
		.name = "b", .position = 2, .type = VALUE_BOOL, .summed = true
	};
	timed->target->times.value[3] =
		(struct result_value){ "ret", 0, VALUE_I64, true, true, 5, UINT64_MAX, 0, 0 };
	timed->target->times.value[2].memory = true;
	timed->target->times.value[2].offset = 36;
	round_trip(timed);
}

static void test_round_trip_of_extremes(void **state)
{
	struct result *res = sample_plain();

	(void)state;
	res->target->counts = (struct result_counts){ UINT64_MAX, INT64_MAX, 1ull << 63, 0 };
	res->target->delay_ns = UINT64_MAX;
	res->target->site[0].address = UINT64_MAX;
	res->target->given.mean = 0.1 + 0.2;
	res->target->active_s = 1e-300;
	res->wall_s = 1.0 / 3;
	res->exit = INT32_MIN;
	res->started = (struct timespec_ns){ 253402300799, 999999999 };
	res->ended = (struct timespec_ns){ 0, 1 };
	round_trip(res);
}

/* Every one-byte and two-byte name, UTF-8 or not. */
static void test_round_trip_of_any_bytes(void **state)
{
	struct result *res = result_new(0);

	(void)state;
	res->n_argv = 65535;
	res->argv = calloc(res->n_argv, sizeof(*res->argv));
	for (size_t i = 0; i < res->n_argv; i++) {
		char name[4] = { (char)(i + 1), (char)((i + 1) >> 8), 'x', '\0' };

		res->argv[i] = strdup(name);
	}
	round_trip(res);
}

static void test_unknown_is_null_with_a_reason(void **state)
{
	struct result *res = sample_full();
	json_t *doc, *target, *given;
	char *json;

	(void)state;
	res->wall_s = NAN;
	res->stop_known = false;
	json = result_to_json(res, false);
	doc = json_loads(json, 0, NULL);
	assert_non_null(doc);
	assert_string_equal(json_string_value(json_object_get(doc, "schema")), "sbinject.run/1");
	assert_true(json_is_null(json_object_get(doc, "wall_s")));
	assert_true(json_is_string(json_object_get(doc, "wall_s_reason")));
	assert_true(json_is_null(json_object_get(doc, "exit")));
	assert_true(json_is_string(json_object_get(doc, "exit_reason")));
	assert_true(json_is_null(json_object_get(doc, "ended")));
	assert_string_equal(json_string_value(json_object_get(doc, "started")),
			    "2026-01-02T02:50:45.000000005Z");
	assert_true(json_is_null(json_object_get(json_object_get(doc, "stop_us"), "attach")));
	assert_true(json_is_string(json_object_get(json_object_get(doc, "stop_us"), "reason")));
	target = json_array_get(json_object_get(doc, "targets"), 2);
	assert_true(json_is_null(json_object_get(target, "hits")));
	assert_true(json_is_string(json_object_get(target, "hits_reason")));
	given = json_object_get(target, "given_ns");
	assert_true(json_is_null(json_object_get(given, "p99")));
	assert_string_equal(json_string_value(json_object_get(given, "reason")), "no delayed hit");
	assert_string_equal(json_string_value(json_object_get(target, "outcome")), "pending");
	json_decref(doc);
	free(json);
	result_free(res);
}

/* One value of a good document replaced by another: refused with the way to it. */
static void damage(const char *from, const char *to, const char *says)
{
	struct result *res = sample_plain(), *again = NULL;
	char *json = result_to_json(res, false), *at = strstr(json, from), *bad;
	struct sb_err err = { 0 };

	assert_non_null(at);
	assert_true(asprintf(&bad, "%.*s%s%s", (int)(at - json), json, to, at + strlen(from)) > 0);
	assert_int_equal(result_from_json(bad, &again, &err), -SB_EFILE);
	assert_null(again);
	if (!strstr(err.what, says))
		fail_msg("'%s' does not say '%s'", err.what, says);
	free(bad);
	free(json);
	result_free(res);
}

static void test_damaged_documents(void **state)
{
	(void)state;
	damage("sbinject.run/1", "sbinject.run/2", "schema");
	damage("{", "[", "line 1");
	damage("{\"schema\"", "{\"version\":1,\"schema\"", "duplicate");
	damage("\"hits\":120034", "\"hits\":-1", "targets: 0: hits: is not a whole number");
	damage("\"hits\":120034", "\"hits\":1.5", "hits");
	damage("\"hits\":120034", "\"hits\":\"7\"", "hits");
	damage("\"hits\":120034", "\"hits\":\"18446744073709551616\"", "hits");
	damage("\"hits\":120034", "\"hits\":9223372036854775808", "line 1");
	damage("\"hits\":120034", "\"hats\":0", "targets: 0: hits: is missing");
	damage("\"outcome\":\"delayed\"", "\"outcome\":\"gone\"", "outcome");
	damage("\"p50\":5000", "\"p50\":null", "given_ns: p50");
	damage("0x7f0011223340", "7f0011223340", "sites: 0: address");
	damage("0x7f0011223340", "0x17f0000000011223340", "address");
	damage("[4711,", "[-1,", "pids");
	damage("[4711,", "[4294967296,", "pids");
	damage("2026-01-02T", "2026-13-02T", "started");
	damage("2026-01-02T", "2026-1-02T", "started");
	damage("\"exit\":0", "\"exit\":4294967296", "exit");
	damage("\"argv\":[]", "\"argv\":[null]", "argv");
	damage("\"tags\":{}", "\"tags\":{\"a\":1}", "tags");
	damage("\"targets\":[{", "\"targets\":[3,{", "targets: 0");
	damage("\"processes\":[]",
	       "\"processes\":[{\"pid\":1,\"generation\":0,\"comm\":null,"
	       "\"exe\":null,\"targets\":[{},{}]}]",
	       "processes: 0: targets");
	damage("gpu-01", "gpu\\u0000", "line 1");
	damage("gpu-01", "gpu\xff", "line 1");
}

static void test_long_reason_is_cut_at_a_character(void **state)
{
	struct result *res = sample_plain(), *again = NULL;
	char *json, *long_json, *at;

	(void)state;
	json = result_to_json(res, false);
	at = strstr(json, "\"max\":7310");
	assert_true(asprintf(&long_json, "%.*s\"reason\":\"a%0*d\xc3\xa9\xc3\xa9\xc3\xa9\",%s",
			     (int)(at - json), json, 93, 0, at) > 0);
	assert_int_equal(result_from_json(long_json, &again, NULL), 0);
	assert_int_equal(strlen(again->target[0].given.reason), 94);
	result_free(again);
	result_free(res);
	free(json);
	free(long_json);
}

static void test_outcome_names(void **state)
{
	(void)state;
	assert_string_equal(result_outcome_name(OUTCOME_DELAYED), "delayed");
	assert_string_equal(result_outcome_name(OUTCOME_COUNTED), "counted");
	assert_string_equal(result_outcome_name(OUTCOME_NEVER_CALLED), "never_called");
	assert_string_equal(result_outcome_name(OUTCOME_PENDING), "pending");
	assert_string_equal(result_outcome_name(OUTCOME_NO_MATCH), "no_match");
	assert_string_equal(result_outcome_name(OUTCOME_REFUSED), "refused");
	assert_null(result_outcome_name((enum result_outcome)77));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip_loses_nothing),
		cmocka_unit_test(test_round_trip_of_extremes),
		cmocka_unit_test(test_round_trip_of_any_bytes),
		cmocka_unit_test(test_unknown_is_null_with_a_reason),
		cmocka_unit_test(test_damaged_documents),
		cmocka_unit_test(test_long_reason_is_cut_at_a_character),
		cmocka_unit_test(test_outcome_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
