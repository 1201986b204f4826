/* SPDX-License-Identifier: MIT */
/* The evidence of a sweep in all formats. Golden files lie in golden/; run with SB_GOLDEN_WRITE=1
 * to write them anew, and read the diff. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "sweep-judged.h"
#include "src/out/sweep-changes.h"
#include "src/out/sweep-words.h"

#define X_NS 20000.0

static struct sides_about by_bpf(void)
{
	struct sides_about sides = { .read = true, .asked = true, .bpf = true, .sample = 1 };

	for (int i = 0; i < GROUP_COUNT; i++)
		sides.group[i] = true;
	sides.unknown[SIDES_OFF_CPU] = true;
	return sides;
}

/* Every change is known, and none is significant. */
static struct sweep_result *sample(enum sweep_verdict verdict)
{
	struct sweep_result *res = judged(0.02, 0.02);
	struct sweep_target *t = &res->target[0];

	free(t->spec);
	t->spec = must_strdup("app:<produce>");
	t->verdict = verdict;
	t->t0_ns = 200e3;
	t->n_doses = 2;
	t->dose = must_calloc(2, sizeof(*t->dose));
	t->dose[1].delay_ns = 20000;
	t->dose[1].x_ns = X_NS;
	res->n_counters = SIDES_COUNTERS;
	res->n_tests = 40;
	t->change = must_calloc((size_t)SIDE_COUNT * SIDES_COUNTERS, sizeof(*t->change));
	for (size_t i = 0; i < (size_t)SIDE_COUNT * SIDES_COUNTERS; i++)
		t->change[i] = (struct sweep_change){ .sham = 100,
						      .dose = 100,
						      .delta = { 0, -10, 10 },
						      .slope = { 0, -0.0005, 0.0005 },
						      .p_none = 0.9,
						      .p_random = 0.9,
						      .p_adjusted = 1 };
	t->change[SIDES_OFF_CPU].sham = t->change[SIDES_COUNTERS + SIDES_OFF_CPU].sham = NAN;
	t->change[SIDES_OFF_CPU].dose = t->change[SIDES_COUNTERS + SIDES_OFF_CPU].dose = NAN;
	t->change[SIDES_OFF_CPU].p_adjusted = NAN;
	t->change[SIDES_COUNTERS + SIDES_OFF_CPU].p_adjusted = NAN;
	return res;
}

static void set(struct sweep_result *res, enum sweep_side side, size_t counter, double sham,
		double delta)
{
	struct sweep_change *c = &res->target[0].change[(size_t)side * SIDES_COUNTERS + counter];
	double half = fabs(delta) / 20;

	*c = (struct sweep_change){ .sham = sham,
				    .dose = sham + delta,
				    .delta = { delta, delta - half, delta + half },
				    .slope = { delta / X_NS, (delta - half) / X_NS,
					       (delta + half) / X_NS },
				    .p_none = 1e-6,
				    .p_random = 0.0005,
				    .p_adjusted = 4e-5,
				    .significant = true };
}

/* A producer's delay comes out of its wait for room in a queue. */
static struct sweep_result *hidden(void)
{
	struct sweep_result *res = sample(VERDICT_HIDDEN);

	set(res, SIDE_DELAYED, EVIDENCE_ON_CPU, 50e3, 20.1e3);
	set(res, SIDE_DELAYED, EVIDENCE_FUTEX, 149e3, -19.6e3);
	set(res, SIDE_DELAYED, EVIDENCE_WAKEUPS, 1.5, -0.25);
	return res;
}

static void says(const struct sweep_result *res, const char *a, const char *b, const char *c)
{
	struct sides_about sides = by_bpf();
	struct out_sweep_about about = { .n_targets = 1, .sides = &sides };
	char sentence[OUT_SENTENCES][OUT_SENTENCE];
	const char *want[] = { a, b, c };
	size_t n = out_sweep_words(res, &res->target[0], &about, sentence), wanted = 0;

	while (wanted < OUT_SENTENCES && want[wanted])
		wanted++;
	for (size_t i = 0; i < n; i++)
		assert_string_equal(sentence[i], want[i] ? want[i] : "no more");
	assert_int_equal(n, wanted);
}

