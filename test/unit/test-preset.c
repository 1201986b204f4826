/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/symbol.h"
#include "src/result/cuda.h"
#include "src/spec/spec.h"

static const char text[] = "# a comment\n"
			   "launch  fooLaunch   libfoo.so*  # another\n"
			   "memcpy\tfooCopy libfoo.so* arg=bytes:3:u64 sum=bytes\r\n"
			   "\n"
			   "launch fooLaunchEx libfoo.so*\n"
			   "other  foo[A-Z]*   libfoo.so*";

static struct preset *parse(const char *of, struct sb_err *err)
{
	struct preset *p = NULL;

	preset_parse(of, strlen(of), "foo", "foo.preset", &p, err);
	return p;
}

static void test_rows(void **state)
{
	struct sb_err err = { 0 };
	struct preset *p = parse(text, &err);

	(void)state;
	assert_int_equal(err.code, 0);
	assert_int_equal(p->n_rows, 4);
	assert_string_equal(p->row[0].function, "fooLaunch");
	assert_string_equal(p->row[0].module, "libfoo.so*");
	assert_int_equal(p->row[0].kind, PRESET_LAUNCH);
	assert_int_equal(p->row[0].n_keys, 0);
	assert_int_equal(p->row[1].kind, PRESET_MEMCPY);
	assert_int_equal(p->row[1].n_keys, 2);
	assert_string_equal(p->row[1].key[1], "sum=bytes");
	assert_int_equal(p->row[3].line, 6);
	assert_ptr_equal(p->row[3].preset, p);
	preset_free(p);
}

