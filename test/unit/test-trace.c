/* SPDX-License-Identifier: MIT */
/* beside others */
/* Traces: what is written is read back, in each format, whatever the names; where the file is cut;
 * where calls cross; what others wrote; what is no trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include "trace/copy.h"
#include "trace/place.h"
#include "traces.h"

static const enum trace_format formats[] = { TRACE_PFTRACE, TRACE_CHROME, TRACE_JSONL };

enum { FORMATS = 3, LONG = 4096 };

static char *long_name(void)
{
	char *name = must(malloc(LONG + 1));

	memset(name, 'x', LONG);
	memcpy(name, "\xff\"\n", 3);
	name[LONG] = '\0';
	return name;
}

static const char *hostile(unsigned int i, const char *long_one)
{
	return i < HOSTILE ? trace_hostile[i] : long_one;
}

/* Processes, threads and functions of every name; returns how many functions there are. */
static unsigned int declare_all(struct trace_writer *w, unsigned int threads)
{
	char *long_one = long_name();

	for (unsigned int i = 0; i <= HOSTILE; i++) {
		struct trace_process process = { 100 + (int)i, hostile(i, long_one) };
		struct trace_function function = { i + 1, (enum trace_code)(i % 3),
						   hostile(i, long_one),
						   i % 4 ? hostile(HOSTILE - i, long_one) : NULL };

		assert_int_equal(trace_write_process(w, &process), 0);
		assert_int_equal(trace_write_function(w, &function), 0);
	}
	for (unsigned int i = 0; i < threads; i++) {
		int tid = i % 5 == 4 ? 0 : 1000 + (int)(i % 7); /* unknown, and given twice */
		struct trace_thread thread = {
			.id = i + 1,
			.pid = 100 + (int)(i % 3),
			.tid = tid,
			.name = i % 6 == 5 ? NULL : hostile(i % (HOSTILE + 1), long_one),
		};

		assert_int_equal(trace_write_thread(w, &thread), 0);
	}
	free(long_one);
	return HOSTILE + 1;
}

struct written {
	struct trace_writer *w;
	struct trace_span *span;
	size_t n;
};

static void write_span(void *ctx, const struct trace_span *span)
{
	struct written *to = ctx;

	to->span = record_room(to->span, to->n, sizeof(*span));
	to->span[to->n++] = *span;
	assert_int_equal(trace_write_span(to->w, span), 0);
}

static void close_all(struct trace_writer *w, size_t spans)
{
	struct trace_end end = { spans, 17, 4, TRACES_BEGIN_NS + 9000000000 };
	struct sb_err err = { 0 };

	assert_int_equal(trace_writer_close(w, &end, &err), 0);
	assert_int_equal(err.code, 0);
}

static void assert_same_text(const char *a, const char *b)
{
	if (a && b)
		assert_string_equal(a, b);
	else
		assert_ptr_equal(a, b);
}

/* Declarations by the reader's ids, the last of each. */
static const struct trace_thread *thread_of(const struct recorded *r, uint32_t id)
{
	for (size_t i = r->n_threads; i--;)
		if (r->thread[i].id == id)
			return &r->thread[i];
	fail_msg("thread %u is not declared", id);
	return NULL;
}

static const struct trace_function *function_of(const struct recorded *r, uint32_t id)
{
	assert_in_range(id, 1, r->n_functions);
	assert_int_equal(r->function[id - 1].id, id);
	return &r->function[id - 1];
}

/* As declare_all() declared them. */
static void check_span(const struct recorded *r, const struct trace_span *got,
		       const struct trace_span *put, const char *long_one)
{
	const struct trace_thread *t = thread_of(r, got->thread);
	const struct trace_function *f = function_of(r, got->function);
	unsigned int i = put->thread - 1, k = put->function - 1;

	assert_int_equal(got->start_ns, put->start_ns);
	assert_int_equal(got->dur_ns, put->dur_ns);
	assert_int_equal(got->kind, put->kind);
	assert_int_equal(t->pid, 100 + (int)(i % 3));
	assert_int_equal(t->tid, i % 5 == 4 ? 0 : 1000 + (int)(i % 7));
	assert_same_text(t->name, i % 6 == 5 ? NULL : hostile(i % (HOSTILE + 1), long_one));
	assert_string_equal(f->name, hostile(k, long_one));
	assert_int_equal(f->code, k % 3);
	assert_same_text(f->module, k % 4 ? hostile(HOSTILE - k, long_one) : NULL);
}

