/* SPDX-License-Identifier: MIT */
#include "trace-pipe.h"

#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

enum { NAME_MAX_BYTES = 4096 };

static char *make_space(struct trace_bytes *b, size_t size)
{
	if (b->len + size > b->cap) {
		b->cap = (b->len + size) * 2;
		b->data = must_realloc(b->data, b->cap);
	}
	b->len += size;
	return b->data + b->len - size;
}

void trace_put(struct trace_bytes *b, enum trace_message_type type, const void *payload,
	       size_t size)
{
	struct trace_message m = { type, (uint32_t)size };
	char *to = make_space(b, sizeof(m) + size);

	memcpy(to, &m, sizeof(m));
	if (size)
		memcpy(to + sizeof(m), payload, size);
}

static size_t name_size(const char *name)
{
	return strnlen(name, NAME_MAX_BYTES) + 1;
}

/* Appends a name and its end to the payload at `to`. */
static char *put_name(char *to, const char *name)
{
	size_t size = name_size(name);

	memcpy(to, name, size - 1);
	to[size - 1] = '\0';
	return to + size;
}

static void put_declared(struct trace_bytes *b, enum trace_message_type type,
			 const struct trace_declared *declared, const char *name,
			 const char *module)
{
	size_t size = sizeof(*declared) + name_size(name) + name_size(module);
	struct trace_message m = { type, (uint32_t)size };
	char *to = make_space(b, sizeof(m) + size);

	memcpy(to, &m, sizeof(m));
	memcpy(to + sizeof(m), declared, sizeof(*declared));
	put_name(put_name(to + sizeof(m) + sizeof(*declared), name), module);
}

void trace_put_process(struct trace_bytes *b, const struct trace_process *process)
{
	struct trace_declared d = { .pid = process->pid };

	put_declared(b, TRACE_MESSAGE_PROCESS, &d, process->name, "");
}

void trace_put_thread(struct trace_bytes *b, const struct trace_thread *thread)
{
	struct trace_declared d = { thread->id, thread->pid, thread->tid, 0 };

	put_declared(b, TRACE_MESSAGE_THREAD, &d, thread->name, "");
}

void trace_put_function(struct trace_bytes *b, const struct trace_function *function)
{
	struct trace_declared d = { .id = function->id, .code = function->code };

	put_declared(b, TRACE_MESSAGE_FUNCTION, &d, function->name,
		     function->module ? function->module : "");
}

void trace_put_kernel(struct trace_bytes *b, uint32_t number, const char *name)
{
	struct trace_declared d = { .id = number };

	put_declared(b, TRACE_MESSAGE_KERNEL, &d, name, "");
}

void trace_put_values(struct trace_bytes *b, const struct trace_values *values)
{
	trace_put(b, TRACE_MESSAGE_VALUES, values, sizeof(*values));
}

/* n things of that size, in as many messages as they need. */
static void put_array(struct trace_bytes *b, enum trace_message_type type, const void *array,
		      size_t size, size_t n)
{
	const size_t most = TRACE_MESSAGE_MAX / size;
	const char *at = array;

	while (n) {
		size_t part = n < most ? n : most;

		trace_put(b, type, at, part * size);
		at += part * size;
		n -= part;
	}
}

void trace_put_spans(struct trace_bytes *b, const struct trace_plain *span, size_t n)
{
	put_array(b, TRACE_MESSAGE_SPANS, span, sizeof(*span), n);
}

void trace_put_valued(struct trace_bytes *b, const struct trace_valued *span, size_t n)
{
	put_array(b, TRACE_MESSAGE_VALUED, span, sizeof(*span), n);
}

bool trace_get(const struct trace_bytes *b, size_t *at, struct trace_message *message,
	       const char **payload)
{
	if (b->len - *at < sizeof(*message))
		return false;
	memcpy(message, b->data + *at, sizeof(*message));
	if (b->len - *at - sizeof(*message) < message->size)
		return false;
	*payload = b->data + *at + sizeof(*message);
	*at += sizeof(*message) + message->size;
	return true;
}
