/* SPDX-License-Identifier: MIT */
/*
 * Moves a thread out of a stub without running it. A stub spills a register once, before it changes
 * it, and the spilled value stays valid until the stub is left. So the state at the site's entry
 * is, at any instruction, the values of the spills before it, and for the rest the registers
 * themselves.
 *
 * The code is compared with the templates first: a target that an older sbinject hooked may hold
 * another version of it.
 */
#include <string.h>
#include "stub.h"

#define ARITHMETIC 0xd5ull /* SF ZF AF PF CF, as lahf has them */
#define OVERFLOW   0x800ull
#define RED_ZONE   128

enum {
	SITE_OWN_MID = 2,
	SITE_SHARED_MID = 5,
	SITE_KINDS = 6,
	MID_SITES = 2 * SITE_KINDS,
	SITE_CLOSE = 16
};

static uint64_t spilled(const struct arch_spill *spill, uint32_t at)
{
	return spill->word[at / 8 - 1];
}

static void unspill_flags(struct user_regs_struct *r, uint64_t saved)
{
	r->eflags &= ~(ARITHMETIC | OVERFLOW);
	r->eflags |= saved >> 8 & ARITHMETIC;
	if (saved & 0xff)
		r->eflags |= OVERFLOW;
}

static void unspill(struct user_regs_struct *r, const struct stub_spill *s,
		    const struct arch_spill *spill)
{
	unsigned long long *const reg[SPILLED_COUNT] = {
		[SPILLED_RAX] = &r->rax, [SPILLED_RCX] = &r->rcx, [SPILLED_RDX] = &r->rdx,
		[SPILLED_RBX] = &r->rbx, [SPILLED_RSI] = &r->rsi, [SPILLED_RDI] = &r->rdi,
		[SPILLED_R8] = &r->r8,	 [SPILLED_R9] = &r->r9,	  [SPILLED_R10] = &r->r10,
		[SPILLED_R11] = &r->r11,
	};

	if (s->what == SPILLED_FLAGS)
		unspill_flags(r, spilled(spill, s->at));
	else
		*reg[s->what] = spilled(spill, s->at);
}

/* Restores all that the code in [from, to] spills, when the pc is at `to`. */
static void unspill_between(const uint8_t *from, const uint8_t *to, bool but_rdx,
			    const struct arch_spill *spill, struct arch_regs *regs)
{
	/* cppcheck-suppress comparePointers ; two labels of one table */
	for (const struct stub_spill *s = stub_spills; s < stub_spills_end; s++)
		if (s->after > from && s->after <= to && !(but_rdx && s->what == SPILLED_RDX))
			unspill(&regs->gp, s, spill);
}

/* Equal except for a field that is filled in when the code is copied. */
struct field {
	uint32_t at, len;
};

static bool same_code(const uint8_t *code, const uint8_t *template, size_t len,
		      const struct field *field, size_t fields)
{
	for (size_t i = 0; i < len; i++) {
		bool filled = false;

		for (size_t f = 0; f < fields; f++)
			filled |= i - field[f].at < field[f].len;
		if (!filled && code[i] != template[i])
			return false;
	}
	return true;
}

enum { FIELDS = 13 };

static int find_site(const uint8_t *code, size_t len)
{
	for (int i = 0; i < STUB_TEMPLATES; i++) {
		const struct stub_template *t = &stub_templates[i];
		struct field fields[FIELDS] = {
			{ t->jmp, 4 },
			{ t->record, 8 },
			{ t->cell, 8 },
			{ t->kind, 4 },
			{ t->mask, t->mask ? 4 : 0 },
			{ t->base, t->base ? 4 : 0 },
			{ t->taken, t->taken ? 4 : 0 },
			{ t->each, t->each ? 8 : 0 },
			{ t->low_record, t->low_record ? 8 : 0 },
			{ t->low_cell, t->low_cell ? 8 : 0 },
			{ t->low_base, t->low_base ? 4 : 0 },
			{ t->low_slot, t->low_slot ? 4 : 0 },
			{ t->low_each, t->low_each ? 8 : 0 },
		};

		if (len == t->size && same_code(code, t->code, len, fields, FIELDS))
			return i;
	}
	return -1;
}

