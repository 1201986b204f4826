/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STATUS_LIMIT = 64 << 10, MESSAGE_LIMIT = 1 << 30 };

struct wire_head {
	uint32_t len, type;
};

static void reserve(char **buf, size_t *cap, size_t need)
{
	if (need <= *cap)
		return;
	*cap = need * 2;
	*buf = realloc(*buf, *cap);
	if (!*buf)
		abort();
}

void wire_open(struct wire_out *out, int fd)
{
	memset(out, 0, sizeof(*out));
	out->fd = fd;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

bool wire_flush(struct wire_out *out)
{
	while (out->len && !out->broken) {
		ssize_t n = send(out->fd, out->kept, out->len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			out->broken = errno != EAGAIN;
			break;
		}
		out->len -= (size_t)n;
		memmove(out->kept, out->kept + n, out->len);
	}
	return !out->len || out->broken;
}

static void keep(struct wire_out *out, const void *data, size_t n)
{
	reserve(&out->kept, &out->cap, out->len + n);
	if (n)
		memcpy(out->kept + out->len, data, n);
	out->len += n;
}

void wire_send(struct wire_out *out, enum wire_type type, const void *a, size_t na, const void *b,
	       size_t nb)
{
	struct wire_head head = { .len = (uint32_t)(na + nb), .type = type };

	if (out->broken || (type == WIRE_STATUS && out->len > STATUS_LIMIT))
		return;
	keep(out, &head, sizeof(head));
	keep(out, a, na);
	keep(out, b, nb);
	wire_flush(out);
}

void wire_close(struct wire_out *out)
{
	free(out->kept);
	close(out->fd);
}

int wire_read(struct wire_in *in)
{
	ssize_t n;

	reserve(&in->buf, &in->cap, in->len + 65536);
	n = read(in->fd, in->buf + in->len, in->cap - in->len - 1);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0)
		return -1;
	in->len += (size_t)n;
	return 0;
}

bool wire_next(struct wire_in *in, enum wire_type *type, char **payload, size_t *len)
{
	static char *last;
	struct wire_head head;
	size_t whole;

	if (in->len < sizeof(head))
		return false;
	memcpy(&head, in->buf, sizeof(head));
	whole = sizeof(head) + head.len;
	if (head.len > MESSAGE_LIMIT || in->len < whole)
		return false;
	free(last);
	last = malloc(head.len + 1);
	if (!last)
		abort();
	memcpy(last, in->buf + sizeof(head), head.len);
	last[head.len] = '\0';
	in->len -= whole;
	memmove(in->buf, in->buf + whole, in->len);
	*type = head.type;
	*payload = last;
	*len = head.len;
	return true;
}