static void check_about(const struct recorded *r, size_t spans)
{
	assert_int_equal(r->ret, 0);
	assert_string_equal(r->version, "0.1.0");
	assert_string_equal(r->command, "sbinject trace 'a b' \"c\"");
	assert_int_equal(r->begin_ns, TRACES_BEGIN_NS);
	assert_int_equal(r->begin_unix_ns, TRACES_BEGIN_UNIX);
	assert_true(r->reading.ours && r->reading.ended && !r->reading.cut);
	assert_string_equal(r->reading.damage, "");
	assert_int_equal(r->reading.skipped, 0);
	assert_int_equal(r->reading.open, 0);
	assert_int_equal(r->reading.spans, spans);
	assert_int_equal(r->ends, 1);
	assert_int_equal(r->end.spans, spans);
	assert_int_equal(r->end.lost, 17);
	assert_int_equal(r->end.filtered, 4);
	assert_int_equal(r->end.end_ns, TRACES_BEGIN_NS + 9000000000);
}

static void check_round(enum trace_format format, bool ties, uint64_t seed)
{
	int fd = trace_memory();
	struct written to = { .w = trace_start(fd, format) };
	struct traces_maker maker = { seed, 13, declare_all(to.w, 13), 3000, ties };
	char *long_one = long_name();
	struct recorded r;

	trace_make(&maker, write_span, &to);
	close_all(to.w, to.n);
	record(&r, fd);
	check_about(&r, to.n);
	assert_int_equal(r.reading.format, format);
	assert_int_equal(r.n_spans, to.n);
	for (size_t i = 0; i < to.n; i++)
		check_span(&r, &r.span[i], &to.span[i], long_one);
	recorded_free(&r);
	free(to.span);
	free(long_one);
	close(fd);
}

static void test_what_is_written_is_read(void **state)
{
	(void)state;
	for (int i = 0; i < FORMATS; i++)
		for (uint64_t seed = 1; seed <= 2; seed++) {
			check_round(formats[i], false, seed);
			check_round(formats[i], true, seed);
		}
}

/* ---- values ---- */

/* As many as a call may have. */
#define MORE                                                                                       \
	{ "v5", VALUE_U8, true, 255, NULL }, { "v6", VALUE_U16, true, 6, NULL },                   \
		{ "v7", VALUE_STR, false, 0, NULL }, { "v8", VALUE_I8, true, (uint64_t)-8, NULL }, \
		{ "v9", VALUE_STR, true, 0, "12 apples" }, { "v10", VALUE_STR, true, 0, "" },      \
		{ "v11", VALUE_STR, true, 0, "a \"q\" \\ \303\266 \001\n12" },                     \
	{                                                                                          \
		"v12", VALUE_U64, true, 12, NULL                                                   \
	}

static const struct trace_value values[][VALUE_MAX] = {
	{ { "fd", VALUE_I64, true, 3, NULL },
	  { "size", VALUE_U64, true, UINT64_MAX, NULL },
	  { "p", VALUE_PTR, true, 0x7fff12345678, NULL },
	  { "ok", VALUE_BOOL, true, 1, NULL },
	  MORE },
	{ { "fd", VALUE_I64, true, (uint64_t)-1, NULL },
	  { "size", VALUE_U64, false, 0, NULL },
	  { "p", VALUE_PTR, true, 0, NULL },
	  { "ok", VALUE_BOOL, true, 0, NULL },
	  MORE },
	{ { "fd", VALUE_I64, true, (uint64_t)INT64_MIN, NULL },
	  { "size", VALUE_U64, true, 0, NULL },
	  { "p", VALUE_PTR, true, UINT64_MAX, NULL },
	  { "ok", VALUE_BOOL, false, 0, NULL },
	  MORE },
};

