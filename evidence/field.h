/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_FIELD_H
#define SB_EVIDENCE_FIELD_H

#include <stdint.h>

/*
 * One number of a file of the kernel: of the line that begins with `line` and a blank, the number
 * behind the first `key`, which may be empty. line NULL: the number that the file begins with.
 * 0, or an errno: ENODATA: the file is there, and has no such number. *value is then 0.
 */
int field_read(const char *path, const char *line, const char *key, uint64_t *value);

#endif