static void test_wrong_lines_are_named(void **state)
{
	static const struct {
		const char *text, *what, *hint;
	} rows[] = {
		{ "", "no row", "" },
		{ "# only this\n", "no row", "" },
		{ "launch f lib\nlanch f lib\n", "foo.preset:2: 'lanch' is not a kind",
		  "memset, alloc" },
		{ "launch f\n", "foo.preset:1: a row lacks", "KIND FUNCTION MODULE" },
		{ "launch f a:b\n", "no ':'", "" },
		{ "launch f lib\nsync f libb\n", "foo.preset:2: 'f' has a row already: line 1",
		  "" },
		{ "launch f lib 5us\n", "'5us' is not KEY=VALUE", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct sb_err err = { 0 };

		assert_null(parse(rows[i].text, &err));
		assert_int_equal(err.code, SB_ESPEC);
		assert_non_null(strstr(err.what, rows[i].what));
		assert_non_null(strstr(err_remedy(&err), rows[i].hint));
	}
	for (size_t len = 0; len < sizeof(text); len++) { /* any part of it, and a NUL */
		struct preset *p = NULL;
		struct sb_err err = { 0 };

		if (preset_parse(text, len, "foo", "foo.preset", &p, &err) == 0)
			preset_free(p);
		else
			assert_int_equal(err.code, SB_ESPEC);
	}
}

/* The rows that a word takes, as digits. */
static const char *taken(const struct preset *p, const char *what, struct sb_err *err)
{
	static char rows[16];
	struct preset_choice choice;
	size_t n = 0;

	if (preset_choose(p, what, &choice, err) == 0)
		for (size_t i = 0; i < p->n_rows; i++)
			if (preset_takes(&choice, i))
				rows[n++] = (char)('0' + i);
	rows[n] = '\0';
	return rows;
}

static void test_words(void **state)
{
	static const struct {
		const char *what, *rows, *hint;
	} words[] = {
		{ NULL, "0123", NULL },
		{ "launch", "02", NULL },
		{ "fooLaunch", "0", NULL },
		{ "fooLaunch_v2_ptsz", "0", NULL },
		{ "fooLaunchEx", "2", NULL },
		{ "foo[A-Z]*", "3", NULL },
		{ "fooUnheardOf", "3", NULL },
		{ "lauch", "", "'launch'" },
		{ "fooLaunc", "", "'fooLaunch'" },
		{ "fooCopi", "", "'fooCopy'" },
		{ "sync", "", "list" },
		{ "bar", "", "" },
		{ "foo*", "", "" },
	};
	struct preset *p = parse(text, NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct sb_err err = { 0 };

		assert_string_equal(taken(p, words[i].what, &err), words[i].rows);
		assert_int_equal(err.code, words[i].hint ? SB_ESPEC : 0);
		if (words[i].hint)
			assert_non_null(strstr(err_remedy(&err), words[i].hint));
	}
	preset_free(p);
}

static void test_versions(void **state)
{
	static const struct {
		const char *function, *name;
		bool is;
	} rows[] = {
		{ "cuMemAlloc", "cuMemAlloc", true },
		{ "cuMemAlloc", "cuMemAlloc_v2", true },
		{ "cuMemAlloc", "cuMemAlloc_v2_ptds", true },
		{ "cuMemAlloc", "cuMemAlloc_ptsz", true },
		{ "cuMemAlloc", "cuMemAlloc_v12", true },
		{ "cublasSgemm", "cublasSgemm_v2_64", true },
		{ "cuMemAlloc", "cuMemAllocAsync", false },
		{ "cuMemAlloc", "cuMemAllocAsync_v2", false },
		{ "cuMemAlloc", "cuMemAlloc_v", false },
		{ "cuMemAlloc", "cuMemAlloc_vx", false },
		{ "cuMemAlloc", "cuMemAlloc_ptsy", false },
		{ "cuMemAlloc", "cuMemAllo", false },
		{ "cuMem*Async", "cuMemAllocAsync_v2_ptsz", true },
		{ "cuMem*Async", "cuMemAlloc_v2_ptsz", false },
		{ "f", "_v2", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(symbol_is_version(rows[i].function, rows[i].name), rows[i].is);
}

/* ---- words of a command line, by files ---- */

static char config[] = "/tmp/test-preset-XXXXXX";

static void put(const char *name, const char *content, mode_t mode)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/sbinject/presets/%s.preset", config, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(content, f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
}

static int words(struct spec_list *list, struct sb_err *err, const char *line)
{
	char *copy = strdup(line), *word[16], *save;
	size_t n = 0;
	int rc;

	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		word[n++] = w;
	rc = spec_parse_words(word, n, list, err);
	free(copy);
	return rc;
}

static void test_lists_of_targets(void **state)
{
	struct spec_list list = { 0 };
	struct sb_err err = { 0 };

	(void)state;
	put("foo", text, 0644);
	assert_int_equal(words(&list, &err, "foo:launch 5us every=3 a:b foo 7us"), 0);
	assert_int_equal(list.count, 5);
	assert_string_equal(list.spec[0].text, "foo:fooLaunch");
	assert_string_equal(list.spec[0].module, "libfoo.so*");
	assert_string_equal(list.spec[0].symbol, "fooLaunch");
	assert_int_equal(list.spec[1].delay_ns, 5000);
	assert_int_equal(list.spec[1].every, 3);
	assert_true(list.spec[1].follows && list.spec[1].listed && !list.spec[0].follows);
	assert_null(list.spec[2].row);
	/* What the first word has is not in the second one. */
	assert_string_equal(list.spec[3].text, "foo:fooCopy");
	assert_string_equal(list.spec[4].text, "foo:foo[A-Z]*");
	assert_int_equal(list.spec[4].delay_ns, 7000);
	/* Values only where calls are timed. */
	assert_int_equal(list.spec[3].n_values, 0);
	assert_false(list.spec[3].timed);
	spec_take_row(&list.spec[3]);
	assert_int_equal(list.spec[3].n_values, 0);
	list.spec[3].timed = true;
	spec_take_row(&list.spec[3]);
	assert_int_equal(list.spec[3].n_values, 1);
	assert_int_equal(list.spec[3].value[0].position, 3);
	assert_true(list.spec[3].value[0].sum);
	assert_int_equal(words(&list, &err, "foo"), -SB_ESPEC); /* nothing is left of it */
	assert_int_equal(list.count, 5);
	spec_list_free(&list);
}

static void test_words_beside_presets(void **state)
{
	static const char *const fine[] = { "foo:=fooLaunch", "foo:@foo.c:12", "*/foo:bar",
					    "py:foo:bar",     "foo.so:bar",    "nosuch:bar" };
	static const char *const wrong[] = { "nosuch",	    "foo:",    "foo:nosuch",
					     "foo 5us 6us", "foo foo", "foo:fooCopy foo:fooCopy" };
	struct spec_list list = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(fine) / sizeof(*fine); i++) {
		assert_int_equal(words(&list, NULL, fine[i]), 0);
		assert_null(list.spec[list.count - 1].row);
	}
	spec_list_free(&list);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(words(&list, NULL, wrong[i]), -SB_ESPEC);
		assert_int_equal(list.count, 0);
	}
	assert_int_equal(words(&list, NULL, "foo:fooLaunch pid=7 foo:fooLaunch pid=8"), 0);
	assert_false(list.spec[0].listed);
	spec_list_free(&list);
	/* In a file a preset is one word of a line. */
	assert_int_equal(spec_parse_text("foo 5us\na:b\n", 12, "t", &list, NULL), 0);
	assert_int_equal(list.count, 5);
	spec_list_free(&list);
	assert_int_equal(spec_parse_text("foo a:b\n", 8, "t", &list, NULL), -SB_ESPEC);
}

