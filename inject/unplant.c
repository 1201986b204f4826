/* SPDX-License-Identifier: MIT */
/*
 * Removing single hooks while the others stay: their text is restored; their stubs stay in place,
 * for the threads that are in one, until everything is removed.
 */
#include <string.h>
#include "fault.h"
#include "region.h"

static bool wanted(const struct region *region, const struct journal_patch *patch,
		   const bool *cookie, size_t n)
{
	uint32_t c = region->sites[patch->site].cookie;

	return c < n && cookie[c];
}

/* A thread between the two jumps of a hook with padding in front continues at the entry. */
static void leave_padding(struct space *space, struct tree *tree, uint64_t from, uint64_t to)
{
	struct arch_regs regs;

	for (struct proc *p = tree->procs; p; p = p->next) {
		for (struct thread *t = p->threads; t && p->space == space; t = t->next) {
			if (t->state != THREAD_STOPPED || pt_get_regs(t->tid, &regs) < 0 ||
			    arch->pc(&regs) != from)
				continue;
			arch->set_pc(&regs, to);
			pt_set_regs(t->tid, &regs);
		}
	}
}

static int undo_patch(struct space *space, struct tree *tree, const struct region *region,
		      const struct journal_patch *patch, struct sb_err *err)
{
	const struct journal_site *site = &region->sites[patch->site];
	uint8_t now[PLAN_MAX_WINDOW];

	if (memory_peek(&space->mem, patch->addr, now, patch->len) != patch->len ||
	    memcmp(now, patch->now, patch->len))
		return 0; /* already gone */
	if (patch->addr < site->addr || (site->shape == PLAN_ISLAND && patch->addr != site->addr))
		leave_padding(space, tree, patch->addr, site->addr);
	if (fault_point("unplant-text", space->mem.pid))
		return err_set(err, SB_ETARGET, "fault: unplant-text");
	return memory_write(&space->mem, patch->addr, patch->orig, patch->len, err);
}

bool space_patch_in_place(const struct space *space, const struct journal_patch *patch)
{
	uint8_t now[PLAN_MAX_WINDOW];

	return memory_peek(&space->mem, patch->addr, now, patch->len) == patch->len &&
	       !memcmp(now, patch->now, patch->len);
}

int space_unplant(struct space *space, struct tree *tree, const bool *cookie, size_t n,
		  struct sb_err *err)
{
	int ret = tree_stop_patiently(tree, space, err);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < space->n_regions; i++) {
		const struct region *r = space->regions[i];

		/* The entry before its padding: then no thread reaches the padding any more. */
		for (uint32_t k = r->journal->n_patches; k-- > 0 && ret == 0 && !space->stale[i];)
			if (wanted(r, &r->patches[k], cookie, n))
				ret = undo_patch(space, tree, r, &r->patches[k], err);
	}
	tree_resume(tree, space);
	return ret;
}

bool space_has_hooks(const struct space *space, const bool *cookie, size_t n)
{
	for (size_t i = 0; i < space->n_regions; i++) {
		const struct region *r = space->regions[i];

		for (uint32_t k = 0; k < r->journal->n_patches && !space->stale[i]; k++)
			if (wanted(r, &r->patches[k], cookie, n) &&
			    space_patch_in_place(space, &r->patches[k]))
				return true;
	}
	return false;
}

bool space_hooks_any(const struct space *space, const struct region *region)
{
	for (uint32_t i = 0; i < region->journal->n_patches; i++)
		if (space_patch_in_place(space, &region->patches[i]))
			return true;
	return false;
}

bool space_hooks(const struct space *space, const struct region *region,
		 const struct journal_site *site)
{
	const struct journal_patch *patch = region_patch_at(region, site->addr);

	return patch && space_patch_in_place(space, patch);
}
