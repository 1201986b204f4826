/* SPDX-License-Identifier: MIT */
/*
 * A uprobe puts a breakpoint into every process that maps the file, and single-steps the
 * instruction of the file. If a process has a jump of sbinject's at that place, the step over the
 * file's instruction continues in the middle of that jump, and the process ends. So such a place is
 * not armed.
 */
#include <stdlib.h>
#include "priv.h"
#include "inject/region.h"
#include "src/session/strays.h"

/* Do the bytes of a patch lie at this offset of this file? */
static bool is_at(const struct maps *maps, const struct journal_patch *patch, uint32_t dev,
		  uint64_t inode, uint64_t offset)
{
	const struct map_entry *m = maps_find(maps, patch->addr);
	uint64_t at = m ? patch->addr - m->start + m->offset : 0;

	/* An endbr64 in front of a hook is not part of it, but a breakpoint there does no harm. */
	return m && m->inode == inode && (!dev || m->dev == dev) && offset >= at &&
	       offset < at + patch->len;
}

bool usession_clash_in(pid_t pid, uint32_t dev, uint64_t inode, uint64_t offset)
{
	struct space *space;
	struct maps maps;
	bool hooked = false;

	if (space_load(pid, &space, NULL) < 0)
		return false;
	if (maps_read(pid, &maps, NULL) == 0) {
		for (size_t r = 0; r < space->n_regions && !hooked; r++)
			for (uint32_t i = 0; i < space->regions[r]->journal->n_patches; i++)
				hooked |= is_at(&maps, &space->regions[r]->patches[i], dev, inode,
						offset);
		maps_free(&maps);
	}
	space_put(space);
	return hooked;
}

pid_t usession_clash(uint32_t dev, uint64_t inode, uint64_t offset)
{
	pid_t *pids, clash = 0;
	size_t n;

	if (strays_looking_hooked(&pids, &n) < 0)
		return 0;
	for (size_t i = 0; i < n && !clash; i++)
		if (usession_clash_in(pids[i], dev, inode, offset))
			clash = pids[i];
	free(pids);
	return clash;
}
