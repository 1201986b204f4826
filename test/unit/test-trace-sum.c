/* SPDX-License-Identifier: MIT */
/* beside others, as idle work */
/* What a trace sums up to: against the same figures worked out from all spans at once; calls that
 * cross; windows that are too small for all calls; filters; hostile files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "src/out/report.h"
#include "trace/copy.h"
#include "trace/nest.h"
#include "trace/sum.h"
#include "traces.h"

enum { FUNCTIONS = 30, THREADS = 5, SPANS = 100000, FLAT = 300000 };

struct made {
	struct trace_writer *w;
	struct trace_span *span;
	size_t n;
};

static void keep_span(void *ctx, const struct trace_span *span)
{
	struct made *made = ctx;

	made->span = record_room(made->span, made->n, sizeof(*span));
	made->span[made->n++] = *span;
	if (made->w)
		assert_int_equal(trace_write_span(made->w, span), 0);
}

static void declare(struct trace_writer *w)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct trace_process process = { 10 + (int)i, i ? "second" : "first" };

		trace_write_process(w, &process);
	}
	for (unsigned int i = 1; i <= THREADS; i++) {
		struct trace_thread thread = { i, 10 + (int)(i % 2), 100 + (int)i, "worker",
					       false };

		trace_write_thread(w, &thread);
	}
	for (unsigned int i = 1; i <= FUNCTIONS; i++) {
		char name[32];
		struct trace_function function = { i, i % 5 == 0, name, "module" };

		snprintf(name, sizeof(name), "f%u", i);
		trace_write_function(w, &function);
	}
}

static void finish(struct trace_writer *w, size_t n, uint64_t lost)
{
	struct trace_end end = { n, lost, 0, TRACES_BEGIN_NS + 1 };

	assert_int_equal(trace_writer_close(w, &end, NULL), 0);
}

static int make(struct made *made, uint64_t seed, size_t spans, bool ties)
{
	struct traces_maker maker = { seed, THREADS, FUNCTIONS, spans, ties };
	int fd = trace_memory();

	*made = (struct made){ .w = trace_start(fd, TRACE_PFTRACE) };
	declare(made->w);
	trace_make(&maker, keep_span, made);
	finish(made->w, made->n, 0);
	return fd;
}

static struct sum *sum_of(int fd, const struct sum_options *options)
{
	struct sum *sum = sum_new(options);
	struct sb_err err = { 0 };

	lseek(fd, 0, SEEK_SET);
	assert_int_equal(sum_read(sum, fd, "test", &err), 0);
	return sum;
}

/* ---- by brute force ---- */

struct times {
	uint64_t n, total, own, min, max;
};

struct brute {
	struct times f[FUNCTIONS + 1][2];
	uint64_t busy[THREADS + 1];
	size_t *caller; /* index of the span, SIZE_MAX: none */
	uint64_t *own;
};

/* The caller: the first later span of the thread that holds it. A stack of those without one. */
static void find_callers(const struct made *made, struct brute *b)
{
	size_t *stack[THREADS + 1], depth[THREADS + 1] = { 0 };

	for (int t = 1; t <= THREADS; t++)
		stack[t] = must_calloc(made->n, sizeof(size_t));
	for (size_t i = 0; i < made->n; i++) {
		const struct trace_span *s = &made->span[i];
		uint32_t t = s->thread;

		b->caller[i] = SIZE_MAX;
		b->own[i] = s->dur_ns;
		while (depth[t] && made->span[stack[t][depth[t] - 1]].start_ns >= s->start_ns) {
			size_t child = stack[t][--depth[t]];

			b->caller[child] = i;
			b->own[i] -= made->span[child].dur_ns;
		}
		stack[t][depth[t]++] = i;
	}
	for (int t = 1; t <= THREADS; t++)
		free(stack[t]);
}

