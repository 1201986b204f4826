/* SPDX-License-Identifier: MIT */
#ifndef SB_BYTES_H
#define SB_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Reads numbers from bytes of a file; `cut`: there was less than that, and the number is 0. */
struct bytes {
	const uint8_t *p, *end;
	bool cut;
};

/* size: at most 8; little-endian, as the file */
static inline uint64_t bytes_take(struct bytes *b, size_t size)
{
	uint64_t v = 0;

	if ((size_t)(b->end - b->p) < size) {
		b->cut = true;
		b->p = b->end;
		return 0;
	}
	memcpy(&v, b->p, size);
	b->p += size;
	return v;
}

/* A LEB128 number. */
static inline uint64_t bytes_take_leb(struct bytes *b, bool is_signed)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)bytes_take(b, 1);
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && !b->cut);
	if (is_signed && shift < 64 && (byte & 0x40))
		v |= UINT64_MAX << shift;
	return v;
}

#endif
