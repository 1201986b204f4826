/* SPDX-License-Identifier: MIT */
#include "write-priv.h"

#include <errno.h>
#include <stdlib.h>
#include "src/base/must.h"

enum { IDS_MAX = 1 << 24 };

const char *const trace_code_name[TRACE_CODES] = { "native", "python", "kernel", "device" };

static const struct trace_encoder *const encoders[] = {
	[TRACE_PFTRACE] = &trace_pftrace,
	[TRACE_CHROME] = &trace_chrome,
	[TRACE_JSONL] = &trace_jsonl,
};

struct trace_writer *trace_writer_open(int fd, enum trace_format format,
				       const struct trace_about *about, struct sb_err *err)
{
	struct trace_writer *w = calloc(1, sizeof(*w));

	if (!w || trace_out_init(&w->out, fd) < 0) {
		free(w);
		err_set(err, SB_ENOMEM, "no memory for a trace");
		return NULL;
	}
	w->encoder = encoders[format];
	w->begin_ns = about->begin_ns;
	w->begin_unix_ns = about->begin_unix_ns;
	w->version = must_strdup(about->version ? about->version : "?");
	w->command = must_strdup(about->command ? about->command : "?");
	w->encoder->begin(w);
	if (trace_writer_flush(w) == 0)
		return w;
	trace_writer_close(w, NULL, err);
	return NULL;
}

static int state_of(const struct trace_writer *w)
{
	return w->out.error ? -SB_EFILE : 0;
}

int trace_write_process(struct trace_writer *w, const struct trace_process *process)
{
	w->encoder->process(w, process);
	return state_of(w);
}

/* Makes room for entry `id` of an array of `size` bytes each; new entries are zero. */
static int grow(void **array, size_t *n, size_t size, uint32_t id)
{
	size_t want = *n ? *n : 64;
	void *more;

	if (id < *n)
		return 0;
	if (!id || id > IDS_MAX)
		return -SB_EINTERNAL;
	while (want <= id)
		want *= 2;
	more = realloc(*array, want * size);
	if (!more)
		return -SB_ENOMEM;
	memset((char *)more + *n * size, 0, (want - *n) * size);
	*array = more;
	*n = want;
	return 0;
}

int trace_write_thread(struct trace_writer *w, const struct trace_thread *thread)
{
	int ret = thread->id ?
			  grow((void **)&w->thread, &w->n_threads, sizeof(*w->thread), thread->id) :
			  -SB_EINTERNAL;
	struct writer_thread *t;

	if (ret < 0 || w->out.error)
		return ret < 0 ? ret : state_of(w);
	t = &w->thread[thread->id];
	t->known = true;
	t->pid = thread->pid;
	t->tid = thread->tid;
	free(t->name);
	t->name = NULL;
	w->encoder->thread(w, thread->id, thread);
	return state_of(w);
}

static void forget_pieces(struct writer_function *f)
{
	for (int kind = 0; kind < 2; kind++) {
		free(f->piece[kind]);
		f->piece[kind] = NULL;
		f->iid[kind] = 0;
	}
	free(f->module);
	f->module = NULL;
}

int trace_write_function(struct trace_writer *w, const struct trace_function *function)
{
	int ret = function->id ? grow((void **)&w->function, &w->n_functions, sizeof(*w->function),
				      function->id) :
				 -SB_EINTERNAL;
	struct writer_function *f;

	if (ret < 0 || w->out.error)
		return ret < 0 ? ret : state_of(w);
	f = &w->function[function->id];
	forget_pieces(f);
	f->known = true;
	f->code = function->code;
	w->encoder->function(w, function->id, function);
	for (int kind = 0; kind < 2; kind++)
		f->len[kind] = f->piece[kind] ? strlen(f->piece[kind]) : 0;
	return state_of(w);
}

int trace_write_span(struct trace_writer *w, const struct trace_span *span)
{
	if (w->out.error)
		return -SB_EFILE;
	if (span->thread >= w->n_threads || !w->thread[span->thread].known ||
	    span->function >= w->n_functions || !w->function[span->function].known ||
	    (unsigned int)span->kind > TRACE_DELAY || span->n_values > VALUE_MAX ||
	    (span->stack && span->stack->n > TRACE_FRAMES_MAX))
		return -SB_EINTERNAL;
	w->spans++;
	w->encoder->span(w, span);
	return state_of(w);
}

int trace_writer_flush(struct trace_writer *w)
{
	trace_out_flush(&w->out);
	return state_of(w);
}

int trace_writer_error(const struct trace_writer *w)
{
	return w->out.error;
}

uint64_t trace_writer_bytes(const struct trace_writer *w)
{
	return w->out.bytes;
}

static int fail(int error, struct sb_err *err)
{
	if (!error)
		return 0;
	errno = error;
	err_sys(err, SB_EFILE, "the trace could not be written to its end");
	if (err)
		err->sys_errno = error;
	if (err && error == ENOSPC)
		err_hint(err, "what was written is readable; make room, or write it elsewhere");
	return -SB_EFILE;
}

int trace_writer_close(struct trace_writer *w, const struct trace_end *end, struct sb_err *err)
{
	int error;

	if (end && !w->out.error)
		w->encoder->end(w, end);
	trace_out_flush(&w->out);
	error = w->out.error;
	for (size_t i = 0; i < w->n_threads; i++) {
		free(w->thread[i].name);
		place_free(&w->thread[i].lanes);
	}
	for (size_t i = 0; i < w->n_functions; i++)
		forget_pieces(&w->function[i]);
	free(w->thread);
	free(w->function);
	free(w->value_name);
	for (uint32_t i = 0; i < w->n_texts; i++)
		free(w->text[i]);
	free(w->text);
	idmap_free(&w->texts);
	idmap_free(&w->tids);
	free(w->version);
	free(w->command);
	trace_out_done(&w->out);
	free(w);
	return fail(error, err);
}
