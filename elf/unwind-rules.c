/* SPDX-License-Identifier: MIT */
/*
 * The unwinder's table of a file as rules for one place: the instructions of its entry, run up to
 * there.
 */
#include "bytes.h"
#include "here.h"
#include "image-priv.h"
#include "unwind-rules.h"

enum { DEPTH = 4, STEPS_MOST = 4096 };

struct rule {
	enum unwind_kind kind;
	int64_t offset;
	struct expression {
		const uint8_t *p; /* NULL: there is none */
		size_t size;
	} expr;
};

struct rules {
	uint32_t cfa_reg;
	int64_t cfa_offset;
	bool cfa_known;
	struct expression cfa_expr; /* instead of the register */
	struct rule rule[UNWIND_REGS];
};

/* A run over the instructions of a table, up to a pc. */
struct walk {
	const struct ehframe_frame *frame;
	uint64_t pc, at; /* file addresses */
	struct rules now, first, kept[DEPTH];
	unsigned int n_kept;
};

static void set_rule(struct walk *w, uint64_t reg, enum unwind_kind kind, uint64_t factored)
{
	if (reg < UNWIND_REGS)
		w->now.rule[reg] = (struct rule){
			.kind = kind, .offset = (int64_t)(factored * (uint64_t)w->frame->data_align)
		};
}

static void define_cfa(struct walk *w, uint64_t reg, uint64_t offset)
{
	w->now.cfa_reg = (uint32_t)(reg < UNWIND_REGS ? reg : UNWIND_REGS);
	w->now.cfa_offset = (int64_t)offset;
	w->now.cfa_known = reg < UNWIND_REGS;
	w->now.cfa_expr = (struct expression){ 0 };
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

static struct expression take_block(struct bytes *b)
{
	uint64_t len = bytes_take_leb(b, false);
	struct expression e = { b->p, (size_t)len };

	if (len > (uint64_t)(b->end - b->p)) {
		b->cut = true;
		return (struct expression){ 0 };
	}
	b->p += len;
	return e;
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
		reg = bytes_take_leb(b, false);
		define_cfa(w, reg, bytes_take_leb(b, false));
		break;
	case CFA_DEF_CFA_SF:
		reg = bytes_take_leb(b, false);
		define_cfa(w, reg, bytes_take_leb(b, true) * (uint64_t)w->frame->data_align);
		break;
	case CFA_DEF_CFA_REGISTER:
		define_cfa(w, bytes_take_leb(b, false), (uint64_t)w->now.cfa_offset);
		break;
	case CFA_DEF_CFA_OFFSET:
		w->now.cfa_offset = (int64_t)bytes_take_leb(b, false);
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		w->now.cfa_offset =
			(int64_t)(bytes_take_leb(b, true) * (uint64_t)w->frame->data_align);
		break;
	default: /* CFA_DEF_CFA_EXPRESSION */
		w->now.cfa_expr = take_block(b);
		w->now.cfa_known = w->now.cfa_expr.p;
	}
}

static void set_expression(struct walk *w, uint64_t reg, enum unwind_kind kind,
			   struct expression expr)
{
	if (reg < UNWIND_REGS)
		w->now.rule[reg] = (struct rule){ .kind = kind, .expr = expr };
}

static void run_rule(struct walk *w, struct bytes *b, uint8_t op)
{
	uint64_t reg = bytes_take_leb(b, false);

	switch (op) {
	case CFA_OFFSET_EXTENDED:
	case CFA_OFFSET_EXTENDED_SF:
		set_rule(w, reg, UNWIND_AT, bytes_take_leb(b, op == CFA_OFFSET_EXTENDED_SF));
		break;
	case CFA_RESTORE_EXTENDED:
		restore(w, reg);
		break;
	case CFA_SAME_VALUE:
		set_rule(w, reg, UNWIND_SAME, 0);
		break;
	case CFA_EXPRESSION:
		set_expression(w, reg, UNWIND_EXPR_AT, take_block(b));
		break;
	case CFA_VAL_EXPRESSION:
		set_expression(w, reg, UNWIND_EXPR_VALUE, take_block(b));
		break;
	case CFA_UNDEFINED:
		set_rule(w, reg, UNWIND_NONE, 0);
		break;
	default: /* CFA_REGISTER, CFA_VAL_OFFSET, CFA_VAL_OFFSET_SF */
		bytes_take_leb(b, false);
		set_rule(w, reg, UNWIND_UNKNOWN, 0);
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
		return advance(w, bytes_take(b, op == CFA_ADVANCE_1 ? 1 :
						op == CFA_ADVANCE_2 ? 2 :
								      4));
	if (op == CFA_REMEMBER || op == CFA_RESTORE_STATE)
		return keep_state(w, op);
	if (op == CFA_GNU_ARGS_SIZE)
		bytes_take_leb(b, false);
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
		uint8_t op = (uint8_t)bytes_take(&b, 1), low = op & 0x3f;
		bool more = true;

		if (op >> 6 == 1)
			more = advance(w, low);
		else if (op >> 6 == 2)
			set_rule(w, low, UNWIND_AT, bytes_take_leb(&b, false));
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

/* False: it is longer than any that is needed. */
static bool keep(struct expression from, struct unwind_expr *to)
{
	if (from.size > sizeof(to->byte))
		return false;
	to->size = (uint8_t)from.size;
	if (from.size)
		memcpy(to->byte, from.p, from.size);
	return true;
}

bool here_rules(struct image *img, uint64_t vaddr, struct unwind_rules *out)
{
	struct ehframe_frame frame;
	struct walk w;

	*out = (struct unwind_rules){ 0 };
	if (!find_rules(img, vaddr, &w, &frame) || !w.now.cfa_known)
		return false;
	out->signal = frame.signal;
	out->cfa_reg = w.now.cfa_reg;
	out->cfa_offset = w.now.cfa_offset;
	if (!keep(w.now.cfa_expr, &out->cfa_expr))
		return false;
	for (uint32_t i = 0; i < UNWIND_REGS; i++) {
		const struct rule *from = &w.now.rule[i];
		struct unwind_rule *to = &out->rule[i];

		to->kind = (uint8_t)from->kind;
		to->offset = from->offset;
		if (!keep(from->expr, &to->expr))
			to->kind = UNWIND_UNKNOWN;
	}
	return true;
}
