/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_ROWS_H
#define SB_RESULT_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers by a table of names, as machine_names of evidence/machine.h: what is counted for no
 * thread. */
enum { RESULT_ROWS = 24 };

struct result_rows {
	bool there; /* not of a former version, nor where there is nothing to count */
	uint64_t of[RESULT_ROWS];
	char *why[RESULT_ROWS]; /* NULL: it is known; else why it is not */
};

/* An object of all numbers, null where one is not known, and "unknown", an object of the reasons;
 * null if they are not there. n: of the names, up to RESULT_ROWS. */
json_t *rows_json(const struct result_rows *rows, const char *const *names, size_t n);
/* rows: all zero. A number that a former version did not have is not known. False: it is not such
 * an object. */
bool rows_read(const json_t *object, const char *const *names, size_t n, struct result_rows *rows);
void rows_free(struct result_rows *rows);

#endif
