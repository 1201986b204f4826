/* SPDX-License-Identifier: MIT */
#include "read-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int input_open(struct input *in, int fd)
{
	*in = (struct input){ .fd = fd, .buf = malloc(INPUT_FIRST), .room = INPUT_FIRST };
	return in->buf ? 0 : -1;
}

void input_close(struct input *in)
{
	free(in->buf);
	in->buf = NULL;
}

static bool make_room(struct input *in)
{
	char *more;

	if (in->at >= in->room / 2 || (in->at && in->n == in->room)) {
		memmove(in->buf, in->buf + in->at, in->n - in->at);
		in->before += in->at;
		in->n -= in->at;
		in->at = 0;
	}
	if (in->n < in->room)
		return true;
	if (in->room >= INPUT_MAX)
		return false;
	more = realloc(in->buf, in->room * 2);
	if (!more)
		return false;
	in->buf = more;
	in->room *= 2;
	return true;
}

bool input_more(struct input *in)
{
	ssize_t got;

	if (in->eof || in->error || !make_room(in))
		return false;
	do
		got = read(in->fd, in->buf + in->n, in->room - in->n);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		in->error = errno;
	in->eof = got == 0;
	in->n += got > 0 ? (size_t)got : 0;
	return got > 0;
}
