/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_EXPLAIN_H
#define SB_OUT_EXPLAIN_H

#include <stdio.h>
#include "src/result/explain.h"

/* Writers of `sbinject explain`. */
void out_explain_table(FILE *to, const struct explain_result *res);

/* Schema "sbinject.explain/1" (sbinject-evidence(5)); path "-": stdout. */
int out_explain_json(const char *path, const struct explain_result *res, int argc, char **argv,
		     struct sb_err *err);

/* The same document as a text. The caller frees. */
char *out_explain_text(const struct explain_result *res, int argc, char **argv);

#endif
