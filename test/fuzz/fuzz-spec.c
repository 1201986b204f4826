/* SPDX-License-Identifier: MIT */
/*
 * The grammar, all its entrances: the first byte chooses one, the rest is its text. Beside
 * crashes it looks for broken promises: an error that appended, a success that left an error,
 * a time that does not read back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "src/spec/spec.h"

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_spec(const struct spec *spec)
{
	MUST(spec->text && spec->module && spec->symbol && *spec->symbol);
	MUST(spec->delay_ns == SPEC_DELAY_UNSET || spec->delay_ns <= SPEC_DELAY_MAX_NS);
	MUST(spec->pid >= 0 && (spec->kind == SPEC_LINE) == (spec->line > 0));
	MUST(spec->kind == SPEC_PYTHON || !strchr(spec->module, ':'));
	MUST(!spec->thread || *spec->thread);
}

static void check_list(struct spec_list *list, int rc, const struct sb_err *err)
{
	MUST((rc != 0) == (err->code != SB_OK));
	MUST(rc == 0 || (list->count == 1 && *err->what));
	for (size_t i = 0; i < list->count; i++)
		check_spec(&list->spec[i]);
	spec_list_free(list);
}

/* A list that holds one target already: what failed must leave it as it was. */
static void list_start(struct spec_list *list)
{
	char *words[] = { "there:before", "5us" };

	MUST(!spec_parse_words(words, 2, list, NULL));
}

static void try_words(char *text)
{
	struct spec_list list = { 0 };
	struct sb_err err = { 0 };
	char *words[64];
	size_t n = 0;

	list_start(&list);
	for (char *save, *w = strtok_r(text, "\n", &save); w && n < 64;
	     w = strtok_r(NULL, "\n", &save))
		words[n++] = w;
	check_list(&list, spec_parse_words(words, n, &list, &err), &err);
}

static void try_text(const char *text, size_t size)
{
	struct spec_list list = { 0 };
	struct sb_err err = { 0 };

	list_start(&list);
	check_list(&list, spec_parse_text(text, size, "targets\x01.txt", &list, &err), &err);
}

static void try_times(const char *text)
{
	struct sb_err err = { 0 };
	uint64_t ns, again;
	char form[32];

	if (!spec_delay(text, &ns, &err)) {
		MUST(!spec_delay(spec_format_ns(ns, form, sizeof(form)), &again, &err));
		MUST(ns == again && ns <= SPEC_DELAY_MAX_NS);
	}
	err = (struct sb_err){ 0 };
	if (!spec_duration(text, &ns, &err))
		MUST(!spec_duration(spec_format_ns(ns, form, sizeof(form)), &again, &err) &&
		     ns == again);
}

static void try_pids(const char *text)
{
	struct sb_err err = { 0 };
	pid_t *pids = NULL;
	size_t count = 0;

	MUST((spec_pids(text, &pids, &count, &err) == 0) == (count > 0));
	for (size_t i = 0; i < count; i++)
		MUST(pids[i] > 0);
	free(pids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	MUST(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 4) {
	case 0:
		try_words(text);
		break;
	case 1:
		try_text(text, size - 1);
		break;
	case 2:
		try_times(text);
		break;
	case 3:
		try_pids(text);
		break;
	}
	free(text);
	return 0;
}
