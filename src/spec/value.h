/* SPDX-License-Identifier: MIT */
#ifndef SB_SPEC_VALUE_H
#define SB_SPEC_VALUE_H

#include "spec.h"

/*
 * The values of arg=, ret and sum=: each adds one to the target, or marks one. text: behind the
 * '=' of the word, NULL for a `ret` alone. Returns NULL, or why not, as the end of "the key 'arg=x'
 * ...".
 */
const char *value_arg(struct spec *spec, const char *text);
const char *value_ret(struct spec *spec, const char *text);
const char *value_sum(struct spec *spec, const char *text);

/* Why the other keys of the target do not allow values; NULL: they do. */
const char *value_conflict(const struct spec *spec);

#endif
