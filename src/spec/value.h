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
const char *value_args(struct spec *spec); /* args=yes */
const char *value_ret(struct spec *spec, const char *text);
const char *value_sum(struct spec *spec, const char *text);

/* The keys result=NAME[:TYPE] and text=N, of rows of presets alone: what such a function does with
 * these addresses is known. */
const char *value_result(struct spec *spec, const char *text);
const char *value_text_argument(struct spec *spec, const char *text);

/* The argument that points to the text of a call; 0: none does. */
uint8_t value_text_of(const struct spec *spec);

/* The argument whose memory the values are in (struct spec_value); 0: none is; 7: the first one,
 * and the function writes it. */
uint8_t value_followed(const struct spec *spec);

/* Why the other keys of the target do not allow values; NULL: they do. */
const char *value_conflict(const struct spec *spec);

#endif
