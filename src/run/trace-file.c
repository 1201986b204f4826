/* SPDX-License-Identifier: MIT */
#include "trace-file.h"
#include "callers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "src/base/log.h"
#include "src/base/must.h"
#include "src/base/text.h"
#include "elf/demangle.h"
#include "src/out/place.h"
#include "src/session/trace-pipe.h"
#include "trace/devices.h"
#include "trace/idmap.h"
#include "trace/kernels.h"

enum {
	PIPE_SIZE = 1 << 20,
	READ_MOST = 4, /* pipes, in one go */
	FLUSH_S = 1,
};

/* A pipe of calls. The numbers of threads and functions are its own. */
struct input {
	int fd; /* -1: it has ended */
	bool kernel;
	bool ended; /* it sent its end */
	struct trace_bytes bytes;
	struct trace_values values[TRACE_VALUE_SETS];
};

struct trace_file {
	struct trace_file_config cfg;
	struct input in[TRACE_FILE_INPUTS];
	int out;
	struct trace_writer *writer; /* NULL: nothing came yet, or it could not be opened */
	struct trace_end end;
	char **kernel; /* texts, by their number - 1: names of kernels, values */
	size_t n_kernels;
	struct callers *callers;  /* NULL: no maps came */
	struct idmap launcher;	  /* by function: its API plus 1 */
	struct idmap pid;	  /* by thread */
	struct kernels *launches; /* NULL: no function launches */
	struct idmap on_device;	  /* by function: its index in work, plus 1 */
	struct device_function {
		char *name, *kind;
	} * work;
	size_t n_work;
	struct devices *devices; /* NULL: no function runs on one */
	uint64_t spans;		 /* written */
	bool begun;		 /* trace_file_begin() was called */
	bool warned;
	time_t flushed;
	struct sb_err err;
};

static int cannot_write(const char *path, struct sb_err *err)
{
	char shown[TEXT_QUOTE_SIZE];
	int ret = err_sys(err, SB_EFILE, "cannot write the trace to %s",
			  text_quote(path, shown, sizeof(shown)));

	err_hint(err, "check that the directory exists, may be written to and has room");
	return ret;
}

/* Frees; the file is closed already. */
static void trace_file_drop(struct trace_file *f)
{
	for (size_t i = 0; i < TRACE_FILE_INPUTS; i++) {
		if (f->in[i].fd >= 0)
			close(f->in[i].fd);
		free(f->in[i].bytes.data);
	}
	for (size_t i = 0; i < f->n_kernels; i++)
		free(f->kernel[i]);
	free(f->kernel);
	callers_close(f->callers);
	idmap_free(&f->launcher);
	idmap_free(&f->pid);
	if (f->launches)
		kernels_free(f->launches);
	free(f->launches);
	idmap_free(&f->on_device);
	for (size_t i = 0; i < f->n_work; i++) {
		free(f->work[i].name);
		free(f->work[i].kind);
	}
	free(f->work);
	if (f->devices)
		devices_free(f->devices);
	free(f->devices);
	free(f);
}

/* The end for the tracer, to write to; negative: there are no descriptors. */
static int open_input(struct input *in, bool kernel)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	in->fd = ends[0];
	in->kernel = kernel;
	/* Where the limit of the user is lower, the default remains. */
	fcntl(in->fd, F_SETPIPE_SZ, PIPE_SIZE);
	fcntl(in->fd, F_SETFL, O_NONBLOCK);
	return ends[1];
}

struct trace_file *trace_file_open(const struct trace_file_config *cfg, int *fd, int *kernel,
				   struct sb_err *err)
{
	struct trace_file *f = must_calloc(1, sizeof(*f));

