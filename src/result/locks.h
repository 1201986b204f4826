/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_LOCKS_H
#define SB_RESULT_LOCKS_H

#include <jansson.h>
#include "result.h"

/* The orders of locks in the calls that a run recorded: the members of a document, as the report of
 * its trace has them (lock_order, lock_order_reason, locks). Nothing where there are none. */
void locks_put(json_t *document, const struct result *res);
void locks_get(const json_t *document, struct result *res);

#endif