enum { VALUED = sizeof(values) / sizeof(*values) };

static void write_valued(struct trace_writer *w)
{
	trace_write_process(w, &(struct trace_process){ 7, "p" });
	trace_write_thread(w, &(struct trace_thread){ .id = 1, .pid = 7, .tid = 7, .name = "t" });
	trace_write_function(w, &(struct trace_function){ 1, false, "f", "m" });
	for (uint64_t i = 0; i < 2 * VALUED; i++) {
		struct trace_span span = {
			.start_ns = TRACES_BEGIN_NS + 100 * i,
			.dur_ns = i % 2 ? 10 : 1000, /* the longer ones are shown as shorter */
			.thread = 1,
			.function = 1,
			.kind = TRACE_CALL,
			.n_values = i % 2 ? 0 : VALUE_MAX,
			.value = i % 2 ? NULL : values[i / 2],
		};

		assert_int_equal(trace_write_span(w, &span), 0);
	}
	close_all(w, 2 * VALUED);
}

/* Sizes are not distinguished, nor is the type of what is unknown; JSON shows a number by its size.
 */
static int check_valued(void *ctx, const struct trace_span *span)
{
	size_t *n = ctx, i = (*n)++;

	assert_int_equal(span->start_ns, TRACES_BEGIN_NS + 100 * i);
	assert_int_equal(span->dur_ns, i % 2 ? 10 : 1000);
	assert_int_equal(span->n_values, i % 2 ? 0 : VALUE_MAX);
	for (uint32_t k = 0; k < span->n_values; k++) {
		const struct trace_value *v = &span->value[k], *put = &values[i / 2][k];
		char a[VALUE_TEXT_SIZE], b[VALUE_TEXT_SIZE];

		assert_string_equal(v->name, put->name);
		assert_int_equal(v->known, put->known);
		assert_true(v->value == put->value);
		if (v->known && put->type == VALUE_STR) {
			assert_int_equal(v->type, VALUE_STR);
			assert_string_equal(v->text, put->text);
		} else if (v->known)
			assert_string_equal(value_text(v->type, v->value, a, sizeof(a)),
					    value_text(put->type, put->value, b, sizeof(b)));
	}
	return 0;
}

static void read_valued(int fd)
{
	const struct trace_sink sink = { .span = check_valued };
	struct trace_reading reading;
	struct sb_err err = { 0 };
	size_t n = 0;

	lseek(fd, 0, SEEK_SET);
	assert_int_equal(trace_read(fd, "t", &sink, &n, &reading, &err), 0);
	assert_int_equal(n, 2 * VALUED);
	assert_int_equal(reading.skipped, 0);
}

/* From each format to each other one, and back by way of all of them. */
static void test_values_are_kept(void **state)
{
	(void)state;
	for (int i = 0; i < FORMATS; i++) {
		int fd = trace_memory();

		write_valued(trace_start(fd, formats[i]));
		read_valued(fd);
		for (int k = 0; k < 2 * FORMATS; k++) {
			const struct trace_filter all = { 0 };
			struct trace_reading reading;
			struct sb_err err = { 0 };
			int to = trace_memory();

			lseek(fd, 0, SEEK_SET);
			assert_int_equal(trace_copy(fd, "t", to, formats[(i + k) % FORMATS], &all,
						    &reading, &err),
					 0);
			close(fd);
			fd = to;
			read_valued(fd);
		}
		close(fd);
	}
}

/* Of a span with these values, those that are read. */
static int take_known(void *ctx, const struct trace_span *span)
{
	char *at = ctx;

	for (uint32_t i = 0; i < span->n_values; i++)
		at += sprintf(at, "%s=%d ", span->value[i].name, (int)span->value[i].value);
	return 0;
}