	f->cfg = *cfg;
	f->in[0].fd = f->in[1].fd = -1;
	f->out = out_place_open(cfg->path, O_CREAT);
	if (f->out < 0) {
		cannot_write(cfg->path, err);
		free(f);
		return NULL;
	}
	*fd = open_input(&f->in[0], false);
	if (kernel && *fd >= 0)
		*kernel = open_input(&f->in[1], true);
	if (*fd >= 0 && (!kernel || *kernel >= 0))
		return f;
	err_sys(err, SB_ESYS, "no pipe for the trace");
	trace_file_drop(f);
	return NULL;
}

void trace_file_poll(const struct trace_file *f, struct pollfd *fds)
{
	for (size_t i = 0; i < TRACE_FILE_INPUTS; i++)
		fds[i] = (struct pollfd){ .fd = f ? f->in[i].fd : -1, .events = POLLIN };
}

/* The numbers of two pipes must not meet; those of a single one stay small. */
static uint32_t number(const struct trace_file *f, const struct input *in, uint32_t id)
{
	return f->in[1].kernel ? id * 2 + in->kernel : id;
}

static void begin(struct trace_file *f, const char *payload, size_t size)
{
	struct trace_begin b;
	struct trace_about about = { .version = f->cfg.version, .command = f->cfg.command };

	if (f->writer || size != sizeof(b))
		return;
	memcpy(&b, payload, sizeof(b));
	about.begin_ns = b.begin_ns;
	about.begin_unix_ns = b.begin_unix_ns;
	f->writer = trace_writer_open(f->out, f->cfg.format, &about, &f->err);
}

/* The name behind `text`, which ends before `end`. */
static const char *next_name(const char *text, const char *end)
{
	return text + strnlen(text, (size_t)(end - text)) + 1;
}

enum { KERNELS_MOST = 1 << 16 };

/* The name becomes f's; NULL: it is not known. */
static void declare_kernel(struct trace_file *f, const struct input *in, uint32_t id, char *name)
{
	uint32_t n = number(f, in, id);

	if (!id || id > KERNELS_MOST) {
		free(name);
		return;
	}
	if (n > f->n_kernels) {
		f->kernel = must_realloc(f->kernel, n * sizeof(*f->kernel));
		memset(f->kernel + f->n_kernels, 0, (n - f->n_kernels) * sizeof(*f->kernel));
		f->n_kernels = n;
	}
	free(f->kernel[n - 1]);
	f->kernel[n - 1] = name;
}

static void declare_address(struct trace_file *f, const struct input *in, const char *payload,
			    size_t size)
{
	struct trace_address a;

	if (size != sizeof(a) || !f->callers)
		return;
	memcpy(&a, payload, sizeof(a));
	declare_kernel(f, in, a.number, callers_function(f->callers, a.pid, a.address));
}

/* ---- launches ---- */

static void learn_function(struct trace_file *f, const struct trace_function *function)
{
	uint32_t api = f->cfg.launcher ? f->cfg.launcher(function) : 0;

	if (!api)
		return;
	idmap_put(&f->launcher, function->id, api);
	if (!f->launches)
		f->launches = must_calloc(1, sizeof(*f->launches));
}

static void add_launch(struct trace_file *f, const struct trace_span *span)
{
	uint32_t api = f->launches ? idmap_get(&f->launcher, span->function) : 0;

	if (api && span->kind == TRACE_CALL)
		kernels_add(f->launches, (int32_t)idmap_get(&f->pid, span->thread), api - 1, span);
}

/* ---- what devices did ---- */

static void learn_device(struct trace_file *f, const struct trace_function *function)
{
	if (function->code != TRACE_DEVICE)
		return;
	f->work = must_realloc(f->work, (f->n_work + 1) * sizeof(*f->work));
	f->work[f->n_work++] = (struct device_function){ must_strdup(function->name),
							 must_strdup(function->module) };
	idmap_put(&f->on_device, function->id, (uint32_t)f->n_work);
	if (!f->devices)
		f->devices = must_calloc(1, sizeof(*f->devices));
}

