/* SPDX-License-Identifier: MIT */
#include "symbols.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 16384 };

/* "ADDRESS TYPE NAME", and behind the name a tab and the module where it is of one. */
static void take_line(const char *line, size_t len, const char *const name[], __u64 address[],
		      size_t n)
{
	const char *space = memchr(line, ' ', len);

	if (!space || len < (size_t)(space - line) + 4)
		return;
	len -= (size_t)(space - line) + 3;
	for (size_t i = 0; i < n; i++)
		if (space[3] == name[i][0] && len == strlen(name[i]) &&
		    memcmp(space + 3, name[i], len) == 0)
			address[i] = strtoull(line, NULL, 16);
}

static size_t found(const __u64 address[], size_t n)
{
	size_t so_many = 0;

	for (size_t i = 0; i < n; i++)
		so_many += address[i] != 0;
	return so_many;
}

void symbols_find(const char *const name[], __u64 address[], size_t n)
{
	int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	char text[CHUNK];
	size_t have = 0;
	ssize_t got;

	memset(address, 0, n * sizeof(*address));
	while (fd >= 0 && found(address, n) < n &&
	       (got = read(fd, text + have, sizeof(text) - have)) > 0) {
		const char *line = text, *end;

		have += (size_t)got;
		while ((end = memchr(line, '\n', (size_t)(text + have - line)))) {
			take_line(line, (size_t)(end - line), name, address, n);
			line = end + 1;
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
	}
	if (fd >= 0)
		close(fd);
}