static void test_a_hidden_delay_came_out_of_a_wait(void **state)
{
	struct sweep_result *res = hidden();

	(void)state;
	says(res, "19.6us of 20.0us an item came out of waiting in futex", NULL, NULL);
	set(res, SIDE_DELAYED, EVIDENCE_FUTEX, 149e3, -12e3);
	set(res, SIDE_DELAYED, EVIDENCE_SLEEP, 20e3, -8e3);
	set(res, SIDE_DELAYED, EVIDENCE_IO, 20e3, -200);
	says(res,
	     "12.0us of 20.0us an item came out of waiting in futex, and 8.00us out of sleeping",
	     NULL, NULL);
	sweep_result_free(res);
}

static void test_a_critical_delay_is_on_the_processor(void **state)
{
	struct sweep_result *res = sample(VERDICT_CRITICAL);

	(void)state;
	set(res, SIDE_DELAYED, EVIDENCE_ON_CPU, 190e3, 20.2e3);
	set(res, SIDE_DELAYED, EVIDENCE_RUN_QUEUE, 1e3, 5e3);
	set(res, SIDE_OTHERS, EVIDENCE_FUTEX, 390e3, 41e3);
	says(res, "20.0us injected an item are 20.2us more on a processor",
	     "the threads that were delayed spent 5.00us more an item waiting for a processor",
	     "other threads spent 41.0us more an item waiting in futex");
	sweep_result_free(res);
}

static void test_a_poller_runs_for_no_longer(void **state)
{
	struct sweep_result *res = sample(VERDICT_HIDDEN);

	(void)state;
	says(res,
	     "the threads that were delayed were on a processor for no longer: the delay of "
	     "20.0us an item took the place of what they did there",
	     NULL, NULL);
	/* Unknown is not "no longer". */
	res->target[0].change[EVIDENCE_ON_CPU].slope = SWEEP_UNKNOWN;
	says(res, NULL, NULL, NULL);
	sweep_result_free(res);
}

/* No verdict, no reason for it; and nothing that is not significant, however large. */
static void test_what_is_not_proven_has_no_words(void **state)
{
	struct sweep_result *res = hidden();

	(void)state;
	res->target[0].verdict = VERDICT_INCONCLUSIVE;
	says(res, NULL, NULL, NULL);
	res->target[0].verdict = VERDICT_HIDDEN;
	res->target[0].change[EVIDENCE_FUTEX].significant = false;
	says(res, NULL, NULL, NULL);
	sweep_result_free(res);
}

/* ---- golden files ---- */

static char *read_text(const char *path)
{
	FILE *from = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;

	if (!from || getdelim(&text, &room, '\0', from) < 0)
		fail_msg("cannot read %s", path);
	fclose(from);
	return text;
}

static void same_as_golden(const char *name, char *text)
{
	const char *src = getenv("SRC");
	char path[4096], *golden;

	snprintf(path, sizeof(path), "%s/test/unit/golden/%s", src ? src : ".", name);
	if (getenv("SB_GOLDEN_WRITE")) {
		FILE *to = fopen(path, "w");

		assert_true(to && fputs(text, to) >= 0 && fclose(to) == 0);
	}
	golden = read_text(path);
	assert_string_equal(text, golden);
	free(golden);
	free(text);
}

typedef void write_fn(FILE *to, const struct sweep_result *res, const struct out_sweep_about *about,
		      size_t n);

static void sample_written(const char *golden, write_fn *write, const struct sides_about *sides)
{
	struct out_sweep_about about = { .n_targets = 1, .sides = sides };
	struct sweep_result *res = hidden();
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	write(to, res, &about, 1);
	fclose(to);
	same_as_golden(golden, text);
	sweep_result_free(res);
}

static void test_text(void **state)
{
	struct sides_about sides = by_bpf();

	(void)state;
	setenv("COLUMNS", "200", 1);
	sample_written("evidence-asked.txt", out_sweep_changes, &sides);
	sides.groups_named = true;
	sample_written("evidence-groups.txt", out_sweep_changes, &sides);
	sides = by_bpf();
	sides.asked = sides.bpf = false;
	err_set(&sides.limit, SB_EUSAGE, "BPF was not asked for");
	err_hint(&sides.limit, "--evidence, as root");
	sample_written("evidence-unasked.txt", out_sweep_changes, &sides);
	sides.read = false;
	sample_written("evidence-unread.txt", out_sweep_changes, &sides);
}

