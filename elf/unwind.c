/* SPDX-License-Identifier: MIT */
#include "unwind.h"

#include "image-priv.h"

enum { DEPTH = 4, STEPS_MOST = 4096 };

enum rule_kind { RULE_SAME, RULE_AT, RULE_UNKNOWN };

struct rules {
	uint32_t cfa_reg;
	int64_t cfa_offset;
	bool cfa_known;
	struct rule {
		enum rule_kind kind;
		int64_t offset; /* of the place from the CFA */
	} rule[UNWIND_REGS];
};

/* A run over the instructions of a table, up to a pc. */
struct walk {
	const struct ehframe_frame *frame;
	uint64_t pc, at; /* file addresses */
	struct rules now, first, kept[DEPTH];
	unsigned int n_kept;
};

struct bytes {
	const uint8_t *p, *end;
	bool cut;
};

static uint64_t take(struct bytes *b, size_t size)
{
	uint64_t v = 0;

	if ((size_t)(b->end - b->p) < size) {
		b->cut = true;
		b->p = b->end;
		return 0;
	}
	memcpy(&v, b->p, size); /* little-endian, as the file */
	b->p += size;
	return v;
}

static uint64_t take_leb(struct bytes *b, bool is_signed)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)take(b, 1);
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && !b->cut);
	if (is_signed && shift < 64 && (byte & 0x40))
		v |= UINT64_MAX << shift;
	return v;
}

static void set_rule(struct walk *w, uint64_t reg, enum rule_kind kind, uint64_t factored)
{
	if (reg < UNWIND_REGS)
		w->now.rule[reg] =
			(struct rule){ kind, (int64_t)(factored * (uint64_t)w->frame->data_align) };
}

static void define_cfa(struct walk *w, uint64_t reg, uint64_t offset)
{
	w->now.cfa_reg = (uint32_t)(reg < UNWIND_REGS ? reg : UNWIND_REGS);
	w->now.cfa_offset = (int64_t)offset;
	w->now.cfa_known = reg < UNWIND_REGS;
}

static bool advance(struct walk *w, uint64_t delta)
{
	w->at += delta * w->frame->code_align;
	return w->at <= w->pc;
}

/* Instructions about the registers, by number: DWARF 5, 6.4.2. */
enum {
	CFA_NOP,
	CFA_SET_LOC,
	CFA_ADVANCE_1,
	CFA_ADVANCE_2,
	CFA_ADVANCE_4,
	CFA_OFFSET_EXTENDED,
	CFA_RESTORE_EXTENDED,
	CFA_UNDEFINED,
	CFA_SAME_VALUE,
	CFA_REGISTER,
	CFA_REMEMBER,
	CFA_RESTORE_STATE,
	CFA_DEF_CFA,
	CFA_DEF_CFA_REGISTER,
	CFA_DEF_CFA_OFFSET,
	CFA_DEF_CFA_EXPRESSION,
	CFA_EXPRESSION,
	CFA_OFFSET_EXTENDED_SF,
	CFA_DEF_CFA_SF,
	CFA_DEF_CFA_OFFSET_SF,
	CFA_VAL_OFFSET,
	CFA_VAL_OFFSET_SF,
	CFA_VAL_EXPRESSION,
	CFA_GNU_ARGS_SIZE = 0x2e,
};

static void skip_block(struct bytes *b)
{
	uint64_t len = take_leb(b, false);

	if (len > (uint64_t)(b->end - b->p))
		b->cut = true;
	else
		b->p += len;
}

static void restore(struct walk *w, uint64_t reg)
{
	if (reg < UNWIND_REGS)
		w->now.rule[reg] = w->first.rule[reg];
}

static void run_cfa(struct walk *w, struct bytes *b, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA:
		reg = take_leb(b, false);
		define_cfa(w, reg, take_leb(b, false));
		break;
	case CFA_DEF_CFA_SF:
		reg = take_leb(b, false);
		define_cfa(w, reg, take_leb(b, true) * (uint64_t)w->frame->data_align);
		break;
	case CFA_DEF_CFA_REGISTER:
		define_cfa(w, take_leb(b, false), (uint64_t)w->now.cfa_offset);
		break;
	case CFA_DEF_CFA_OFFSET:
		w->now.cfa_offset = (int64_t)take_leb(b, false);
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		w->now.cfa_offset = (int64_t)(take_leb(b, true) * (uint64_t)w->frame->data_align);
		break;
	default: /* CFA_DEF_CFA_EXPRESSION */
		skip_block(b);
		w->now.cfa_known = false;
	}
}

static void run_rule(struct walk *w, struct bytes *b, uint8_t op)
{
	uint64_t reg = take_leb(b, false);

	switch (op) {
	case CFA_OFFSET_EXTENDED:
	case CFA_OFFSET_EXTENDED_SF:
		set_rule(w, reg, RULE_AT, take_leb(b, op == CFA_OFFSET_EXTENDED_SF));
		break;
	case CFA_RESTORE_EXTENDED:
		restore(w, reg);
		break;
	case CFA_SAME_VALUE:
		set_rule(w, reg, RULE_SAME, 0);
		break;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		skip_block(b);
		set_rule(w, reg, RULE_UNKNOWN, 0);
		break;
	case CFA_UNDEFINED:
		set_rule(w, reg, RULE_UNKNOWN, 0);
		break;
	default: /* CFA_REGISTER, CFA_VAL_OFFSET, CFA_VAL_OFFSET_SF */
		take_leb(b, false);
		set_rule(w, reg, RULE_UNKNOWN, 0);
	}
}