/* `from`, found in the file, becomes `to`: as another program would have written it. */
static void check_read(const struct trace_value value[4], const char from[4], const char to[4],
		       const char *wanted)
{
	const struct trace_sink sink = { .span = take_known };
	struct trace_span span = { TRACES_BEGIN_NS, 10, 1, 1, TRACE_CALL, 4, value, NULL, NULL };
	struct trace_writer *w;
	struct trace_reading reading;
	struct sb_err err = { 0 };
	char file[4096], known[256] = "", *at;
	int fd = trace_memory();
	ssize_t n;

	w = trace_start(fd, TRACE_PFTRACE);
	trace_write_process(w, &(struct trace_process){ 7, "p" });
	trace_write_thread(w, &(struct trace_thread){ .id = 1, .pid = 7, .tid = 7, .name = "t" });
	trace_write_function(w, &(struct trace_function){ 1, false, "f", "m" });
	assert_int_equal(trace_write_span(w, &span), 0);
	close_all(w, 1);
	n = pread(fd, file, sizeof(file), 0);
	at = memmem(file, (size_t)n, from, 4);
	assert_non_null(at);
	assert_int_equal(pwrite(fd, to, 4, at - file), 4);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(trace_read(fd, "t", &sink, known, &reading, &err), 0);
	assert_string_equal(known, wanted);
	close(fd);
}

/* A name that events use, one twice, a number of another type: none of them is a value. */
static void test_values_of_others_are_checked(void **state)
{
	static const struct trace_value value[4] = { { "thread", VALUE_I64, true, 1, NULL },
						     { "fd", VALUE_I64, true, 2, NULL },
						     { "fd", VALUE_I64, true, 3, NULL },
						     { "x", VALUE_I64, true, 4, NULL } };
	/* The number of the name x, and the fields of a signed number and of a double. */
	static const char x[] = { 8, 5, 4 << 3, 4 }, real[] = { 8, 5, 5 << 3, 4 };

	(void)state;
	check_read(value, x, x, "fd=2 x=4 ");
	check_read(value, x, real, "fd=2 ");
}

/* ---- viewers: nested, whatever the durations ---- */

struct drawn {
	uint64_t start, end;
	size_t order;
	unsigned int lane;
};

/* As an importer does it: by time; of what is at one time, the order of the file. */
struct edge {
	uint64_t ns;
	size_t order; /* two for each span: its begin, its end */
};

