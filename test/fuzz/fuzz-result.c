/* SPDX-License-Identifier: MIT */
/*
 * A result document from elsewhere: read, written again, read again. What could be read is
 * written in one form for ever, and every writer can show it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/out/out.h"
#include "src/result/result.h"

#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round(const struct result *res)
{
	struct sb_err err = { 0 };
	struct result *again = NULL;
	char *first = result_to_json(res, true), *second;

	MUST(!result_from_json(first, &again, &err));
	second = result_to_json(again, true);
	MUST(!strcmp(first, second));
	result_free(again);
	free(first);
	free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *nowhere;
	struct sb_err err = { 0 };
	struct result *res = NULL;
	char *text = malloc(size + 1);

	MUST(text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	MUST(nowhere);
	if (!result_from_json(text, &res, &err)) {
		check_round(res);
		out_table(nowhere, res, OUT_TIMES_FIRST);
		out_list(nowhere, res);
		result_free(res);
	} else {
		MUST(!res && err.code == SB_EFILE && *err.what);
	}
	free(text);
	return 0;
}