static void test_files_that_others_can_write(void **state)
{
	struct spec_list list = { 0 };
	struct sb_err err = { 0 };
	char path[128];

	(void)state;
	put("grouped", text, 0664);
	assert_int_equal(words(&list, &err, "grouped"), -SB_EFILE);
	assert_non_null(strstr(err.what, "its group can write it"));
	err = (struct sb_err){ 0 };
	put("open", text, 0602);
	assert_int_equal(words(&list, &err, "open:launch"), -SB_EFILE);
	assert_non_null(strstr(err.what, "every user can write it"));
	err = (struct sb_err){ 0 };
	err = (struct sb_err){ 0 };
	put("fine", text, 0600);
	snprintf(path, sizeof(path), "%s/sbinject/presets", config);
	assert_int_equal(chmod(path, 0775), 0);
	assert_int_equal(words(&list, &err, "fine"), -SB_EFILE);
	assert_non_null(strstr(err.what, "a group can write its directory"));
	assert_int_equal(chmod(path, 0757), 0);
	assert_int_equal(words(&list, NULL, "fine"), -SB_EFILE);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(words(&list, NULL, "fine"), 0);
	spec_list_free(&list);
}

static void test_rows_have_keys_of_values_alone(void **state)
{
	struct spec_list list = { 0 };
	struct sb_err err = { 0 };

	(void)state;
	put("returns", "launch f lib ret\n", 0600);
	assert_int_equal(words(&list, NULL, "returns time=yes"), 0);
	spec_list_free(&list);
	put("later", "launch f lib arg=a:1 every=3\n", 0600);
	assert_int_equal(words(&list, &err, "later"), -SB_ESPEC);
	assert_non_null(strstr(err.what, "every=3"));
	err = (struct sb_err){ 0 };
	put("key", "launch f lib every=3\n", 0600);
	assert_int_equal(words(&list, &err, "key"), -SB_ESPEC);
	assert_non_null(strstr(err.what, "presets/key.preset:1: "));
	assert_int_equal(list.count, 0);
	spec_list_free(&list);
}

/* ---- what they add up to ---- */

static const struct result_figure *figure(const struct result *res, const char *name)
{
	for (size_t i = 0; i < res->n_cuda; i++)
		if (!strcmp(res->cuda[i].name, name))
			return &res->cuda[i];
	return NULL;
}

static const struct result_row table[] = {
	{ "launch", "cuda:a", NULL },
	{ "sync", "cuda:b", NULL },
	{ "other", "cuda:c*", NULL },
};

static struct result *sample(void)
{
	struct result *res = result_new(3);

	for (size_t i = 0; i < 3; i++) {
		struct result_target *t = &res->target[i];

		t->spec = strdup(table[i].spec);
		t->preset = strdup("cuda");
		t->kind = strdup(table[i].kind);
		t->reason = strdup("");
		t->outcome = OUTCOME_COUNTED;
		t->counts.hits = 10 + i;
		t->times = (struct result_times){ .known = true,
						  .calls = 10 + i,
						  .inclusive_ns = 1000 };
	}
	return res;
}

static void test_figures(void **state)
{
	struct result *res = sample(), *again;
	char *json;

	(void)state;
	result_cuda(res, "cuda", table, 3, NULL);
	assert_int_equal(figure(res, "api_calls")->n, 33);
	assert_int_equal(figure(res, "launches")->n, 10);
	assert_int_equal(figure(res, "sync_ns")->n, 1000);
	assert_int_equal(figure(res, "sync.calls")->n, 11);
	assert_int_equal(figure(res, "allocations")->n, 0);
	assert_null(figure(res, "free.calls"));
	res->launches.known = true;
	res->launches.n = 2;
	res->launches.row = calloc(2, sizeof(*res->launches.row));
	res->launches.row[0] = (struct result_launched){ strdup("cuda"), strdup("k\xff"), 3, 14,
							 1 };
	res->launches.row[1] = (struct result_launched){ strdup("cudart"), NULL, 1, 7, 1 };
	json = result_to_json(res, false);
	assert_int_equal(result_from_json(json, &again, NULL), 0);
	assert_int_equal(again->n_cuda, res->n_cuda);
	assert_int_equal(again->launches.n, 2);
	assert_string_equal(again->launches.row[0].name, "k\xff");
	assert_int_equal(again->launches.row[0].total_ns, 14);
	assert_null(again->launches.row[1].name);
	assert_int_equal(figure(again, "other.calls")->n, 12);
	free(json);
	result_free(again);
	result_free(res);
}