static void brute_new(struct brute *b, const struct made *made)
{
	memset(b, 0, sizeof(*b));
	b->caller = must_calloc(made->n, sizeof(*b->caller));
	b->own = must_calloc(made->n, sizeof(*b->own));
	find_callers(made, b);
	for (size_t i = 0; i < made->n; i++) {
		const struct trace_span *s = &made->span[i];
		struct times *t = &b->f[s->function][s->kind];

		t->min = t->n && t->min < s->dur_ns ? t->min : s->dur_ns;
		t->max = t->max > s->dur_ns ? t->max : s->dur_ns;
		t->n++;
		t->total += s->dur_ns;
		t->own += b->own[i];
		b->busy[s->thread] += b->caller[i] == SIZE_MAX ? s->dur_ns : 0;
	}
}

static void brute_free(struct brute *b)
{
	free(b->caller);
	free(b->own);
}

/* The reader gives its own ids: by name. */
static uint32_t number_of(const char *name)
{
	return (uint32_t)strtoul(name + 1, NULL, 10);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A quantile is the one of all durations, within a bucket of the histogram. */
static void check_quantile(const struct sum *sum, const struct sum_times *times,
			   const struct made *made, uint32_t function, enum trace_kind kind,
			   double q)
{
	uint64_t *all = must_calloc(made->n, sizeof(*all));
	double got = sum_quantile(sum, times, q), exact;
	size_t n = 0, rank;

	for (size_t i = 0; i < made->n; i++)
		if (made->span[i].function == function && made->span[i].kind == kind)
			all[n++] = made->span[i].dur_ns;
	qsort(all, n, sizeof(*all), by_value);
	rank = (size_t)(q * (double)n);
	rank += (double)rank < q * (double)n;
	exact = (double)all[rank ? rank - 1 : 0];
	assert_true(got >= exact * 0.968 - 1 && got <= exact * 1.032 + 1);
	free(all);
}

static void check_histogram(const struct sum *sum, const struct sum_times *times,
			    const struct made *made, uint32_t function, enum trace_kind kind)
{
	for (unsigned int row = 0; row < HIST_ROWS; row++) {
		uint64_t n = 0;

		for (size_t i = 0; i < made->n; i++) {
			const struct trace_span *s = &made->span[i];

			n += s->function == function && s->kind == kind &&
			     s->dur_ns >= hist_from(row) && s->dur_ns < hist_from(row + 1);
		}
		assert_int_equal(hist_in(&sum->pool, &times->hist, row), n);
	}
}

static void check_function(const struct sum *sum, const struct sum_function *f,
			   const struct made *made, const struct brute *b)
{
	uint32_t k = number_of(f->name);

	for (int kind = 0; kind < 2; kind++) {
		const struct sum_times *got = f->of[kind];
		const struct times *want = &b->f[k][kind];

		assert_int_equal(got ? got->n : 0, want->n);
		if (!got)
			continue;
		assert_int_equal(got->total_ns, want->total);
		assert_int_equal(got->own_ns, want->own);
		assert_int_equal(got->min_ns, want->min);
		assert_int_equal(got->max_ns, want->max);
		check_quantile(sum, got, made, k, (enum trace_kind)kind, 0.5);
		check_quantile(sum, got, made, k, (enum trace_kind)kind, 0.99);
		check_histogram(sum, got, made, k, (enum trace_kind)kind);
	}
}

static void check_slowest(const struct sum *sum, const struct made *made, const struct brute *b)
{
	uint64_t *all = must_calloc(made->n, sizeof(*all));

	for (size_t i = 0; i < made->n; i++)
		all[i] = made->span[i].dur_ns;
	qsort(all, made->n, sizeof(*all), by_value);
	assert_int_equal(sum->n_slow, 50);
	for (size_t k = 0; k < sum->n_slow; k++) {
		const struct sum_slow *slow = &sum->slow[k];
		size_t i = 0;

		assert_int_equal(slow->span.dur_ns, all[made->n - 1 - k]);
		while (made->span[i].start_ns != slow->span.start_ns ||
		       made->span[i].dur_ns != slow->span.dur_ns ||
		       made->span[i].thread != slow->span.thread)
			i++;
		assert_int_equal(slow->own_ns, b->own[i]);
		if (b->caller[i] == SIZE_MAX)
			assert_int_equal(slow->caller, 0);
		else
			assert_int_equal(number_of(sum->function[slow->caller - 1].name),
					 made->span[b->caller[i]].function);
	}
	free(all);
}

/* Gaps between the spans that no other holds; they come in the order of time. */
static void check_gaps(const struct sum *sum, const struct made *made, const struct brute *b)
{
	uint64_t last[THREADS + 1] = { 0 }, *gap = must_calloc(made->n, sizeof(*gap));
	size_t n = 0;

	for (size_t i = 0; i < made->n; i++) {
		const struct trace_span *s = &made->span[i];

		if (b->caller[i] != SIZE_MAX)
			continue;
		if (last[s->thread])
			gap[n++] = s->start_ns - last[s->thread];
		last[s->thread] = s->start_ns + s->dur_ns;
	}
	qsort(gap, n, sizeof(*gap), by_value);
	assert_int_equal(sum->n_gaps, 20);
	for (size_t i = 0; i < sum->n_gaps; i++)
		assert_int_equal(sum->gap[i].dur_ns, gap[n - 1 - i]);
	free(gap);
}

/* ---- launches ---- */

static bool is_python(uint32_t function)
{
	return function % 5 == 0; /* declare() */
}

static bool is_launch(uint32_t function)
{
	return function % 7 == 3;
}

static struct sum_role role_of(const struct trace_function *function)
{
	bool launch = is_launch(number_of(function->name));

	return (struct sum_role){ .role = launch ? LAUNCH_CALL : LAUNCH_NONE, .known = launch };
}

struct launches {
	uint64_t within[FUNCTIONS + 1], own[FUNCTIONS + 1], none, all;
};

/* Callers come after what they call: each hands on what it holds. */
static void count_launches(const struct made *made, const struct brute *b, struct launches *l)
{
	uint64_t *in = must_calloc(made->n, sizeof(*in)),
		 *owed = must_calloc(made->n, sizeof(*owed));

	memset(l, 0, sizeof(*l));
	for (size_t i = 0; i < made->n; i++) {
		uint32_t f = made->span[i].function;
		bool call = made->span[i].kind == TRACE_CALL;

		if (call && is_launch(f) && owed[i] == in[i]) {
			l->all += 1 - in[i];
			in[i] = owed[i] = 1;
		}
		if (call && is_python(f)) {
			l->within[f] += in[i];
			l->own[f] += owed[i];
			owed[i] = 0;
		}
		if (b->caller[i] == SIZE_MAX) {
			l->none += owed[i];
		} else {
			in[b->caller[i]] += in[i];
			owed[b->caller[i]] += owed[i];
		}
	}
	free(in);
	free(owed);
}

static void check_launches(const struct sum *sum, const struct made *made, const struct brute *b)
{
	struct launches want;
	uint64_t own = 0;

	count_launches(made, b, &want);
	for (size_t i = 0; i < sum->n_functions; i++) {
		const struct sum_function *f = &sum->function[i];

		assert_int_equal(f->launches_within, want.within[number_of(f->name)]);
		assert_int_equal(f->launches_own, want.own[number_of(f->name)]);
		own += f->launches_own;
	}
	assert_true(own > 100 && want.none > 100);
	assert_int_equal(sum->caused.python, own);
	assert_int_equal(sum->caused.none, want.none);
	assert_int_equal(sum->caused.launches, want.all);
	assert_int_equal(own + want.none, want.all);
}

static uint64_t own_of_all(const struct brute *b)
{
	uint64_t own = 0;

	for (int f = 1; f <= FUNCTIONS; f++)
		own += b->f[f][0].own + b->f[f][1].own;
	return own;
}

/* All own time is in the stacks, and each line's stack is one of the trace's. */
static void check_stacks(const struct sum *sum, const struct brute *b)
{
	char *text = NULL;
	size_t n = 0, lines = 0;
	FILE *to = open_memstream(&text, &n);
	uint64_t own = 0;

	assert_non_null(to);
	out_report_folded(to, sum);
	fclose(to);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		own += strtoull(strrchr(line, ' '), NULL, 10);
		lines++;
	}
	assert_int_equal(own, own_of_all(b));
	assert_int_equal(sum->stacks.lost_ns, 0);
	assert_true(lines > FUNCTIONS);
	free(text);
}

