/* SPDX-License-Identifier: MIT */
#include "out.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include "src/base/json.h"
#include "src/base/must.h"

int trace_out_init(struct trace_out *out, int fd)
{
	*out = (struct trace_out){ .fd = fd, .buf = malloc(TRACE_OUT_SIZE) };
	return out->buf ? 0 : -1;
}

void trace_out_done(struct trace_out *out)
{
	free(out->buf);
	out->buf = NULL;
}

static void write_all(struct trace_out *out, const char *data, size_t n)
{
	while (n && !out->error) {
		ssize_t done = write(out->fd, data, n);

		if (done > 0) {
			data += done;
			n -= (size_t)done;
			out->bytes += (uint64_t)done;
		} else if (done < 0 && errno == EAGAIN) {
			struct pollfd wait = { .fd = out->fd, .events = POLLOUT };

			poll(&wait, 1, -1);
		} else if (done == 0 || errno != EINTR) {
			out->error = done == 0 ? EIO : errno;
		}
	}
}

void trace_out_flush(struct trace_out *out)
{
	write_all(out, out->buf, out->n);
	out->n = 0;
}

void trace_out_put(struct trace_out *out, const void *data, size_t n)
{
	if (out->n + n > TRACE_OUT_SIZE)
		trace_out_flush(out);
	if (n > TRACE_OUT_SIZE) {
		write_all(out, data, n);
		return;
	}
	memcpy(out->buf + out->n, data, n);
	out->n += n;
}

/* ---- numbers ---- */

static const char two_digits[] = "00010203040506070809"
				 "10111213141516171819"
				 "20212223242526272829"
				 "30313233343536373839"
				 "40414243444546474849"
				 "50515253545556575859"
				 "60616263646566676869"
				 "70717273747576777879"
				 "80818283848586878889"
				 "90919293949596979899";

char *trace_put_number(char *at, uint64_t n)
{
	char digits[20], *from = digits + sizeof(digits);

	for (; n >= 100; n /= 100) {
		from -= 2;
		memcpy(from, two_digits + n % 100 * 2, 2);
	}
	if (n >= 10) {
		from -= 2;
		memcpy(from, two_digits + n * 2, 2);
	} else {
		*--from = (char)('0' + n);
	}
	memcpy(at, from, (size_t)(digits + sizeof(digits) - from));
	return at + (digits + sizeof(digits) - from);
}

char *trace_put_decimal(char *at, uint64_t n, unsigned int digits)
{
	uint64_t scale = digits == 3 ? 1000 : 1000000000, rest = n % scale;

	at = trace_put_number(at, n / scale);
	*at++ = '.';
	for (unsigned int i = digits; i--; rest /= 10)
		at[i] = (char)('0' + rest % 10);
	return at + digits;
}

/* ---- names ---- */

static char *cut(const char *name)
{
	return must(strndup(name, TRACE_NAME_MAX));
}

/* JSON allows DEL as it is; a terminal should not get it. Takes text over. */
static char *without_del(char *text)
{
	char *safe, *to;
	size_t n = 0;

	for (const char *c = text; *c; c++)
		n += *c == 0x7f;
	if (!n)
		return text;
	to = safe = must(malloc(strlen(text) + n * 5 + 1));
	for (const char *c = text; *c; c++)
		if (*c == 0x7f)
			to = stpcpy(to, "\\u007f");
		else
			*to++ = *c;
	*to = '\0';
	free(text);
	return safe;
}

char *trace_quoted(const char *name)
{
	char *bytes = name ? cut(name) : NULL, *text;
	json_t *value = json_must(json_name(bytes));

	text = must(json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII));
	json_decref(value);
	free(bytes);
	return without_del(text);
}

char *trace_utf8(const char *name)
{
	char *bytes = cut(name ? name : "?"), *text = json_text(bytes);

	free(bytes);
	return text;
}
