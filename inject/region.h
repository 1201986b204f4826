/* SPDX-License-Identifier: MIT */
#ifndef SB_REGION_H
#define SB_REGION_H

#include "space.h"

/*
 * Regions, shared by space.c, plant.c and restore.c. Descriptions only: no function touches the
 * target unless its comment states it.
 */
struct region *region_get(struct region *region);
void region_put(struct region *region);

/* The head of a region (header, sites, patches), zeroed, with its offsets set. */
struct region *region_new(uint64_t addr, size_t n_sites, size_t n_patches, size_t common_size);

/* Copies and checks a journal read from a target; NULL if it is inconsistent. */
struct region *region_check(uint64_t addr, const void *head, size_t len);

struct journal_site *region_site_at(const struct region *region, uint64_t addr);

/* The site whose window holds pc behind its first byte, or NULL. No thread may be there. */
struct journal_site *region_window_at(const struct region *region, uint64_t pc);

/* The site whose stub holds pc, or NULL (common code, or not in the region). */
struct journal_site *region_stub_at(const struct region *region, uint64_t pc);

/* The patch that begins at addr, or NULL. */
struct journal_patch *region_patch_at(const struct region *region, uint64_t addr);

/*
 * Writes the patches' new bytes (or, undo, their original ones) page by page; a page at a time is
 * all or nothing. Undo leaves bytes alone that are no longer sbinject's. All threads are stopped.
 */
int region_write_text(const struct region *region, const struct memory *mem, bool undo,
		      struct space_restored *out, struct sb_err *err);

#endif