/* A futex has a name where nearly all of the time of the delayed threads is there. */
static void test_futex(void **state)
{
	static char pop[] = "app::Queue::pop";
	struct sides_futex f = { .addr = 0x7f10, .caller = { pop }, .place_share = 0.95 };
	struct sides_about sides = by_bpf();
	struct out_sweep_about about = { .n_targets = 1, .sides = &sides };
	struct sweep_result *res = hidden();
	char sentence[OUT_SENTENCES][OUT_SENTENCE];
	static const char plain[] = "19.6us of 20.0us an item came out of waiting in futex";

	(void)state;
	sides.futex = &f;
	sides.n_futexes = 1;
	assert_true(out_sweep_words(res, &res->target[0], &about, sentence) > 0);
	assert_memory_equal(sentence[0], plain, sizeof(plain) - 1);
	assert_string_equal(sentence[0] + sizeof(plain) - 1, " 0x7f10 (app::Queue::pop)");
	f.place_share = 0.5;
	out_sweep_words(res, &res->target[0], &about, sentence);
	assert_string_equal(sentence[0], plain);
	f.place_share = 1;
	f.target = 1; /* of another one */
	out_sweep_words(res, &res->target[0], &about, sentence);
	assert_string_equal(sentence[0], plain);
	sweep_result_free(res);
}

static void stack(FILE *to, const struct sweep_result *res, const struct out_sweep_about *about,
		  size_t n)
{
	out_sweep_stack(to, &res->target[0], about, out_sweep_stack_most(res, about, n), 0);
}

static void test_picture(void **state)
{
	struct sides_about sides = by_bpf();

	(void)state;
	sample_written("evidence.html", stack, &sides);
}

static void json(FILE *to, const struct sweep_result *res, const struct out_sweep_about *about,
		 size_t n)
{
	double counter[SIDE_COUNT * SIDES_COUNTERS] = {
		[EVIDENCE_FUTEX] = 1.5, [SIDES_COUNTERS] = NAN
	};
	struct sweep_window read = { .counter = counter }, unread = { 0 };
	json_t *doc = json_array();

	(void)n;
	json_array_append_new(doc, out_sweep_evidence_json(res, about));
	json_array_append_new(doc, out_sweep_changes_json(res, &res->target[0], about));
	json_array_append_new(doc, out_sweep_counters_json(res, &read));
	json_array_append_new(doc, out_sweep_counters_json(res, &unread));
	json_dumpf(doc, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	fputs("\n", to);
	json_decref(doc);
}

static void test_json(void **state)
{
	struct sides_about sides = by_bpf();

	(void)state;
	sample_written("evidence.json", json, &sides);
}

/* As many fields as there are columns, in a window that was read and in one that was not. */
static void test_csv(void **state)
{
	struct sides_about sides = by_bpf();
	struct out_sweep_about about = { .n_targets = 1, .sides = &sides };
	char path[] = "/tmp/sbinject-csv.XXXXXX", *text, *line, *save = NULL;
	struct sweep_result *res = hidden();
	size_t commas = 0, n, lines = 0;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	res->window = must_calloc(2, sizeof(*res->window));
	res->n_windows = 2;
	res->window[0].counter = must_calloc((size_t)SIDE_COUNT * SIDES_COUNTERS, sizeof(double));
	res->window[0].counter[EVIDENCE_FUTEX] = 12345;
	assert_int_equal(out_sweep_csv(path, res, &about, NULL), 0);
	text = read_text(path);
	assert_non_null(strstr(text, ",delayed_on_cpu_ns,delayed_run_queue_ns,delayed_futex_ns,"));
	assert_non_null(strstr(text, ",others_off_cpu_ns\r\n"));
	assert_non_null(strstr(text, ",12345,"));
	for (line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
		n = 0;
		for (const char *c = line; *c; c++)
			n += *c == ',';
		assert_true(!lines++ || n == commas);
		commas = n;
	}
	assert_int_equal(lines, 3);
	unlink(path);
	free(text);
	sweep_result_free(res);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_hidden_delay_came_out_of_a_wait),
		cmocka_unit_test(test_a_critical_delay_is_on_the_processor),
		cmocka_unit_test(test_a_poller_runs_for_no_longer),
		cmocka_unit_test(test_what_is_not_proven_has_no_words),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_futex),
		cmocka_unit_test(test_picture),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_csv),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