static void test_ioctls(void **state)
{
	struct result *res = sample();

	(void)state;
	result_cuda(res, "cuda", table, 3, NULL);
	assert_string_equal(figure(res, "ioctls")->reason, "they were not asked for (--kernel)");
	result_free(res);
	res = sample();
	free(res->target[2].spec);
	free(res->target[2].preset);
	res->target[2].spec = strdup("ioctl:nvidia*");
	res->target[2].preset = NULL;
	result_cuda(res, "cuda", table, 3, NULL);
	assert_int_equal(figure(res, "ioctls")->n, 12);
	assert_int_equal(figure(res, "ioctl_ns")->n, 1000);
	assert_false(figure(res, "api_calls")->known);
	result_free(res);
	res = sample();
	free(res->target[2].spec);
	res->target[2].spec = strdup("ioctl:nvidia*");
	result_cuda(res, "none", table, 0, "start= limits it");
	assert_int_equal(res->n_cuda, 2);
	assert_string_equal(figure(res, "ioctl_ns")->reason, "start= limits it");
	result_free(res);
}

static void test_figures_that_are_not_known(void **state)
{
	struct result *res = sample(), *again;
	char *json;

	(void)state;
	res->target[0].outcome = OUTCOME_NO_MATCH; /* the library lacks it: no calls */
	res->target[0].counts.hits = 0;
	result_refuse(&res->target[1].refused, &res->target[1].n_refused,
		      &(struct result_refused){ .module = (char *)"m",
						.symbol = (char *)"b_v2",
						.name = (char *)"b_v2",
						.reason = (char *)"too short" },
		      7);
	res->target[2].times.known = false;
	result_cuda(res, "cuda", table, 3, NULL);
	assert_true(figure(res, "launches")->known);
	assert_int_equal(figure(res, "launches")->n, 0);
	assert_false(figure(res, "syncs")->known);
	assert_string_equal(figure(res, "syncs")->reason, "cuda:b: too short");
	assert_false(figure(res, "api_calls")->known);
	assert_true(figure(res, "other.calls")->known);
	assert_false(figure(res, "other.ns")->known);
	json = result_to_json(res, false);
	assert_non_null(strstr(json, "\"syncs\":null,\"syncs_reason\":\"cuda:b: too short\""));
	assert_int_equal(result_from_json(json, &again, NULL), 0);
	assert_string_equal(figure(again, "syncs")->reason, "cuda:b: too short");
	free(json);
	result_free(again);
	result_free(res);
}

/* A target's calls, all in one bucket. */
static void put_times(struct result_target *t, uint64_t from, uint64_t to, uint64_t calls)
{
	t->times = (struct result_times){ .known = true,
					  .calls = calls,
					  .inclusive_ns = calls * from,
					  .min_ns = from,
					  .max_ns = to - 1,
					  .n_buckets = 1 };
	t->times.bucket = calloc(1, sizeof(*t->times.bucket));
	*t->times.bucket = (struct result_bucket){ from, to, calls };
	t->counts.hits = calls;
}

/* The quantiles of a kind are those of all its calls, not of one target or a mean of them. */
static void test_rates_and_quantiles(void **state)
{
	static const struct result_row two[] = { { "launch", "cuda:a", NULL },
						 { "launch", "cuda:b", NULL },
						 { "sync", "cuda:c*", NULL } };
	struct result *res = sample(), *again;
	char *json;

	(void)state;
	put_times(&res->target[0], 100, 110, 80);
	put_times(&res->target[1], 1000, 1010, 20);
	res->target[0].active_s = res->target[1].active_s = 2;
	res->target[2].counts.hits = res->target[2].times.calls = 0;
	free(res->target[2].kind);
	res->target[2].kind = strdup("sync");
	result_cuda(res, "cuda", two, 3, NULL);
	assert_true(figure(res, "launches_per_s")->x == 50);
	assert_true(figure(res, "launch.calls_per_s")->x == 50);
	assert_true(figure(res, "launch.p50_ns")->n >= 100 &&
		    figure(res, "launch.p50_ns")->n < 110);
	assert_true(figure(res, "launch.p90_ns")->n >= 1000);
	assert_false(figure(res, "sync.p50_ns")->known);
	assert_string_equal(figure(res, "sync.p50_ns")->reason, "no call returned");
	assert_true(figure(res, "sync.calls_per_s")->known);
	json = result_to_json(res, false);
	assert_int_equal(result_from_json(json, &again, NULL), 0);
	assert_true(figure(again, "launches_per_s")->real);
	assert_true(figure(again, "launches_per_s")->x == 50);
	free(json);
	result_free(again);
	result_free(res);

	res = sample();
	result_cuda(res, "cuda", table, 3, NULL);
	assert_false(figure(res, "launches_per_s")->known);
	assert_string_equal(figure(res, "launches_per_s")->reason,
			    "cuda:a: for how long it was hooked is not known");
	result_free(res);
}

