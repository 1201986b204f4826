/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULTS_H
#define SB_RESULTS_H

#include <stdint.h>

/*
 * The names of what the functions of a preset return. They are in a file NAME.results beside
 * NAME.preset, a line each: CODE NAME; '#' starts a comment. Other lines are left out.
 */

/* NULL: there is no such file, or it has no name for this code. Borrowed for good. */
const char *results_name(const char *preset, int64_t code);

#endif