static int by_edge(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static void check_stack(const struct drawn *drawn, size_t n, unsigned int lane)
{
	struct edge *edge = must_calloc(2 * n + 1, sizeof(*edge));
	size_t *stack = must_calloc(n + 1, sizeof(*stack)), edges = 0, depth = 0;

	for (size_t i = 0; i < n; i++) {
		if (drawn[i].lane != lane)
			continue;
		edge[edges++] = (struct edge){ drawn[i].start, 2 * i };
		edge[edges++] = (struct edge){ drawn[i].end, 2 * i + 1 };
	}
	qsort(edge, edges, sizeof(*edge), by_edge);
	for (size_t i = 0; i < edges; i++) {
		if (edge[i].order % 2 == 0) {
			stack[depth++] = edge[i].order / 2;
			continue;
		}
		assert_true(depth > 0);
		assert_int_equal(stack[--depth], edge[i].order / 2);
	}
	assert_int_equal(depth, 0);
	free(stack);
	free(edge);
}

struct drawing {
	struct place_lanes lanes;
	struct drawn *drawn;
	size_t n;
	uint64_t shorter; /* the part of a duration that is taken off, in thousandths */
};

static void draw(void *ctx, const struct trace_span *span)
{
	struct drawing *d = ctx;
	uint64_t start = span->start_ns - TRACES_BEGIN_NS + 10, dur = span->dur_ns;
	struct place place;

	dur -= dur * d->shorter / 1000;
	place_span(&d->lanes, start, start + dur, &place);
	d->drawn = record_room(d->drawn, d->n, sizeof(*d->drawn));
	d->drawn[d->n] = (struct drawn){ place.start, place.end, d->n, place.lane };
	assert_true(place.end >= start + dur);
	d->n++;
}

/* A caller's duration lacks what the measurement of the calls in it cost: it seems to end before
 * the last of them. */
static void test_callers_that_seem_shorter_hold_their_calls(void **state)
{
	(void)state;
	for (uint64_t shorter = 0; shorter <= 900; shorter += 300) {
		struct traces_maker maker = { 7 + shorter, 1, 5, 3000, false };
		struct drawing d = { .shorter = shorter };

		trace_make(&maker, draw, &d);
		assert_int_equal(d.lanes.n, 1);
		check_stack(d.drawn, d.n, 0);
		place_free(&d.lanes);
		free(d.drawn);
	}
}

static void place_one(struct place_lanes *lanes, struct drawn *drawn, size_t i, uint64_t start,
		      uint64_t end)
{
	struct place place;

	place_span(lanes, start, end, &place);
	drawn[i] = (struct drawn){ place.start, place.end, i, place.lane };
}

/* Coroutines: each lane is a stack all the same. */
static void test_calls_that_cross_get_lanes_of_their_own(void **state)
{
	struct place_lanes lanes = { .n = 0 };
	struct drawn drawn[64];

	(void)state;
	for (size_t i = 0; i < 5; i++)
		place_one(&lanes, drawn, i, 100 + i * 10, 200 + i * 10);
	assert_int_equal(lanes.n, 5);
	place_one(&lanes, drawn, 5, 300, 400);
	assert_int_equal(drawn[5].lane, 0);
	place_one(&lanes, drawn, 6, 90, 410);
	assert_int_equal(drawn[6].lane, 0);
	for (size_t i = 7; i < 64; i++)
		place_one(&lanes, drawn, i, 500 + i * 10, 5000 + i * 10);
	assert_int_equal(lanes.n, PLACE_LANES);
	for (unsigned int lane = 0; lane < PLACE_LANES; lane++)
		check_stack(drawn, 64, lane);
	place_free(&lanes);
}

static void test_a_caller_that_begins_with_its_call_is_around_it(void **state)
{
	struct place_lanes lanes = { .n = 0 };
	struct drawn drawn[4];

	(void)state;
	place_one(&lanes, drawn, 0, 50, 99);
	place_one(&lanes, drawn, 1, 100, 200);
	place_one(&lanes, drawn, 2, 100, 200);
	assert_int_equal(drawn[2].start, 99);
	place_one(&lanes, drawn, 3, 100, 150); /* came later: so it ended later */
	check_stack(drawn, 3, 0);
	place_free(&lanes);
}

/* What was moved for viewers is read back as it was. */
static void test_crossing_calls_are_read_as_they_were(void **state)
{
	(void)state;
	for (int k = 0; k < FORMATS; k++) {
		int fd = trace_memory();
		struct written to = { .w = trace_start(fd, formats[k]) };
		struct recorded r;
		uint64_t seed = 99;

		declare_all(to.w, 2);
		for (uint64_t i = 0; i < 500; i++) {
			uint64_t dur = trace_random(&seed) % 1000;
			struct trace_span span = { .start_ns = TRACES_BEGIN_NS + 1000 + i * 10 -
							       dur,
						   .dur_ns = dur,
						   .thread = 1 + (uint32_t)(i % 2),
						   .function = 2,
						   .kind = TRACE_CALL };

			write_span(&to, &span);
		}
		close_all(to.w, to.n);
		record(&r, fd);
		check_about(&r, to.n);
		for (size_t i = 0; i < to.n; i++) {
			assert_int_equal(r.span[i].start_ns, to.span[i].start_ns);
			assert_int_equal(r.span[i].dur_ns, to.span[i].dur_ns);
			assert_int_equal(r.span[i].thread, to.span[i].thread);
		}
		recorded_free(&r);
		free(to.span);
		close(fd);
	}
}

/* ---- cut files ---- */

static size_t small_trace(enum trace_format format, int fd)
{
	struct written to = { .w = trace_start(fd, format) };
	struct traces_maker maker = { 3, 3, declare_all(to.w, 3), 12, false };

	trace_make(&maker, write_span, &to);
	close_all(to.w, to.n);
	free(to.span);
	return to.n;
}

/* Each byte at both ends; each seventh between them, which meets every part of a record. */
static off_t cut_step(off_t cut, off_t size)
{
	return cut < 1000 || cut > size - 1000 ? 1 : 7;
}

static void test_a_file_cut_anywhere_is_read_up_to_there(void **state)
{
	(void)state;
	for (int k = 0; k < FORMATS; k++) {
		int fd = trace_memory();
		size_t spans = small_trace(formats[k], fd), before = spans + 1;
		struct recorded whole, r;
		off_t size = lseek(fd, 0, SEEK_END), end = 0;

		record(&whole, fd);
		for (off_t cut = size - 1; cut > 0; cut -= cut_step(cut, size)) {
			assert_int_equal(ftruncate(fd, cut), 0);
			record(&r, fd);
			assert_true(r.ret == 0 || (cut < 400 && !r.n_spans)); /* nothing yet */
			if (!r.reading.ended && r.ret == 0) {
				end = end ? end : cut;
				assert_true(r.reading.cut || !r.reading.ours);
			}
			assert_true(r.n_spans <= before);
			assert_true(r.reading.bytes <= (uint64_t)cut);
			assert_string_equal(r.reading.damage, "");
			before = r.n_spans;
			for (size_t i = 0; i < r.n_spans; i++)
				assert_memory_equal(&r.span[i], &whole.span[i], sizeof(r.span[i]));
			recorded_free(&r);
		}
		/* only the last bytes may go without the end being missed */
		assert_true(size - end < 200 && before == 0);
		recorded_free(&whole);
		close(fd);
	}
}

static void test_a_writer_that_is_killed_leaves_a_trace(void **state)
{
	struct sb_err err = { 0 };

	(void)state;
	for (int k = 0; k < FORMATS; k++) {
		int fd = trace_memory();
		struct trace_writer *w = trace_start(fd, formats[k]);
		struct trace_span span = { .start_ns = TRACES_BEGIN_NS + 5,
					   .dur_ns = 10,
					   .thread = 1,
					   .function = 1,
					   .kind = TRACE_CALL };
		struct recorded r;

		declare_all(w, 1);
		trace_write_span(w, &span);
		trace_writer_flush(w);
		record(&r, fd);
		assert_int_equal(r.n_spans, 1);
		assert_true(r.reading.cut && !r.reading.ended && r.ret == 0);
		recorded_free(&r);
		lseek(fd, 0, SEEK_END);
		assert_int_equal(trace_writer_close(w, NULL, &err), 0);
		close(fd);
	}
}

/* ---- what must fail ---- */

static void test_errors_of_writes_are_kept(void **state)
{
	struct trace_about about = { "1", "c", 0, 0 };
	struct trace_thread thread = { .id = 1, .pid = 1, .tid = 1, .name = "t" };
	struct trace_function function = { 1, false, "f", "m" };
	struct trace_span span = {
		.start_ns = 5, .dur_ns = 5, .thread = 1, .function = 1, .kind = TRACE_CALL
	};
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC), pipes[2], ret = 0;
	struct sb_err err = { 0 };
	struct trace_writer *w;

	(void)state;
	assert_null(trace_writer_open(full, TRACE_JSONL, &about, &err));
	assert_int_equal(err.sys_errno, ENOSPC);
	close(full);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	w = trace_writer_open(pipes[1], TRACE_PFTRACE, &about, &err);
	assert_non_null(w);
	close(pipes[0]);
	trace_write_thread(w, &thread);
	trace_write_function(w, &function);
	for (int i = 0; i < 100000 && ret == 0; i++)
		ret = trace_write_span(w, &span);
	assert_int_equal(ret, -SB_EFILE);
	assert_int_equal(trace_writer_error(w), EPIPE);
	err = (struct sb_err){ 0 };
	assert_int_equal(trace_writer_close(w, NULL, &err), -SB_EFILE);
	assert_int_equal(err.sys_errno, EPIPE);
	close(pipes[1]);
}