static bool is_doorbell(const uint8_t *code, size_t len)
{
	struct field jmp = { stub_common_template.doorbell_jmp, 4 };

	return len == stub_common_template.doorbell_size &&
	       same_code(code, stub_common_template.doorbell_site, len, &jmp, 1);
}

/*
 * Is the pc between the function's own counter and the slot? The path to the slow path is placed
 * before the entry, and its effects are recorded in `was` already.
 */
static bool is_half(const struct stub_template *t, size_t at, bool was)
{
	return t->each && (was || at < t->entry || (at > t->each && at < t->done));
}

/* Does the template step over the red zone? */
static bool steps_over(int i)
{
	return i == SITE_CLOSE || (i < MID_SITES && (i % SITE_KINDS == SITE_OWN_MID ||
						     i % SITE_KINDS == SITE_SHARED_MID));
}

bool stub_leave_site(const uint8_t *code, size_t len, size_t at, const struct arch_spill *spill,
		     struct arch_regs *regs, bool *half)
{
	const struct stub_template *t;
	int i = find_site(code, len);

	if (at >= len)
		return false;
	if (i < 0 && is_doorbell(code, len)) {
		code = stub_common_template.doorbell_site;
		unspill_between(code, code + at, false, spill, regs);
		*half = false;
		return true;
	}
	if (i < 0)
		return false;
	t = &stub_templates[i];
	*half = is_half(t, at, *half);
	if (at < t->slow) {
		/* Nothing was spilled: r12 and r13, which it uses, are free. */
	} else if (at >= t->entry) {
		unspill_between(t->code + t->entry, t->code + at, at >= t->out, spill, regs);
		/* The slow path returns here, and an exit's rdx is spilled on the way there only.
		 */
		if (at >= t->done && at < t->out)
			unspill_between(t->code + t->slow, t->code + t->entry, false, spill, regs);
	} else {
		/* The path to the slow path is placed before the entry and runs after it. */
		unspill_between(t->code + t->entry, t->code + t->size, true, spill, regs);
		unspill_between(t->code, t->code + at, false, spill, regs);
	}
	if (steps_over(i) && at != t->entry)
		regs->gp.rsp += RED_ZONE;
	return true;
}

static void leave_doorbell(const uint8_t *base, size_t at, const struct arch_spill *spill,
			   struct arch_regs *regs)
{
	const struct stub_common *t = &stub_common_template;

	if (at < t->doorbell_once)
		unspill_between(base + t->doorbell, base + at, false, spill, regs);
	regs->gp.rip = spilled(spill, 104);
}

static void leave_slow(const uint8_t *base, size_t at, const struct arch_spill *spill,
		       struct arch_regs *regs)
{
	const struct stub_common *t = &stub_common_template;

	bool kept = at >= t->kept && (at < t->back || at >= t->back_end);

	regs->gp.rip = kept ? regs->gp.r11 : regs->gp.rdx;
	unspill_between(base + t->slow, base + at, false, spill, regs);
}

enum arch_leave stub_leave_common(const uint8_t *code, size_t len, size_t at,
				  const struct arch_spill *spill, struct arch_regs *regs,
				  struct arch_cut *cut)
{
	const struct stub_common *t = &stub_common_template;

	if (len < t->size || at < t->slow || at >= t->gadget_syscall ||
	    memcmp(code + t->slow, t->code + t->slow, t->size - t->slow))
		return ARCH_LEAVE_NOT;
	cut->counted = true;
	if (at >= t->doorbell) {
		leave_doorbell(t->code, at, spill, regs);
		return ARCH_LEAVE_OK;
	}
	cut->cell = regs->gp.r8;
	cut->start = regs->gp.r10;
	cut->counted = at >= t->counted && (at < t->odd || at >= t->odd_end);
	cut->want = at >= t->spin ? regs->gp.r9 : 0;
	leave_slow(t->code, at, spill, regs);
	/* A call that begins: its entry is being written. */
	if ((at >= t->leave && at < t->back) || (at >= t->odd_end && at < t->due))
		return ARCH_LEAVE_NOTING;
	if (at < t->due || at >= t->end)
		return ARCH_LEAVE_OK;
	return at < t->spent ? ARCH_LEAVE_CUT : ARCH_LEAVE_NOTING;
}