static void add_device(struct trace_file *f, const struct trace_span *span)
{
	uint32_t i = f->devices ? idmap_get(&f->on_device, span->function) : 0;

	if (i)
		devices_add(f->devices, (int32_t)idmap_get(&f->pid, span->thread),
			    f->work[i - 1].kind, f->work[i - 1].name, span);
}

/* ---- declarations ---- */

static void declare_function(struct trace_file *f, const struct input *in,
			     const struct trace_declared *d, const char *name, const char *module)
{
	const enum trace_code code = d->code < TRACE_CODES ? (enum trace_code)d->code :
							     TRACE_NATIVE;
	char *plain = code == TRACE_DEVICE ? demangle_name(name, DEMANGLE_NO_RETURN) : NULL;
	const struct trace_function function = { number(f, in, d->id), code, plain ? plain : name,
						 module };

	trace_write_function(f->writer, &function);
	learn_function(f, &function);
	learn_device(f, &function);
	free(plain);
}

static void declare_thread(struct trace_file *f, const struct input *in,
			   const struct trace_declared *d, const char *name)
{
	if (d->pid > 0)
		idmap_put(&f->pid, number(f, in, d->id), (uint32_t)d->pid);
	trace_write_thread(f->writer, &(struct trace_thread){ .id = number(f, in, d->id),
							      .pid = d->pid,
							      .tid = d->tid,
							      .name = name,
							      .apart = in->kernel && d->tid });
}

static void declare(struct trace_file *f, const struct input *in, uint32_t type,
		    const char *payload, size_t size)
{
	struct trace_declared d;
	const char *name = payload + sizeof(d), *end = payload + size, *module;

	if (size < sizeof(d) + 2 || end[-1])
		return;
	memcpy(&d, payload, sizeof(d));
	module = next_name(name, end);
	if (module >= end)
		return;
	if (type == TRACE_MESSAGE_PROCESS)
		trace_write_process(f->writer, &(struct trace_process){ d.pid, name });
	else if (type == TRACE_MESSAGE_KERNEL)
		declare_kernel(f, in, d.id, must_strdup(name));
	else if (type == TRACE_MESSAGE_THREAD)
		declare_thread(f, in, &d, name);
	else
		declare_function(f, in, &d, name, module);
}

static void declare_values(struct input *in, const char *payload, size_t size)
{
	struct trace_values v;

	if (size != sizeof(v))
		return;
	memcpy(&v, payload, sizeof(v));
	if (v.set < TRACE_VALUE_SETS && v.n <= VALUE_MAX)
		in->values[v.set] = v;
}

/* The text with this number; NULL: there is none. */
static const char *text_at(const struct trace_file *f, const struct input *in, uint64_t id)
{
	uint32_t n = id && id <= KERNELS_MOST ? number(f, in, (uint32_t)id) : 0;

	return n && n <= f->n_kernels ? f->kernel[n - 1] : NULL;
}

static void write_span(struct trace_file *f, const struct input *in,
		       const struct trace_plain *plain, const struct trace_value *value, uint32_t n)
{
	struct trace_span span = {
		.start_ns = plain->start_ns,
		.dur_ns = plain->dur_ns,
		.thread = number(f, in, plain->thread),
		.function = number(f, in, plain->function),
		.kind = plain->kind,
		.n_values = n,
		.value = value,
		.stack = f->callers && !in->kernel ? callers_take(f->callers) : NULL,
		.kernel = plain->kernel ? text_at(f, in, plain->kernel) : NULL,
	};

	if (trace_write_span(f->writer, &span) == 0)
		f->spans++;
	add_launch(f, &span);
	add_device(f, &span);
}

static void spans(struct trace_file *f, const struct input *in, const char *payload, size_t size)
{
	struct trace_plain plain;

	for (size_t at = 0; at + sizeof(plain) <= size; at += sizeof(plain)) {
		memcpy(&plain, payload + at, sizeof(plain));
		write_span(f, in, &plain, NULL, 0);
	}
}

