/* SPDX-License-Identifier: MIT */
#include "ioctls.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "elf/symbol.h"
#include "preset-file.h"
#include "src/base/must.h"

enum { NAMES_MAX = 4096 };

static struct request {
	char device[16], name[64];
	char magic; /* '-': the number is the whole request */
	uint32_t number;
} * requests;
static size_t n_requests;
static bool loaded;

static void take_line(const char *line)
{
	struct request r;
	int number;

	if (n_requests == NAMES_MAX ||
	    sscanf(line, "%15s %c %i %63[A-Za-z0-9_]", r.device, &r.magic, &number, r.name) != 4 ||
	    r.device[0] == '#')
		return;
	r.number = (uint32_t)number;
	requests = must_realloc(requests, (n_requests + 1) * sizeof(*requests));
	requests[n_requests++] = r;
}

void ioctls_load(void)
{
	struct preset_text text;
	char *rest, *line;

	if (loaded)
		return;
	loaded = true;
	if (preset_read("nvidia.ioctls", &text, NULL) < 0 || !text.text)
		return;
	rest = text.text;
	while ((line = strsep(&rest, "\n")))
		take_line(line);
	free(text.text);
}

const char *ioctls_name(const char *device, uint32_t cmd, uint32_t number)
{
	enum { MAGIC_AT = 8 };
	char magic = (char)(cmd >> MAGIC_AT & 0xff);

	for (size_t i = 0; i < n_requests; i++) {
		const struct request *r = &requests[i];

		if (r->number == (r->magic == '-' ? cmd : number) &&
		    (r->magic == '-' || r->magic == magic) && glob_match(r->device, device))
			return r->name;
	}
	return NULL;
}
