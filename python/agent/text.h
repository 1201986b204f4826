/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_TEXT_H
#define SB_AGENT_TEXT_H

#include <stdbool.h>

/* The globs of sbinject-targets(5): * ? [a-z] [!a-z] and \ before a character; a '[' that is
 * never closed stands for itself. Both sides are bytes. */
bool glob_match(const char *pattern, const char *text);

/*
 * What the last part of every matching name must end with, or be: a pointer into the pattern
 * behind its last special character. *whole is set when it must be the whole last part.
 */
const char *glob_last_part(const char *pattern, bool *whole);

/* The text behind the last dot that is not inside <...>: "f.<locals>.g" gives "g". */
const char *last_part(const char *qualname);

#endif