static uint64_t busy_of_bins(const struct sum *sum)
{
	uint64_t busy = 0;

	for (size_t i = 0; i < sum->n_threads; i++)
		for (size_t k = 0; sum->thread[i].bin && k < SUM_BINS; k++)
			busy += sum->thread[i].bin[k];
	return busy;
}

static void check_sums(uint64_t seed, bool ties)
{
	struct sum_options options = {
		.slowest = 50, .gaps = 20, .timeline = true, .stacks = true, .role = role_of
	};
	struct made made;
	int fd = make(&made, seed, SPANS, ties);
	struct sum *sum = sum_of(fd, &options);
	uint64_t busy = 0;
	struct brute b;

	brute_new(&b, &made);
	assert_int_equal(sum->spans, made.n);
	assert_int_equal(sum->crossing, 0);
	assert_int_equal(sum->guessed, 0);
	check_launches(sum, &made, &b);
	for (size_t i = 0; i < sum->n_functions; i++)
		check_function(sum, &sum->function[i], &made, &b);
	for (size_t i = 0; i < sum->n_threads; i++) {
		assert_int_equal(sum->thread[i].in_calls_ns, b.busy[sum->thread[i].tid - 100]);
		busy += sum->thread[i].in_calls_ns;
	}
	assert_int_equal(busy_of_bins(sum), busy);
	if (!ties) {
		check_slowest(sum, &made, &b);
		check_gaps(sum, &made, &b);
	}
	check_stacks(sum, &b);
	brute_free(&b);
	sum_free(sum);
	free(made.span);
	close(fd);
}

