/* SPDX-License-Identifier: MIT */
#ifndef SB_MAPPING_H
#define SB_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A file mapped for reading, which its owner may truncate or write to meanwhile. An access to a
 * missing page raises SIGBUS: a handler puts zeros there and marks the mapping as torn, so that the
 * reader continues, and then discards what was read. At least a page of zeros follows the last
 * byte: a string whose end is overwritten while it is read ends there.
 *
 * Each mapping installs the handler, which leaves every other SIGBUS to end the program. Not
 * thread-safe: one thread makes, reads and closes all of them. Reading has no additional cost.
 */
struct mapping {
	uint8_t *base; /* NULL: none */
	size_t size;   /* of the file, bytes */
	volatile bool torn;
	struct mapping *next;
};

/* False with errno set. fd may be closed then. */
bool mapping_open(struct mapping *m, int fd, size_t size);
void mapping_close(struct mapping *m); /* harmless where there is none */

#endif
