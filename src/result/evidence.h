/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_EVIDENCE_H
#define SB_RESULT_EVIDENCE_H

#include <jansson.h>
#include "result.h"

/* Counters as an object, by their names; null where they are not known. unknown: NULL: all are. */
json_t *evidence_values_json(const struct evidence_values *values, const bool *unknown);

/* What the machine counted up to now. out: all zero; rows_free(). */
void evidence_tell_machine(const struct evidence *e, struct result_rows *out);

/* The member "evidence" of a run; null where it was not asked for. NULL of reading: it was read;
 * else what was expected. */
json_t *evidence_json(const struct result_evidence *e);
const char *evidence_read(const json_t *value, struct result_evidence *e);

#endif
