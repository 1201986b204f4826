/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_EVIDENCE_H
#define SB_RESULT_EVIDENCE_H

#include <jansson.h>
#include "result.h"

/* Counters as an object, by their names; null where they are not known. unknown: NULL: all are. */
json_t *evidence_values_json(const struct evidence_values *values, const bool *unknown);

/* What the machine counted up to now. quick: for one who asks again and again (processors.h). out:
 * all zero; rows_free(). */
void evidence_tell_machine(const struct evidence *e, bool quick, struct result_rows *out);

/* The same of the control group of the root process; result_cgroup_free(). */
void evidence_tell_cgroup(const struct evidence *e, struct result_cgroup *out);
json_t *evidence_cgroup_json(const struct result_cgroup *cgroup);
void result_cgroup_free(struct result_cgroup *cgroup);

/* The same of the memory of the processes, at the begin and at the end; rows_free(). */
void evidence_tell_memory(const struct memory_values *values, struct result_rows *out);
json_t *evidence_memory_json(const struct result_rows *begin, const struct result_rows *end);

/* The member "evidence" of a run; null where it was not asked for. NULL of reading: it was read;
 * else what was expected. */
json_t *evidence_json(const struct result_evidence *e);
const char *evidence_read(const json_t *value, struct result_evidence *e);

#endif