static void test_sums_are_those_of_all_spans(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		check_sums(seed, false);
		check_sums(seed, true);
	}
}

/* ---- small windows ---- */

/* So many calls without a caller that gaps are closed; at last one caller for the last part. */
static int flat(struct made *made, size_t calls, size_t held)
{
	int fd = trace_memory();
	uint64_t now = TRACES_BEGIN_NS, seed = 5, begin = now;
	struct trace_span last = {
		.start_ns = 0, .dur_ns = 0, .thread = 1, .function = 2, .kind = TRACE_CALL
	};

	*made = (struct made){ .w = trace_start(fd, TRACE_PFTRACE) };
	declare(made->w);
	for (size_t i = 0; i < calls; i++) {
		struct trace_span span = { .start_ns = now,
					   .dur_ns = 50,
					   .thread = 1,
					   .function = 1,
					   .kind = TRACE_CALL };

		if (i == calls - held)
			begin = now;
		span.start_ns = now += 10 + trace_random(&seed) % 1000;
		keep_span(made, &span);
		now += 50;
	}
	last.start_ns = begin + 1;
	last.dur_ns = now + 5 - last.start_ns;
	keep_span(made, &last);
	finish(made->w, made->n, 3);
	return fd;
}

static const struct sum_times *times_of(const struct sum *sum, const char *name)
{
	for (size_t i = 0; i < sum->n_functions; i++)
		if (!strcmp(sum->function[i].name, name))
			return sum->function[i].of[TRACE_CALL];
	return NULL;
}

static void check_window(size_t held, bool exact)
{
	struct sum_options options = { .stacks = true };
	struct made made;
	int fd = flat(&made, FLAT, held);
	struct sum *sum = sum_of(fd, &options);
	const struct sum_times *inner = times_of(sum, "f1"), *outer = times_of(sum, "f2");
	uint64_t own = made.span[made.n - 1].dur_ns - 50 * held;

	assert_int_equal(inner->own_ns, 50 * FLAT);
	assert_int_equal(sum->guessed, !exact);
	assert_int_equal(sum->end.lost, 3);
	if (exact)
		assert_int_equal(outer->own_ns, own);
	else
		assert_true(outer->own_ns > own - own / 50 && outer->own_ns < own + own / 50);
	sum_free(sum);
	free(made.span);
	close(fd);
}

