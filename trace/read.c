/* SPDX-License-Identifier: MIT */
#include "read-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int (*const formats[])(struct reader *r) = {
	[TRACE_PFTRACE] = read_pftrace,
	[TRACE_CHROME] = read_chrome,
	[TRACE_JSONL] = read_jsonl,
};

static const char *const blanks = " \t\r\n";

/* The first character that is not blank; 0: none, -1: a binary file's. */
static int first_of(struct input *in, size_t *at)
{
	size_t i = in->at;

	for (;; i++) {
		if (i == in->n && !input_more(in))
			return 0;
		if (!in->buf[i] || !strchr(blanks, in->buf[i]))
			break;
	}
	*at = i;
	return (unsigned char)in->buf[i];
}

/* Whether an object is that of a trace as a whole: it has "traceEvents" before its first level
 * ends. The search goes as far as the window is filled at once. */
static bool holds_events(struct input *in, size_t from)
{
	static const char key[] = "\"traceEvents\"";
	const char *found = memmem(in->buf + from, in->n - from, key, strlen(key));
	unsigned int depth = 0;
	bool text = false;

	if (!found)
		return false;
	for (const char *c = in->buf + from; c < found; c++) {
		if (text && *c == '\\')
			c++;
		else if (*c == '"')
			text = !text;
		else if (!text && (*c == '{' || *c == '['))
			depth++;
		else if (!text && (*c == '}' || *c == ']') && !--depth)
			return false;
	}
	return depth == 1 && !text;
}

static int detect(struct reader *r, enum trace_format *format)
{
	struct input *in = &r->in;
	size_t at = 0;
	int c;

	while (in->n < INPUT_FIRST / 2 && input_more(in))
		;
	c = in->n ? (unsigned char)in->buf[0] : 0;
	if (in->error)
		return 0;
	/* 0x0a, a newline, is also the tag of a packet: what follows a blank line is text. */
	if (c == '\n' && in->n > 2 && !(in->buf[1] == '{' && in->buf[2] == '"')) {
		*format = TRACE_PFTRACE;
		return 0;
	}
	c = first_of(in, &at);
	if (c == '[' || c == '{') {
		*format = c == '[' || holds_events(in, at) ? TRACE_CHROME : TRACE_JSONL;
		return 0;
	}
	err_set(r->err, SB_EFILE, c ? "'%s' is no trace" : "'%s' is empty", r->name);
	err_hint(r->err,
		 "a trace is a file of Perfetto's (.pftrace), Chrome's (.json) or sbinject's "
		 "(.jsonl) format");
	return -SB_EFILE;
}

static int read_all(struct reader *r)
{
	static const struct trace_about none;
	int ret = detect(r, &r->reading->format);

	if (ret == 0 && !r->in.error)
		ret = formats[r->reading->format](r);
	r->reading->bytes = input_offset(&r->in);
	if (r->in.error) {
		errno = r->in.error;
		return err_sys(r->err, SB_EFILE, "'%s' cannot be read", r->name);
	}
	if (ret == 0 && !r->about_given && !r->reading->spans &&
	    r->reading->format != TRACE_CHROME && !r->reading->cut) {
		err_set(r->err, SB_EFILE, "'%s' is no trace that sbinject wrote", r->name);
		err_hint(r->err, "traces of other programs are read in Chrome's format only");
		return -SB_EFILE;
	}
	if (ret == 0)
		ret = decl_about(r, &none);
	r->reading->cut |= r->reading->ours && !r->reading->ended;
	return ret;
}

int trace_read(int fd, const char *name, const struct trace_sink *sink, void *ctx,
	       struct trace_reading *reading, struct sb_err *err)
{
	struct reader r = {
		.name = name, .sink = sink, .ctx = ctx, .reading = reading, .err = err
	};
	int ret;

	*reading = (struct trace_reading){ 0 };
	if (input_open(&r.in, fd) < 0)
		return err_set(err, SB_ENOMEM, "no memory to read '%s'", name);
	r.names = decl_new();
	ret = read_all(&r);
	decl_free(r.names);
	input_close(&r.in);
	return ret;
}