static void test_what_was_not_declared_is_refused(void **state)
{
	int fd = trace_memory();
	struct trace_writer *w = trace_start(fd, TRACE_PFTRACE);
	struct trace_span span = {
		.start_ns = 5, .dur_ns = 5, .thread = 1, .function = 1, .kind = TRACE_CALL
	};
	struct trace_thread none = { .pid = 1, .tid = 1, .name = "t" },
			    far = { .id = UINT32_MAX, .pid = 1, .tid = 1, .name = "t" };
	struct sb_err err = { 0 };

	(void)state;
	assert_int_equal(trace_write_span(w, &span), -SB_EINTERNAL);
	assert_int_equal(trace_write_thread(w, &none), -SB_EINTERNAL);
	assert_int_equal(trace_write_thread(w, &far), -SB_EINTERNAL);
	assert_int_equal(trace_writer_close(w, NULL, &err), 0);
	close(fd);
}

static void check_no_trace(const char *text, size_t n)
{
	int fd = trace_of_text(text, n);
	struct recorded r;

	record(&r, fd);
	assert_int_equal(r.ret, -SB_EFILE);
	assert_int_equal(r.err.code, SB_EFILE);
	assert_true(*r.err.what && *err_remedy(&r.err));
	recorded_free(&r);
	close(fd);
}