/* remember_state and restore_state; false: more of them than compilers nest. */
static bool keep_state(struct walk *w, uint8_t op)
{
	if (op == CFA_REMEMBER && w->n_kept < DEPTH)
		w->kept[w->n_kept++] = w->now;
	else if (op == CFA_RESTORE_STATE && w->n_kept)
		w->now = w->kept[--w->n_kept];
	else
		return false;
	return true;
}

/* One with its operand beside its number. False: it is not known, or behind the pc. */
static bool run_extended(struct walk *w, struct bytes *b, uint8_t op)
{
	if (op == CFA_NOP)
		return true;
	if (op == CFA_ADVANCE_1 || op == CFA_ADVANCE_2 || op == CFA_ADVANCE_4)
		return advance(w, take(b, op == CFA_ADVANCE_1 ? 1 : op == CFA_ADVANCE_2 ? 2 : 4));
	if (op == CFA_REMEMBER || op == CFA_RESTORE_STATE)
		return keep_state(w, op);
	if (op == CFA_GNU_ARGS_SIZE)
		take_leb(b, false);
	else if ((op >= CFA_DEF_CFA && op <= CFA_DEF_CFA_EXPRESSION) || op == CFA_DEF_CFA_SF ||
		 op == CFA_DEF_CFA_OFFSET_SF)
		run_cfa(w, b, op);
	else if (op >= CFA_OFFSET_EXTENDED && op <= CFA_VAL_EXPRESSION)
		run_rule(w, b, op);
	else
		return false;
	return true;
}

/* False: an instruction that is not known. The run ends at the pc. */
static bool run(struct walk *w, const uint8_t *insns, size_t size)
{
	struct bytes b = { insns, insns + size, false };

	for (int i = 0; b.p < b.end && i < STEPS_MOST; i++) {
		uint8_t op = (uint8_t)take(&b, 1), low = op & 0x3f;
		bool more = true;

		if (op >> 6 == 1)
			more = advance(w, low);
		else if (op >> 6 == 2)
			set_rule(w, low, RULE_AT, take_leb(&b, false));
		else if (op >> 6 == 3)
			restore(w, low);
		else
			more = run_extended(w, &b, low);
		if (b.cut)
			return false;
		if (!more)
			return w->at > w->pc;
	}
	return b.p == b.end;
}

static bool find_rules(const struct image *img, uint64_t pc, struct walk *w,
		       struct ehframe_frame *frame)
{
	*w = (struct walk){ .frame = frame, .pc = pc };
	if (!ehframe_frame(&img->eh, pc, frame) || frame->ra != UNWIND_PC)
		return false;
	w->at = 0; /* the first instructions have no place */
	w->pc = UINT64_MAX;
	if (!run(w, frame->cie, frame->n_cie))
		return false;
	w->first = w->now;
	w->at = frame->start;
	w->pc = pc;
	return run(w, frame->insns, frame->n_insns);
}

static bool knows(const struct unwind_regs *regs, uint32_t reg)
{
	return reg < UNWIND_REGS && (regs->known >> reg & 1);
}

static void apply(const struct rules *rules, uint64_t cfa, const struct unwind_regs *from,
		  struct unwind_regs *to, unwind_read_fn *read, void *ctx)
{
	for (uint32_t i = 0; i < UNWIND_REGS; i++) {
		const struct rule *rule = &rules->rule[i];
		bool known = rule->kind == RULE_SAME && i != UNWIND_PC && knows(from, i);

		if (known)
			to->reg[i] = from->reg[i];
		if (rule->kind == RULE_AT)
			known = read(ctx, cfa + (uint64_t)rule->offset, &to->reg[i]);
		if (known)
			to->known |= 1u << i;
	}
}

bool unwind_step(const struct image *img, uint64_t bias, struct unwind_regs *regs,
		 unwind_read_fn *read, void *ctx)
{
	struct unwind_regs up = { .called = true };
	struct ehframe_frame frame;
	struct walk w;
	uint64_t cfa;

	if (!knows(regs, UNWIND_PC) ||
	    !find_rules(img, regs->reg[UNWIND_PC] - regs->called - bias, &w, &frame) ||
	    !w.now.cfa_known || !knows(regs, w.now.cfa_reg))
		return false;
	cfa = regs->reg[w.now.cfa_reg] + (uint64_t)w.now.cfa_offset;
	apply(&w.now, cfa, regs, &up, read, ctx);
	up.reg[UNWIND_RSP] = cfa;
	up.known |= 1u << UNWIND_RSP;
	if (!knows(&up, UNWIND_PC) || (knows(regs, UNWIND_RSP) && cfa <= regs->reg[UNWIND_RSP]))
		return false;
	*regs = up;
	return true;
}