static void test_a_window_too_small_is_exact_or_says_so(void **state)
{
	(void)state;
	check_window(FLAT, true);
	check_window(100, true);
	check_window(FLAT / 2, false);
}

static void test_the_window_is_bounded(void **state)
{
	struct nest nest = { NULL, 0, 0, 0 };

	(void)state;
	for (uint64_t i = 0; i < 1000000; i++) {
		struct nest_root root = { .start = i * 100,
					  .end = i * 100 + 10 + i % 80,
					  .dur = 10,
					  .covered = 10,
					  .n = 1 };
		size_t first;

		assert_int_equal(nest_fit(&nest, root.start, &first), NEST_FITS);
		assert_int_equal(first, nest.n);
		nest_put(&nest, first, &root);
		nest_bound(&nest, 256, NULL, NULL);
		assert_true(nest.n <= 256);
	}
	assert_true(nest.n >= 64 && nest.closed > 0 && nest.closed < 100);
	nest_free(&nest);
}

/* ---- crossing calls, filters ---- */

static void test_crossing_calls_are_counted_and_named(void **state)
{
	struct sum_options options = { .stacks = true, .slowest = 5, .gaps = 5, .timeline = true };
	int fd = trace_memory();
	struct made made = { .w = trace_start(fd, TRACE_PFTRACE) };
	struct sum *sum;

	(void)state;
	declare(made.w);
	for (uint64_t i = 0; i < 20; i++) {
		struct trace_span span = { .start_ns = TRACES_BEGIN_NS + i * 10,
					   .dur_ns = 1000,
					   .thread = 1,
					   .function = 1,
					   .kind = TRACE_CALL };

		keep_span(&made, &span);
	}
	finish(made.w, made.n, 0);
	sum = sum_of(fd, &options);
	assert_int_equal(sum->spans, 20);
	assert_int_equal(sum->crossing, 19);
	assert_int_equal(times_of(sum, "f1")->own_ns, 20000);
	assert_int_equal(sum->thread[0].in_calls_ns, 1190); /* the time in any of them */
	assert_int_equal(busy_of_bins(sum), 1190);
	sum_free(sum);
	free(made.span);
	close(fd);
}

static void test_filters_choose_what_is_counted_not_what_is_nested(void **state)
{
	struct sum_options all = { .slowest = 0 }, some = { .filter.function = "f[12]" },
			   time = { .filter = { .from_ns = 10000, .to_ns = 20000 } };
	struct made made;
	int fd = make(&made, 9, 20000, false);
	struct sum *a = sum_of(fd, &all), *b = sum_of(fd, &some), *c = sum_of(fd, &time);
	size_t in = 0;

	(void)state;
	for (int i = 1; i <= 2; i++) {
		const char *name = i == 1 ? "f1" : "f2";

		assert_int_equal(times_of(a, name)->n, times_of(b, name)->n);
		assert_int_equal(times_of(a, name)->own_ns, times_of(b, name)->own_ns);
	}
	assert_null(times_of(b, "f3"));
	assert_int_equal(b->spans + b->filtered, made.n);
	for (size_t i = 0; i < made.n; i++)
		in += made.span[i].start_ns - TRACES_BEGIN_NS >= 10000 &&
		      made.span[i].start_ns - TRACES_BEGIN_NS < 20000;
	assert_int_equal(c->spans, in);
	sum_free(a);
	sum_free(b);
	sum_free(c);
	free(made.span);
	close(fd);
}

