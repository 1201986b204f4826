/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_VALUES_H
#define SB_TRACE_VALUES_H

#include "event.h"
#include "out.h"

/*
 * The values of a span, its kernel and its callers, as members of a JSON object, each with a comma
 * before it: numbers, pointers as "0x1f", true and false; null where a value is not known. A number
 * above 2^63
 * - 1 is a string of digits, since readers would take it for a rounded one.
 */
void trace_put_values_json(struct trace_out *out, const struct trace_span *span);

#endif
