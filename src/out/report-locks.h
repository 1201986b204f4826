/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_REPORT_LOCKS_H
#define SB_OUT_REPORT_LOCKS_H

#include <jansson.h>
#include <stdio.h>
#include "trace/sum.h"

/* Orders of locks that can end in a deadlock: a part of the report, for traces of lock functions.
 */
void out_report_locks(FILE *to, const struct sum *sum);

/* Puts `lock_order` and `locks` into the document; nothing where the trace has no lock functions.
 */
void out_report_locks_json(json_t *doc, const struct sum *sum);

#endif
