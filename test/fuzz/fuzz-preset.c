/* SPDX-License-Identifier: MIT */
/* libFuzzer: any text as a preset, and its first line as a word of it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "elf/symbol.h"
#include "src/spec/preset.h"

static void choose(const struct preset *p, const char *what)
{
	struct preset_choice choice;
	struct sb_err err = { 0 };
	size_t taken = 0;

	if (preset_choose(p, what, &choice, &err)) {
		CHECK(err.code == SB_ESPEC && *err.what);
		return;
	}
	for (size_t i = 0; i < p->n_rows; i++)
		taken += preset_takes(&choice, i);
	CHECK(taken && taken <= p->n_rows && (!what || taken < 2 || choice.kind >= 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_err err = { 0 };
	struct preset *p;
	char word[256];
	size_t len = 0;

	if (preset_parse((const char *)data, size, "p", "p.preset", &p, &err)) {
		CHECK(err.code == SB_ESPEC && *err.what);
		return 0;
	}
	CHECK(p->n_rows && p->n_rows <= 4096);
	for (size_t i = 0; i < p->n_rows; i++) {
		const struct preset_row *row = &p->row[i];

		CHECK(row->preset == p && *row->function && *row->module && row->line);
		if (!strchr(row->function, '[') && !strchr(row->function, '\\'))
			CHECK(symbol_is_version(row->function, row->function));
		choose(p, row->function);
	}
	choose(p, NULL);
	while (len < size && len + 1 < sizeof(word) && data[len] != '\n')
		len++;
	memcpy(word, data, len);
	word[len] = '\0';
	choose(p, word);
	preset_free(p);
	return 0;
}
