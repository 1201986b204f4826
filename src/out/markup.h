/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_MARKUP_H
#define SB_OUT_MARKUP_H

#include <stdio.h>

/* A text from outside, within HTML or SVG, in an element or in quotes. */
void out_markup(FILE *to, const char *text);

#endif