/* The text with this number; 0: an empty one. */
static void value_text_at(const struct trace_file *f, const struct input *in, struct trace_value *v)
{
	v->text = v->known && v->value ? text_at(f, in, v->value) : "";
	v->known &= v->text != NULL;
	v->value = 0;
}

/* An address becomes the name of what is there. */
static void value_name_at(const struct trace_file *f, const struct input *in,
			  const struct trace_plain *plain, struct trace_value *v)
{
	int32_t pid = (int32_t)idmap_get(&f->pid, number(f, in, plain->thread));

	v->known &= f->callers != NULL;
	if (v->known)
		v->text = v->type == VALUE_CODE ? callers_place(f->callers, pid, v->value) :
						  callers_object(f->callers, pid, v->value);
	v->known &= v->text != NULL;
	v->type = VALUE_STR;
	v->value = 0;
}

static void valued_spans(struct trace_file *f, const struct input *in, const char *payload,
			 size_t size)
{
	struct trace_valued span;

	for (size_t at = 0; at + sizeof(span) <= size; at += sizeof(span)) {
		struct trace_value value[VALUE_MAX] = { 0 };
		const struct trace_values *v;
		uint32_t n = 0;

		memcpy(&span, payload + at, sizeof(span));
		v = &in->values[span.set % TRACE_VALUE_SETS];
		for (; n < v->n; n++) {
			memcpy(value[n].name, v->value[n].name, sizeof(value[n].name));
			value[n].type = v->value[n].type;
			value[n].known = !(span.unknown >> n & 1);
			value[n].value = value[n].known ?
						 value_extend(value[n].type, span.value[n]) :
						 0;
			if (value[n].type == VALUE_STR)
				value_text_at(f, in, &value[n]);
			else if (value_is_named(value[n].type))
				value_name_at(f, in, &span.plain, &value[n]);
		}
		write_span(f, in, &span.plain, value, n);
	}
}

static void take_end(struct trace_file *f, struct input *in, const char *payload, size_t size)
{
	struct trace_end end;

	if (size != sizeof(end))
		return;
	memcpy(&end, payload, sizeof(end));
	f->end.spans += end.spans;
	f->end.lost += end.lost;
	f->end.filtered += end.filtered;
	if (end.end_ns > f->end.end_ns)
		f->end.end_ns = end.end_ns;
	in->ended = true;
}

/* Of every pipe: the tracer did not die. */
static bool all_ended(const struct trace_file *f)
{
	return f->in[0].ended && (!f->in[1].kernel || f->in[1].ended);
}

static void message(struct trace_file *f, struct input *in, const struct trace_message *m,
		    const char *payload)
{
	if (m->type == TRACE_MESSAGE_BEGIN && !in->kernel)
		begin(f, payload, m->size);
	if (!f->writer)
		return;
	switch (m->type) {
	case TRACE_MESSAGE_PROCESS:
	case TRACE_MESSAGE_THREAD:
	case TRACE_MESSAGE_FUNCTION:
	case TRACE_MESSAGE_KERNEL:
		declare(f, in, m->type, payload, m->size);
		break;
	case TRACE_MESSAGE_VALUES:
		declare_values(in, payload, m->size);
		break;
	case TRACE_MESSAGE_MAPS:
		if (!f->callers)
			f->callers = callers_open();
		callers_maps(f->callers, payload, m->size);
		break;
	case TRACE_MESSAGE_STACK:
		if (f->callers)
			callers_stack(f->callers, payload, m->size);
		break;
	case TRACE_MESSAGE_ADDRESS:
		declare_address(f, in, payload, m->size);
		break;
	case TRACE_MESSAGE_SPANS:
		spans(f, in, payload, m->size);
		break;
	case TRACE_MESSAGE_VALUED:
		valued_spans(f, in, payload, m->size);
		break;
	case TRACE_MESSAGE_END:
		take_end(f, in, payload, m->size);
		break;
	default:
		break;
	}
}