static void test_figures_of_a_part(void **state)
{
	struct result *res = sample();
	struct result_row limited[3];

	(void)state;
	memcpy(limited, table, sizeof(table));
	limited[2].limited = "thread= limits it";
	free(res->target[1].spec);
	res->target[1].spec = strdup("cuda:else");
	result_cuda(res, "cuda", limited, 3, NULL);
	assert_true(figure(res, "launches")->known);
	assert_string_equal(figure(res, "syncs")->reason, "cuda:b: it is not a target of this run");
	assert_string_equal(figure(res, "other.calls")->reason, "cuda:c*: thread= limits it");
	result_free(res);
	res = sample();
	res->doorbells_lost = 1;
	result_cuda(res, "cuda", table, 3, NULL);
	assert_false(figure(res, "launches")->known);
	result_free(res);
}

static const struct result_row copies[] = {
	{ "memcpy", "cuda:a", NULL },
	{ "memcpy", "cuda:b", NULL },
	{ "memcpy", "cuda:c*", NULL },
};

/* Two rows with bytes, and one without, which was not called. */
static struct result *sample_of_bytes(void)
{
	struct result *res = sample();

	for (size_t i = 0; i < 3; i++) {
		struct result_target *t = &res->target[i];

		t->times.n_values = i < 2;
		t->times.value[0] = (struct result_value){ .name = "bytes",
							   .position = 3,
							   .type = VALUE_U64,
							   .summed = true,
							   .sum_known = true,
							   .sum = 1000 * (i + 1),
							   .sum_calls = t->times.calls };
	}
	res->target[2].counts.hits = res->target[2].times.calls = 0;
	return res;
}

static void check_unknown_bytes(struct result *res, const char *reason)
{
	result_cuda(res, "cuda", copies, 3, NULL);
	assert_true(figure(res, "transfers")->known);
	assert_false(figure(res, "transferred_bytes")->known);
	assert_string_equal(figure(res, "transferred_bytes")->reason, reason);
	result_free(res);
}

static void test_bytes(void **state)
{
	struct result *res = sample_of_bytes();

	(void)state;
	result_cuda(res, "cuda", copies, 3, NULL);
	assert_true(figure(res, "transferred_bytes")->known);
	assert_int_equal(figure(res, "transferred_bytes")->n, 3000);
	assert_int_equal(figure(res, "allocated_bytes")->n, 0);
	result_free(res);

	res = sample_of_bytes();
	res->target[2].counts.hits = res->target[2].times.calls = 1;
	check_unknown_bytes(res, "cuda:c*: no argument of its calls is added up as bytes");
	res = sample_of_bytes();
	strcpy(res->target[1].times.value[0].name, "count");
	check_unknown_bytes(res, "cuda:b: no argument of its calls is added up as bytes");
	res = sample_of_bytes();
	res->target[0].times.value[0].sum_known = false;
	check_unknown_bytes(res, "cuda:a: the sum is larger than 64 bits can hold");
	res = sample_of_bytes();
	res->target[0].times.value[0].sum = UINT64_MAX - 1;
	check_unknown_bytes(res, "the sum is larger than 64 bits can hold");
	res = sample_of_bytes();
	res->target[0].times.value[0].sum_calls--;
	check_unknown_bytes(res, "cuda:a: the bytes of some calls are not known");
	res = sample_of_bytes();
	res->target[0].times.known = false;
	check_unknown_bytes(res, "cuda:a: it was not timed (sbinject trace, time=yes)");
}

static int set_up(void **state)
{
	char path[128];

	(void)state;
	if (!mkdtemp(config))
		return -1;
	snprintf(path, sizeof(path), "%s/sbinject", config);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/sbinject/presets", config);
	mkdir(path, 0755);
	return setenv("XDG_CONFIG_HOME", config, 1);
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", config);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_wrong_lines_are_named),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_lists_of_targets),
		cmocka_unit_test(test_words_beside_presets),
		cmocka_unit_test(test_files_that_others_can_write),
		cmocka_unit_test(test_rows_have_keys_of_values_alone),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_ioctls),
		cmocka_unit_test(test_figures_that_are_not_known),
		cmocka_unit_test(test_figures_of_a_part),
		cmocka_unit_test(test_rates_and_quantiles),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
