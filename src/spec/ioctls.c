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

/* What a request asks for. */
static const struct asks {
	const char *request, *what;
} asks[] = {
	{ "NV_ESC_RM_CONTROL", "control" },
	{ "NV_ESC_RM_ALLOC", "class" },
};

enum { ASKS = sizeof(asks) / sizeof(*asks) };

static struct detail {
	char name[64];
	uint32_t number;
} * details[ASKS];
static size_t n_details[ASKS];
static bool loaded;

static void take_request(const char *line)
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

static void take_detail(const char *line)
{
	struct detail d;
	unsigned int number;
	char what[16];
	size_t i = 0;

	if (sscanf(line, "%15s %x %63[A-Za-z0-9_]", what, &number, d.name) != 3)
		return;
	while (i < ASKS && strcmp(what, asks[i].what) != 0)
		i++;
	if (i == ASKS || n_details[i] == NAMES_MAX)
		return;
	d.number = number;
	details[i] = must_realloc(details[i], (n_details[i] + 1) * sizeof(*details[i]));
	details[i][n_details[i]++] = d;
}

static void load(const char *file, void (*take)(const char *line))
{
	struct preset_text text;
	char *rest, *line;

	if (preset_read(file, &text, NULL) < 0 || !text.text)
		return;
	rest = text.text;
	while ((line = strsep(&rest, "\n")))
		take(line);
	free(text.text);
}

void ioctls_load(void)
{
	if (loaded)
		return;
	loaded = true;
	load("nvidia.ioctls", take_request);
	load("nvidia.rm", take_detail);
}

const char *ioctls_detail_name(const char *request, uint32_t detail)
{
	size_t i = 0;

	while (i < ASKS && strcmp(request, asks[i].request) != 0)
		i++;
	for (size_t n = 0; i < ASKS && n < n_details[i]; n++)
		if (details[i][n].number == detail)
			return details[i][n].name;
	return NULL;
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
