/* SPDX-License-Identifier: MIT */
#include "field.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool take_number(const char *text, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && (*end == ' ' || *end == '\n' || !*end);
}

static bool take_field(const char *text, const char *line, const char *key, uint64_t *value)
{
	const char *at = line ? strstr(text + strlen(line) + 1, key) : text;

	return at && take_number(at + (line ? strlen(key) : 0), value);
}

int field_read(const char *path, const char *line, const char *key, uint64_t *value)
{
	size_t len = line ? strlen(line) : 0, room = 0;
	FILE *from = fopen(path, "re");
	int why = ENODATA;
	char *text = NULL;

	*value = 0;
	if (!from)
		return errno;
	errno = 0;
	while (getline(&text, &room, from) > 0) {
		if (line && (strncmp(text, line, len) != 0 || text[len] != ' '))
			continue;
		why = take_field(text, line, key, value) ? 0 : ENODATA;
		break;
	}
	/* A kernel with psi=0 has the files and refuses to read them. */
	why = ferror(from) && errno ? errno : why;
	free(text);
	fclose(from);
	*value = why ? 0 : *value;
	return why;
}