static void test_what_is_no_trace_is_refused(void **state)
{
	(void)state;
	check_no_trace("", 0);
	check_no_trace(" \n ", 3);
	check_no_trace("\x7f"
		       "ELF\2\1\1\0",
		       8);
	check_no_trace("{\"a\":1}\n{\"b\":2}\n", 16);
	check_no_trace("\n\x03\x01\x02\x03", 5);
}

static void test_formats_go_by_name(void **state)
{
	enum trace_format format;
	struct sb_err err = { 0 };

	(void)state;
	assert_int_equal(trace_format_of("a/b.pftrace", NULL, &format, &err), 0);
	assert_int_equal(format, TRACE_PFTRACE);
	assert_int_equal(trace_format_of("b.perfetto-trace", NULL, &format, &err), 0);
	assert_int_equal(format, TRACE_PFTRACE);
	assert_int_equal(trace_format_of("b.json", NULL, &format, &err), 0);
	assert_int_equal(format, TRACE_CHROME);
	assert_int_equal(trace_format_of("b.jsonl", NULL, &format, &err), 0);
	assert_int_equal(format, TRACE_JSONL);
	assert_int_equal(trace_format_of("b.txt", "pftrace", &format, &err), 0);
	assert_int_equal(format, TRACE_PFTRACE);
	assert_int_equal(err.code, 0);
	assert_int_equal(trace_format_of("b.txt", NULL, &format, &err), -SB_EUSAGE);
	err = (struct sb_err){ 0 };
	assert_int_equal(trace_format_of("b.json", "xml", &format, &err), -SB_EUSAGE);
	assert_true(*err_remedy(&err));
}

/* ---- traces of others ---- */

static void check_spans(const char *text, const uint64_t (*wanted)[2], size_t n, uint64_t skipped,
			uint64_t open)
{
	int fd = trace_of_text(text, strlen(text));
	struct recorded r;

	record(&r, fd);
	assert_int_equal(r.ret, 0);
	assert_int_equal(r.reading.format, TRACE_CHROME);
	assert_false(r.reading.ours);
	assert_int_equal(r.n_spans, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(r.span[i].start_ns, wanted[i][0]);
		assert_int_equal(r.span[i].dur_ns, wanted[i][1]);
	}
	assert_int_equal(r.reading.skipped, skipped);
	assert_int_equal(r.reading.open, open);
	recorded_free(&r);
	close(fd);
}

