/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_IDMAP_H
#define SB_TRACE_IDMAP_H

#include <stddef.h>
#include <stdint.h>

/* A table of numbers by number. Value 0 is none. Zeroed, it is empty. */
struct idmap {
	struct idmap_entry {
		uint64_t key;
		uint32_t value;
	} * entry;
	size_t n, room;
};

uint32_t idmap_get(const struct idmap *map, uint64_t key);
void idmap_put(struct idmap *map, uint64_t key, uint32_t value); /* replaces; value is not 0 */
void idmap_free(struct idmap *map);

/* The key of a pair, as of a pid and a tid. */
static inline uint64_t idmap_pair(int32_t a, int32_t b)
{
	return (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
}

#endif
