/* SPDX-License-Identifier: MIT */
#include "idmap.h"

#include <stdlib.h>
#include "src/base/must.h"

static size_t slot_of(const struct idmap *map, uint64_t key)
{
	size_t slot = ((key ^ key >> 31) * 0x9e3779b97f4a7c15u >> 32) & (map->room - 1);

	while (map->entry[slot].value && map->entry[slot].key != key)
		slot = (slot + 1) & (map->room - 1);
	return slot;
}

uint32_t idmap_get(const struct idmap *map, uint64_t key)
{
	return map->room ? map->entry[slot_of(map, key)].value : 0;
}

static void widen(struct idmap *map)
{
	struct idmap old = *map;

	map->room = old.room ? old.room * 2 : 64;
	map->entry = must_calloc(map->room, sizeof(*map->entry));
	for (size_t i = 0; i < old.room; i++)
		if (old.entry[i].value)
			map->entry[slot_of(map, old.entry[i].key)] = old.entry[i];
	free(old.entry);
}

void idmap_put(struct idmap *map, uint64_t key, uint32_t value)
{
	size_t slot;

	if (map->n * 2 >= map->room)
		widen(map);
	slot = slot_of(map, key);
	map->n += !map->entry[slot].value;
	map->entry[slot] = (struct idmap_entry){ key, value };
}

void idmap_free(struct idmap *map)
{
	free(map->entry);
	*map = (struct idmap){ 0 };
}
