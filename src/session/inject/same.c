/* SPDX-License-Identifier: MIT */
/*
 * A doorbell rings twice for each loaded library, once before it is mapped. It also rings for our
 * own libraries; the agent is loaded with the interpreter's lock held. If the code that a process
 * has mapped is unchanged since the last look, there is nothing to search for, and the ringing
 * thread need not wait.
 */
#include <string.h>
#include "priv.h"

static bool is_code(const struct map_entry *e)
{
	return e->path[0] == '/' && e->inode && strncmp(e->path, "/memfd:sbinject", 15) != 0;
}

static void mix(uint64_t *hash, uint64_t value)
{
	*hash = (*hash ^ value) * 1099511628211ull;
	*hash ^= *hash >> 29;
}

uint64_t code_of_maps(const struct maps *maps)
{
	uint64_t hash = 14695981039346656037ull;

	for (size_t i = 0; i < maps->count; i++) {
		const struct map_entry *e = &maps->entry[i];

		if (!is_code(e))
			continue;
		mix(&hash, e->start);
		mix(&hash, e->end);
		mix(&hash, e->offset);
		mix(&hash, e->inode);
		mix(&hash, (uint64_t)e->dev << 2 | (uint64_t)e->x << 1 | e->deleted);
	}
	return hash ? hash : 1;
}

bool session_same_code(const struct record *rec)
{
	struct maps maps;
	bool same;

	if (!rec->code || (rec->python.said && !rec->python.looked) ||
	    maps_read(rec->pid, &maps, NULL) < 0)
		return false;
	same = code_of_maps(&maps) == rec->code;
	maps_free(&maps);
	return same;
}
