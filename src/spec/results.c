/* SPDX-License-Identifier: MIT */
#include "results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "preset-file.h"
#include "preset.h"
#include "src/base/must.h"
#include "src/base/text.h"

enum { NAMES_MAX = 4096, NAME_LEN_MAX = 80 };

/* Files that were read, for as long as the program runs. */
static struct file {
	struct file *next;
	char *preset;
	struct result_name {
		int64_t code;
		char *name;
	} * name;
	size_t n;
} * files;

static void take_line(struct file *f, char *line)
{
	char *end, *name;
	long long code = strtoll(line, &end, 10);
	size_t len;

	name = end + strspn(end, " \t");
	len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
	if (end == line || name == end || !len || len > NAME_LEN_MAX || f->n == NAMES_MAX)
		return;
	f->name = must_realloc(f->name, (f->n + 1) * sizeof(*f->name));
	f->name[f->n++] = (struct result_name){ code, must(strndup(name, len)) };
}

static struct file *load(const char *preset)
{
	struct file *f = must_calloc(1, sizeof(*f));
	struct preset_text text;
	char name[64], *rest, *line;

	f->preset = text_dup(preset);
	snprintf(name, sizeof(name), "%.32s.results", preset);
	if (preset_read(name, &text, NULL) < 0 || !text.text)
		return f;
	rest = text.text;
	while ((line = strsep(&rest, "\n")))
		take_line(f, line);
	free(text.text);
	return f;
}

const char *results_name(const char *preset, int64_t code)
{
	struct file *f = files;

	while (f && strcmp(f->preset, preset) != 0)
		f = f->next;
	if (!f && preset_is_name(preset, strlen(preset))) {
		f = load(preset);
		f->next = files;
		files = f;
	}
	for (size_t i = 0; f && i < f->n; i++)
		if (f->name[i].code == code)
			return f->name[i].name;
	return NULL;
}
