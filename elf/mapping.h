/* SPDX-License-Identifier: MIT */
#ifndef SB_MAPPING_H
#define SB_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A file mapped to be read, which its owner may cut short or write to meanwhile. To touch what is
 * no longer there is SIGBUS: a handler puts zeros in its place and marks the mapping as torn, so
 * that the reader goes on, and then throws away what was read. Behind the last byte follow
 * zeros, a page at least: a string whose end is overwritten while it is read ends there.
 *
 * The handler is installed with each mapping and leaves every other SIGBUS to end the program.
 * Not thread-safe: all of them are made, read and closed by one thread. Reading costs nothing more
 * than without.
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