/* A copy in another format has the same spans; what a filter left out is counted in its end. */
static void test_copies_have_what_was_chosen(void **state)
{
	struct trace_filter filter = { .thread = "10[12]" }, none = { 0 };
	struct trace_reading reading;
	struct sb_err err = { 0 };
	struct made made;
	int fd = make(&made, 11, 5000, false);

	(void)state;
	for (int f = 0; f < 3; f++) {
		int whole = trace_memory(), part = trace_memory();
		struct recorded r;

		lseek(fd, 0, SEEK_SET);
		assert_int_equal(
			trace_copy(fd, "t", whole, (enum trace_format)f, &none, &reading, &err), 0);
		record(&r, whole);
		assert_int_equal(r.n_spans, made.n);
		for (size_t i = 0; i < made.n; i++) {
			assert_int_equal(r.span[i].start_ns, made.span[i].start_ns);
			assert_int_equal(r.span[i].dur_ns, made.span[i].dur_ns);
		}
		recorded_free(&r);
		filter.thread = "101";
		lseek(whole, 0, SEEK_SET);
		assert_int_equal(
			trace_copy(whole, "t", part, (enum trace_format)f, &filter, &reading, &err),
			0);
		record(&r, part);
		assert_true(r.reading.ended && r.n_spans > 0 && r.n_spans < made.n);
		assert_int_equal(r.end.spans + r.end.filtered, made.n);
		recorded_free(&r);
		close(whole);
		close(part);
	}
	free(made.span);
	close(fd);
}

/* ---- hostile names on their way out ---- */

static bool is_safe(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < 0x20 && c != '\n') || c == 0x7f ||
		    (c == 0xc2 && (unsigned char)text[i + 1] < 0xa0))
			return false;
	}
	return true;
}

static void write_hostile(int fd)
{
	struct trace_writer *w = trace_start(fd, TRACE_PFTRACE);

	for (uint32_t i = 0; i < HOSTILE; i++) {
		struct trace_process process = { 10 + (int)i, trace_hostile[i] };
		struct trace_thread thread = { i + 1, 10 + (int)i, 50, trace_hostile[i], false };
		struct trace_function function = { i + 1, false, trace_hostile[i],
						   trace_hostile[i] };
		struct trace_span span = { .start_ns = TRACES_BEGIN_NS + i,
					   .dur_ns = 5000,
					   .thread = i + 1,
					   .function = i + 1,
					   .kind = TRACE_CALL };

		trace_write_process(w, &process);
		trace_write_thread(w, &thread);
		trace_write_function(w, &function);
		trace_write_span(w, &span);
	}
	finish(w, HOSTILE, 0);
}

static void test_names_are_safe_in_all_outputs(void **state)
{
	struct sum_options options = { .slowest = 9, .gaps = 9, .timeline = true, .stacks = true };
	int fd = trace_memory();
	char *text = NULL, *json;
	size_t n = 0, svg;
	struct sum *sum;
	FILE *to;

	(void)state;
	write_hostile(fd);
	sum = sum_of(fd, &options);
	to = open_memstream(&text, &n);
	out_report(to, sum, "bad\x1b[31mname");
	out_report_slowest(to, sum);
	out_report_gaps(to, sum);
	out_report_timeline(to, sum);
	out_report_folded(to, sum);
	fflush(to);
	svg = n;
	out_report_flame(to, sum, "<bad&name>");
	fclose(to);
	assert_true(is_safe(text, n));
	assert_null(strstr(text + svg, "</script>"));
	assert_null(strstr(text + svg, "<bad"));
	assert_null(strstr(text + svg, "& <b>"));
	json = out_report_json(sum, "x");
	assert_non_null(strstr(json, "sbinject.trace-report/1"));
	free(json);
	free(text);
	sum_free(sum);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_are_those_of_all_spans),
		cmocka_unit_test(test_a_window_too_small_is_exact_or_says_so),
		cmocka_unit_test(test_the_window_is_bounded),
		cmocka_unit_test(test_crossing_calls_are_counted_and_named),
		cmocka_unit_test(test_filters_choose_what_is_counted_not_what_is_nested),
		cmocka_unit_test(test_copies_have_what_was_chosen),
		cmocka_unit_test(test_names_are_safe_in_all_outputs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
