/* SPDX-License-Identifier: MIT */
#include "leave.h"

#include <stdlib.h>
#include "region.h"

static bool read_spill(const struct memory *mem, uint64_t sp, struct arch_spill *spill)
{
	enum { WORDS = sizeof(spill->word) / sizeof(*spill->word) };
	uint64_t raw[WORDS];

	if (memory_peek(mem, sp - sizeof(raw), raw, sizeof(raw)) != sizeof(raw))
		return false;
	for (int i = 0; i < WORDS; i++)
		spill->word[i] = raw[WORDS - 1 - i];
	return true;
}

/* Moves from the copy of a displaced instruction to the instruction. */
static bool from_copy(const struct region *region, const struct journal_site *s,
		      struct arch_regs *regs)
{
	for (int i = 0; i < s->n_pcs; i++) {
		if (region->addr + s->stub + s->pcs[i].emitted != arch->pc(regs))
			continue;
		arch->set_pc(regs, s->addr + (uint64_t)(int64_t)s->pcs[i].original);
		return true;
	}
	return false;
}

/* Moves from the code of the site's stub before the displaced instructions. half: see arch.h. */
static bool from_site(const struct memory *mem, const struct region *region,
		      const struct journal_site *s, const struct arch_spill *spill,
		      struct arch_regs *regs, bool *half)
{
	uint64_t stub = region->addr + s->stub;
	uint8_t code[ARCH_SITE_MAX];

	if (s->displaced > sizeof(code) ||
	    memory_peek(mem, stub, code, s->displaced) != s->displaced ||
	    !arch->leave_site(code, s->displaced, arch->pc(regs) - stub, spill, regs, half))
		return false;
	arch->set_pc(regs, s->addr + s->before);
	arch->no_restart(regs);
	return true;
}

/* A thread that was preempted in its spin has been in it for longer than its delay. */
static void note_cut(const struct space *space, const struct arch_cut *cut)
{
	uint64_t spent = arch->clock_read() - cut->start;
	uint64_t given = spent < cut->want ? spent : cut->want;

	if (space->control)
		page_note_cut(&space->control->page, cut->cell - space->page_addr, given,
			      spent - given);
}

static enum leave from_common(const struct space *space, const struct region *region,
			      const struct arch_spill *spill, struct arch_regs *regs, bool exact)
{
	uint64_t common = region->addr + region->journal->common_off;
	size_t len = arch->common_size();
	const struct journal_site *s;
	struct arch_regs at = *regs;
	enum arch_leave how = ARCH_LEAVE_NOT;
	struct arch_cut cut;
	uint8_t *code = malloc(len);
	bool half;

	if (!code)
		abort();
	if (arch->pc(regs) >= common && memory_peek(&space->mem, common, code, len) == len)
		how = arch->leave_common(code, len, arch->pc(regs) - common, spill, &at, &cut);
	free(code);
	if (how == ARCH_LEAVE_NOT || (exact && how == ARCH_LEAVE_NOTING))
		return LEAVE_NOT;
	s = region_stub_at(region, arch->pc(&at));
	half = !cut.counted;
	if (!s || !from_site(&space->mem, region, s, spill, &at, &half) || (exact && half))
		return LEAVE_NOT;
	if (exact && how == ARCH_LEAVE_CUT)
		note_cut(space, &cut);
	*regs = at;
	return LEAVE_MOVED;
}

/* The jump in the padding in front of an entry, or in an island: a thread there comes from the site
 * itself. */
static const struct journal_site *pad_at(const struct space *space, uint64_t pc)
{
	for (size_t i = 0; i < space->n_regions; i++) {
		const struct journal_patch *p = region_patch_at(space->regions[i], pc);
		const struct journal_site *s = p ? &space->regions[i]->sites[p->site] : NULL;

		if (s && s->shape == PLAN_PRE && s->addr > pc && s->addr - pc <= 16)
			return s;
		if (s && s->shape == PLAN_ISLAND && s->addr != pc)
			return s;
	}
	return NULL;
}

bool leave_is_ours(const struct space *space, uint64_t pc)
{
	return space_region_at(space, pc) || pad_at(space, pc);
}

enum leave leave_code(const struct space *space, struct arch_regs *regs, bool exact)
{
	const struct region *region = space_region_at(space, arch->pc(regs));
	const struct journal_site *s;
	struct arch_spill spill;
	struct arch_regs at;
	bool half = false;

	if (!region) {
		s = pad_at(space, arch->pc(regs));
		if (s)
			arch->set_pc(regs, s->addr);
		return s ? LEAVE_MOVED : LEAVE_OUTSIDE;
	}
	s = region_stub_at(region, arch->pc(regs));
	if (s && from_copy(region, s, regs))
		return LEAVE_MOVED;
	if (!read_spill(&space->mem, arch->sp(regs), &spill))
		return LEAVE_NOT;
	if (!s)
		return from_common(space, region, &spill, regs, exact);
	at = *regs;
	if (!from_site(&space->mem, region, s, &spill, &at, &half) || (exact && half))
		return LEAVE_NOT;
	*regs = at;
	return LEAVE_MOVED;
}
