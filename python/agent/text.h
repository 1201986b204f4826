/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_TEXT_H
#define SB_AGENT_TEXT_H

#include <stdbool.h>

/*
 * The globs of sbinject-targets(5): * ? [a-z] [!a-z] and \ before a character; a '[' that is never
 * closed is an ordinary character. Both sides are bytes.
 */
bool glob_match(const char *pattern, const char *text);

/*
 * The text that the last part of every matching name must end with, or equal: a pointer into the
 * pattern behind its last special character. *whole: it must be the whole last part.
 */
const char *glob_last_part(const char *pattern, bool *whole);

/* The text behind the last dot that is not inside <...>: "f.<locals>.g" gives "g". */
const char *last_part(const char *qualname);

#endif