static void take_messages(struct trace_file *f, struct input *in)
{
	struct trace_message m;
	const char *payload;
	size_t at = 0;

	/* The first pipe opens the file: it begins earlier. */
	if (!in->bytes.len || (in->kernel && !f->writer))
		return;
	while (trace_get(&in->bytes, &at, &m, &payload))
		message(f, in, &m, payload);
	if (f->writer && trace_writer_error(f->writer) && !f->warned) {
		log_warn("%s: %s: the rest of the trace is lost", f->cfg.path,
			 strerror(trace_writer_error(f->writer)));
		f->warned = true;
	}
	in->bytes.len -= at;
	memmove(in->bytes.data, in->bytes.data + at, in->bytes.len);
}

/* What slowly comes in is in the file a second later. */
static void flush_sometimes(struct trace_file *f)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!f->writer || now.tv_sec - f->flushed < FLUSH_S)
		return;
	f->flushed = now.tv_sec;
	trace_writer_flush(f->writer);
}

/* False: nothing is there. */
static bool read_some(struct trace_file *f, struct input *in)
{
	ssize_t n;

	if (in->bytes.cap < in->bytes.len + PIPE_SIZE) {
		in->bytes.cap = in->bytes.len + PIPE_SIZE;
		in->bytes.data = must_realloc(in->bytes.data, in->bytes.cap);
	}
	do
		n = read(in->fd, in->bytes.data + in->bytes.len, in->bytes.cap - in->bytes.len);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		close(in->fd);
		in->fd = -1;
		return false;
	}
	in->bytes.len += (size_t)n;
	if (f->begun)
		take_messages(f, in);
	return true;
}

void trace_file_begin(struct trace_file *f)
{
	struct stat st;

	if (fstat(f->out, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(f->out, 0) < 0)
		log_warn("%s: %s", f->cfg.path, strerror(errno));
	f->begun = true;
	for (size_t i = 0; i < TRACE_FILE_INPUTS; i++)
		take_messages(f, &f->in[i]);
}

void trace_file_read(struct trace_file *f)
{
	for (size_t i = 0; i < TRACE_FILE_INPUTS; i++)
		for (int n = 0; n < READ_MOST && f->in[i].fd >= 0 && read_some(f, &f->in[i]); n++)
			;
	flush_sometimes(f);
}

/* The tracer has ended or is about to: all that it sent is in the pipes or comes soon. */
static void read_rest(struct trace_file *f)
{
	while (f->in[0].fd >= 0 || f->in[1].fd >= 0) {
		struct pollfd fds[TRACE_FILE_INPUTS];

		trace_file_poll(f, fds);
		poll(fds, TRACE_FILE_INPUTS, -1);
		trace_file_read(f);
	}
}

int trace_file_close(struct trace_file *f, struct trace_end *end, struct kernels **launches,
		     struct devices **devices, struct sb_err *err)
{
	int ret = 0;

	*end = (struct trace_end){ 0 };
	*launches = NULL;
	*devices = NULL;
	if (!f)
		return 0;
	read_rest(f);
	*end = f->end;
	if (f->err.code) {
		*err = f->err;
		ret = -(int)err->code;
	}
	if (f->writer)
		ret = trace_writer_close(f->writer, all_ended(f) ? &f->end : NULL, err);
	if (ret == 0 && close(f->out) < 0)
		ret = cannot_write(f->cfg.path, err);
	else if (ret < 0)
		close(f->out);
	if (ret == 0 && all_ended(f) && f->spans != f->end.spans)
		ret = err_set(err, SB_EINTERNAL,
			      "the trace has %llu records of %llu: do not rely on it",
			      (unsigned long long)f->spans, (unsigned long long)f->end.spans);
	*launches = f->launches;
	f->launches = NULL;
	*devices = f->devices;
	f->devices = NULL;
	trace_file_drop(f);
	return ret;
}
