/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_WRITE_PRIV_H
#define SB_TRACE_WRITE_PRIV_H

#include "idmap.h"
#include "out.h"
#include "place.h"
#include "write.h"

/*
 * A format is a table of functions on the writer. write.c keeps the tables of threads and functions
 * and calls them with what was declared; they write to w->out, whose errors they need not look at.
 */
struct writer_thread {
	bool known;
	int32_t pid, tid;
	char *name;		  /* quoted (JSON) or UTF-8 (Perfetto) */
	uint32_t shown_tid;	  /* Chrome: by which a viewer knows it */
	unsigned int lanes_known; /* further lanes that are declared */
	struct place_lanes lanes;
};

struct writer_function {
	bool known;
	enum trace_code code;
	/* What is the same in each of its spans, of a call and of a delay. For Perfetto the
	 * interned name, and its number, 0 until a span needs it. */
	char *piece[2];
	size_t len[2];
	uint32_t iid[2];
	char *module; /* Perfetto: UTF-8 or NULL */
};

struct trace_writer {
	struct trace_out out;
	const struct trace_encoder *encoder;
	uint64_t begin_ns, begin_unix_ns;
	char *version, *command;
	struct writer_thread *thread; /* by id */
	struct writer_function *function;
	size_t n_threads, n_functions;
	uint64_t spans;
	uint32_t iids;			     /* Perfetto: interned so far */
	char (*value_name)[VALUE_NAME_SIZE]; /* ... of annotations, from ANNOTATION_VALUES on */
	uint32_t value_names;
	char **text; /* ... of frames of stacks, by their number - 1 */
	uint32_t n_texts;
	struct idmap texts; /* and by the hash of a text, its number */
	struct idmap tids;  /* Chrome: which thread is known by a pid and tid */
};

struct trace_encoder {
	void (*begin)(struct trace_writer *w);
	void (*process)(struct trace_writer *w, const struct trace_process *process);
	void (*thread)(struct trace_writer *w, uint32_t id, const struct trace_thread *thread);
	void (*function)(struct trace_writer *w, uint32_t id,
			 const struct trace_function *function);
	/* start is not before begin_ns */
	void (*span)(struct trace_writer *w, const struct trace_span *span);
	void (*end)(struct trace_writer *w, const struct trace_end *end);
};

extern const struct trace_encoder trace_pftrace, trace_chrome, trace_jsonl;

static inline uint64_t since_begin(const struct trace_writer *w, uint64_t ns)
{
	return ns > w->begin_ns ? ns - w->begin_ns : 0;
}

/* The end of a span, at most the end of time. */
static inline uint64_t span_end(uint64_t start, uint64_t dur)
{
	return start + dur < start ? UINT64_MAX : start + dur;
}

#endif