static void test_pairs_and_complete_events_of_others(void **state)
{
	static const uint64_t nested[][2] = { { 2500, 500 }, { 4000, 1000 }, { 1000, 9000 } };

	(void)state;
	check_spans("[{\"ph\":\"B\",\"name\":\"a\",\"ts\":1,\"pid\":1,\"tid\":2},\n"
		    " {\"ph\":\"B\",\"name\":\"b\",\"ts\":2.5,\"pid\":1,\"tid\":2},"
		    "{\"ph\":\"E\",\"ts\":3,\"pid\":1,\"tid\":2},"
		    "{\"ph\":\"X\",\"name\":\"c\",\"ts\":4,\"dur\":1,\"pid\":1,\"tid\":2},"
		    "{\"ph\":\"E\",\"ts\":10,\"pid\":1,\"tid\":2}]",
		    nested, 3, 0, 0);
	/* by start, within an object */
	check_spans("{\"schema\":1,\"other\":{\"x\":[1,{}]},\"traceEvents\":[\n"
		    "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":9,\"pid\":1,\"tid\":2},"
		    "{\"ph\":\"X\",\"name\":\"b\",\"ts\":2.5,\"dur\":0.5,\"pid\":1,\"tid\":2},"
		    "{\"ph\":\"i\",\"name\":\"now\",\"ts\":2,\"pid\":1,\"tid\":2},"
		    "{\"ph\":\"X\",\"name\":\"c\",\"ts\":4,\"dur\":1,\"pid\":1,\"tid\":2}"
		    "],\"more\":1}",
		    nested, 3, 1, 0);
	/* a B without E, an E without B, a slice that never ends well */
	check_spans("[{\"ph\":\"B\",\"name\":\"a\",\"ts\":1,\"pid\":1,\"tid\":2},"
		    "{\"ph\":\"E\",\"ts\":1,\"pid\":1,\"tid\":3},"
		    "{\"ph\":\"X\",\"ts\":-1,\"dur\":1e300,\"pid\":1,\"tid\":2},"
		    "{\"ph\":\"X\",\"ts\":\"no\",\"dur\":{},\"pid\":[],\"tid\":2}",
		    NULL, 0, 3, 1);
}

static void test_huge_objects_are_skipped(void **state)
{
	size_t n = 3 << 20;
	char *text = must(malloc(n + 200)), *at = text;
	static const uint64_t wanted[][2] = { { 1000, 2000 } };

	(void)state;
	at = stpcpy(at, "[{\"ph\":\"X\",\"name\":\"");
	memset(at, 'y', n);
	at = stpcpy(at + n,
		    "\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":2},"
		    "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":2}]");
	check_spans(text, wanted, 1, 1, 0);
	free(text);
}

/* A damaged packet: what is before it is there, and the place is named. */
static void test_damage_is_located(void **state)
{
	int fd = trace_memory();
	size_t spans = small_trace(TRACE_PFTRACE, fd);
	off_t size = lseek(fd, 0, SEEK_END);
	struct recorded r;

	(void)state;
	assert_int_equal(pwrite(fd,
				"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
				"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
				32, size - 300),
			 32);
	record(&r, fd);
	assert_int_equal(r.ret, 0);
	assert_true(r.n_spans > 0 && r.n_spans < spans);
	assert_true(*r.reading.damage && r.reading.cut && !r.reading.ended);
	assert_in_range(r.reading.bytes, size - 400, size - 250);
	recorded_free(&r);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_values_are_kept),
		cmocka_unit_test(test_values_of_others_are_checked),
		cmocka_unit_test(test_callers_that_seem_shorter_hold_their_calls),
		cmocka_unit_test(test_calls_that_cross_get_lanes_of_their_own),
		cmocka_unit_test(test_a_caller_that_begins_with_its_call_is_around_it),
		cmocka_unit_test(test_crossing_calls_are_read_as_they_were),
		cmocka_unit_test(test_a_file_cut_anywhere_is_read_up_to_there),
		cmocka_unit_test(test_a_writer_that_is_killed_leaves_a_trace),
		cmocka_unit_test(test_errors_of_writes_are_kept),
		cmocka_unit_test(test_what_was_not_declared_is_refused),
		cmocka_unit_test(test_what_is_no_trace_is_refused),
		cmocka_unit_test(test_formats_go_by_name),
		cmocka_unit_test(test_pairs_and_complete_events_of_others),
		cmocka_unit_test(test_huge_objects_are_skipped),
		cmocka_unit_test(test_damage_is_located),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
