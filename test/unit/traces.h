/* SPDX-License-Identifier: MIT */
#ifndef TRACES_H
#define TRACES_H

/* Traces for tests: made at random, written to a memory file, read back into a plain list. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "src/base/must.h"
#include "trace/read.h"
#include "trace/write.h"

#define TRACES_BEGIN_NS	  UINT64_C(123456789012345)
#define TRACES_BEGIN_UNIX UINT64_C(1790000000123456789)

static const char *const trace_hostile[] = {
	"plain",
	"with \"quotes\" and \\ backslash",
	"new\nline\r\ttab",
	"invalid \xff\xfe UTF-8 \xc3",
	"C1 \xc2\x9b"
	"31m and ESC \x1b[31m and DEL \x7f",
	"\xe2\x80\xae reversed </script> & <b> ; ' %s",
	"\xee\xbe\x80 a byte's own character",
	"delay: not a delay",
	"\xf0\x9f\x90\xa2 {[,:]}",
	"",
};

enum { HOSTILE = sizeof(trace_hostile) / sizeof(*trace_hostile) };

static inline uint64_t trace_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

/* What a reader handed on, ids as it gave them. */
struct recorded {
	char *version, *command;
	uint64_t begin_ns, begin_unix_ns;
	struct trace_process *process; /* declarations, in their order */
	struct trace_thread *thread;
	struct trace_function *function;
	struct trace_span *span;
	size_t n_processes, n_threads, n_functions, n_spans;
	unsigned int ends;
	struct trace_end end;
	struct trace_reading reading;
	struct sb_err err;
	int ret;
};

static inline char *record_text(const char *text)
{
	return text ? must_strdup(text) : NULL;
}

/* Room for one more, where n is a power of two. */
static inline void *record_room(void *array, size_t n, size_t size)
{
	return n & (n - 1) ? array : must_realloc(array, (n ? n * 2 : 1) * size);
}

static inline int record_about(void *ctx, const struct trace_about *about)
{
	struct recorded *r = ctx;

	r->version = record_text(about->version);
	r->command = record_text(about->command);
	r->begin_ns = about->begin_ns;
	r->begin_unix_ns = about->begin_unix_ns;
	return 0;
}

static inline int record_process(void *ctx, const struct trace_process *process)
{
	struct recorded *r = ctx;

	r->process = record_room(r->process, r->n_processes, sizeof(*r->process));
	r->process[r->n_processes] = *process;
	r->process[r->n_processes++].name = record_text(process->name);
	return 0;
}

static inline int record_thread(void *ctx, const struct trace_thread *thread)
{
	struct recorded *r = ctx;

	r->thread = record_room(r->thread, r->n_threads, sizeof(*r->thread));
	r->thread[r->n_threads] = *thread;
	r->thread[r->n_threads++].name = record_text(thread->name);
	return 0;
}

static inline int record_function(void *ctx, const struct trace_function *function)
{
	struct recorded *r = ctx;

	r->function = record_room(r->function, r->n_functions, sizeof(*r->function));
	r->function[r->n_functions] = *function;
	r->function[r->n_functions].name = record_text(function->name);
	r->function[r->n_functions++].module = record_text(function->module);
	return 0;
}

static inline int record_span(void *ctx, const struct trace_span *span)
{
	struct recorded *r = ctx;

	r->span = record_room(r->span, r->n_spans, sizeof(*r->span));
	r->span[r->n_spans++] = *span;
	return 0;
}

static inline int record_end(void *ctx, const struct trace_end *end)
{
	struct recorded *r = ctx;

	r->ends++;
	r->end = *end;
	return 0;
}

static const struct trace_sink record_sink = {
	.about = record_about,
	.process = record_process,
	.thread = record_thread,
	.function = record_function,
	.span = record_span,
	.end = record_end,
};

static inline void recorded_free(struct recorded *r)
{
	for (size_t i = 0; i < r->n_processes; i++)
		free((void *)r->process[i].name);
	for (size_t i = 0; i < r->n_threads; i++)
		free((void *)r->thread[i].name);
	for (size_t i = 0; i < r->n_functions; i++) {
		free((void *)r->function[i].name);
		free((void *)r->function[i].module);
	}
	free(r->version);
	free(r->command);
	free(r->process);
	free(r->thread);
	free(r->function);
	free(r->span);
	memset(r, 0, sizeof(*r));
}

static inline void record(struct recorded *r, int fd)
{
	memset(r, 0, sizeof(*r));
	lseek(fd, 0, SEEK_SET);
	r->ret = trace_read(fd, "test", &record_sink, r, &r->reading, &r->err);
}

static inline int trace_memory(void)
{
	return memfd_create("trace", MFD_CLOEXEC);
}

static inline int trace_of_text(const char *text, size_t n)
{
	int fd = trace_memory();

	if (write(fd, text, n) != (ssize_t)n)
		abort();
	return fd;
}

static inline struct trace_writer *trace_start(int fd, enum trace_format format)
{
	struct trace_about about = { "0.1.0", "sbinject trace 'a b' \"c\"", TRACES_BEGIN_NS,
				     TRACES_BEGIN_UNIX };
	struct sb_err err = { 0 };

	return must(trace_writer_open(fd, format, &about, &err));
}

/*
 * A random trace of nested calls of several threads, in the order of ends: each thread has a stack
 * of open calls; at each step one call begins or ends. emit gets every span.
 */
struct traces_maker {
	uint64_t seed;
	unsigned int threads, functions;
	size_t spans;
	bool ties; /* calls may begin and end together with others */
};

enum { MAKER_DEPTH = 24 };

struct maker_open {
	uint64_t start;
	uint32_t function;
	enum trace_kind kind;
};

static inline void trace_make(const struct traces_maker *m,
			      void (*emit)(void *ctx, const struct trace_span *span), void *ctx)
{
	struct maker_thread {
		struct maker_open open[MAKER_DEPTH];
		unsigned int n, aim;
		uint64_t now;
	} *threads = must_calloc(m->threads, sizeof(*threads));
	uint64_t seed = m->seed;
	size_t made = 0;

	for (size_t steps = 0; made < m->spans; steps++) {
		struct maker_thread *t = &threads[trace_random(&seed) % m->threads];
		bool enter = !t->n || (t->n < MAKER_DEPTH && trace_random(&seed) % 2 &&
				       trace_random(&seed) % 8 > t->n % 8);

		t->now += (m->ties ? trace_random(&seed) % 3 == 0 : 1) *
			  (1 + (trace_random(&seed) % 20 ? trace_random(&seed) % 50 :
							   trace_random(&seed) % 100000));
		if (enter) {
			t->open[t->n++] = (struct maker_open){
				t->now, 1 + (uint32_t)(trace_random(&seed) % m->functions),
				trace_random(&seed) % 10 ? TRACE_CALL : TRACE_DELAY
			};
		} else {
			struct maker_open *o = &t->open[--t->n];
			struct trace_span span = {
				.start_ns = TRACES_BEGIN_NS + o->start,
				.dur_ns = t->now - o->start,
				.thread = (uint32_t)(t - threads) + 1,
				.function = o->function,
				.kind = o->kind,
			};

			emit(ctx, &span);
			made++;
		}
	}
	free(threads);
}

#endif
