/* SPDX-License-Identifier: MIT */
#include "unwind.h"

#include "image-priv.h"

enum { DEPTH = 4, STEPS_MOST = 4096 };

enum rule_kind {
	RULE_SAME,
	RULE_AT,
	RULE_UNKNOWN,
	RULE_NONE,	/* DW_CFA_undefined: of the return address, there is no caller */
	RULE_EXPR_AT,	/* at the place that an expression gives */
	RULE_EXPR_VALUE /* it is what an expression gives */
};

struct expression {
	const uint8_t *p; /* NULL: there is none */
	size_t size;
};

struct rules {
	uint32_t cfa_reg;
	int64_t cfa_offset;
	bool cfa_known;
	struct expression cfa_expr; /* instead of the register */
	struct rule {
		enum rule_kind kind;
		int64_t offset; /* of the place from the CFA */
		struct expression expr;
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
	uint64_t len = take_leb(b, false);
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
		w->now.cfa_expr = take_block(b);
		w->now.cfa_known = w->now.cfa_expr.p;
	}
}

static void set_expression(struct walk *w, uint64_t reg, enum rule_kind kind,
			   struct expression expr)
{
	if (reg < UNWIND_REGS)
		w->now.rule[reg] = (struct rule){ .kind = kind, .expr = expr };
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
		set_expression(w, reg, RULE_EXPR_AT, take_block(b));
		break;
	case CFA_VAL_EXPRESSION:
		set_expression(w, reg, RULE_EXPR_VALUE, take_block(b));
		break;
	case CFA_UNDEFINED:
		set_rule(w, reg, RULE_NONE, 0);
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

/* ---- expressions: DWARF 5, 2.5, as much as signal frames and PLTs have ---- */

enum {
	EXPR_DEEP = 8,
	EXPR_STEPS = 256,
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S,
	OP_CONST2U,
	OP_CONST2S,
	OP_CONST4U,
	OP_CONST4S,
	OP_CONST8U,
	OP_CONST8S,
	OP_CONSTU,
	OP_CONSTS,
	OP_AND = 0x1a,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST,
	OP_SHL,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
};

struct machine {
	uint64_t stack[EXPR_DEEP];
	unsigned int n;
	const struct unwind_regs *regs;
	unwind_read_fn *read;
	void *ctx;
};

static bool push(struct machine *m, uint64_t value)
{
	if (m->n == EXPR_DEEP)
		return false;
	m->stack[m->n++] = value;
	return true;
}

/* Two values become one. */
static bool combine(struct machine *m, uint8_t op)
{
	uint64_t b, *a;

	if (m->n < 2)
		return false;
	b = m->stack[--m->n];
	a = &m->stack[m->n - 1];
	if (op == OP_AND)
		*a &= b;
	else if (op == OP_PLUS)
		*a += b;
	else if (op == OP_SHL)
		*a = b < 64 ? *a << b : 0;
	else
		*a = (int64_t)*a >= (int64_t)b;
	return true;
}

static uint64_t take_constant(struct bytes *b, uint8_t op)
{
	unsigned int log = (op - OP_CONST1U) / 2u, shift = 64 - (8u << log);
	uint64_t v;

	if (op >= OP_CONSTU)
		return take_leb(b, op == OP_CONSTS);
	v = take(b, (size_t)1 << log);
	return (op - OP_CONST1U) % 2 ? (uint64_t)((int64_t)(v << shift) >> shift) : v;
}

static bool push_register(struct machine *m, uint32_t reg, uint64_t offset)
{
	return knows(m->regs, reg) && push(m, m->regs->reg[reg] + offset);
}

static bool evaluate_one(struct machine *m, struct bytes *b, uint8_t op)
{
	uint64_t *top = m->n ? &m->stack[m->n - 1] : NULL;

	if (op == OP_DEREF)
		return top && m->read(m->ctx, *top, top);
	if (op >= OP_CONST1U && op <= OP_CONSTS)
		return push(m, take_constant(b, op));
	if (op == OP_AND || op == OP_PLUS || op == OP_SHL || op == OP_GE)
		return combine(m, op);
	if (op == OP_PLUS_UCONST && top) {
		*top += take_leb(b, false);
		return true;
	}
	if (op >= OP_LIT0 && op < OP_LIT0 + 32)
		return push(m, op - (uint64_t)OP_LIT0);
	if (op >= OP_BREG0 && op < OP_BREG0 + UNWIND_REGS)
		return push_register(m, op - (uint32_t)OP_BREG0, take_leb(b, true));
	return false;
}

/* cfa: what the expression finds on its stack; NULL: nothing. */
static bool evaluate(struct expression expr, const uint64_t *cfa, struct machine *m,
		     uint64_t *value)
{
	struct bytes b = { expr.p, expr.p + expr.size, false };

	m->n = 0;
	if (cfa)
		push(m, *cfa);
	for (int i = 0; b.p < b.end; i++)
		if (i == EXPR_STEPS || !evaluate_one(m, &b, (uint8_t)take(&b, 1)) || b.cut)
			return false;
	if (!m->n)
		return false;
	*value = m->stack[m->n - 1];
	return true;
}

/* ---- a step ---- */

static bool find_cfa(const struct rules *rules, struct machine *m, uint64_t *cfa)
{
	if (rules->cfa_expr.p)
		return evaluate(rules->cfa_expr, NULL, m, cfa);
	*cfa = 0;
	if (!knows(m->regs, rules->cfa_reg))
		return false;
	*cfa = m->regs->reg[rules->cfa_reg] + (uint64_t)rules->cfa_offset;
	return true;
}

static bool find_register(const struct rule *rule, uint32_t i, uint64_t cfa, struct machine *m,
			  uint64_t *to)
{
	uint64_t at = 0;

	switch (rule->kind) {
	case RULE_SAME:
		*to = m->regs->reg[i];
		return i != UNWIND_PC && knows(m->regs, i);
	case RULE_AT:
		return m->read(m->ctx, cfa + (uint64_t)rule->offset, to);
	case RULE_EXPR_AT:
		return evaluate(rule->expr, &cfa, m, &at) && m->read(m->ctx, at, to);
	case RULE_EXPR_VALUE:
		return evaluate(rule->expr, &cfa, m, to);
	default:
		return false;
	}
}

enum unwind_result unwind_caller(const struct image *img, uint64_t bias, struct unwind_regs *regs,
				 unwind_read_fn *read, void *ctx)
{
	struct machine m = { .regs = regs, .read = read, .ctx = ctx };
	struct unwind_regs up = { 0 };
	struct ehframe_frame frame;
	struct walk w;
	uint64_t cfa;

	if (!knows(regs, UNWIND_PC) ||
	    !find_rules(img, regs->reg[UNWIND_PC] - regs->called - bias, &w, &frame) ||
	    !w.now.cfa_known)
		return UNWIND_NO_TABLE;
	if (w.now.rule[UNWIND_PC].kind == RULE_NONE)
		return UNWIND_OUTERMOST;
	if (!find_cfa(&w.now, &m, &cfa))
		return UNWIND_NO_MEMORY;
	for (uint32_t i = 0; i < UNWIND_REGS; i++)
		if (find_register(&w.now.rule[i], i, cfa, &m, &up.reg[i]))
			up.known |= 1u << i;
	if (w.now.rule[UNWIND_RSP].kind == RULE_SAME)
		up.reg[UNWIND_RSP] = cfa;
	up.known |= 1u << UNWIND_RSP;
	up.called = !frame.signal;
	if (!knows(&up, UNWIND_PC))
		return UNWIND_NO_MEMORY;
	/* A handler may be on another stack than what it interrupted. */
	if (!frame.signal && knows(regs, UNWIND_RSP) && cfa <= regs->reg[UNWIND_RSP])
		return UNWIND_NO_TABLE;
	*regs = up;
	return frame.signal ? UNWIND_SIGNAL : UNWIND_CALLER;
}

bool unwind_step(const struct image *img, uint64_t bias, struct unwind_regs *regs,
		 unwind_read_fn *read, void *ctx)
{
	return unwind_caller(img, bias, regs, read, ctx) <= UNWIND_SIGNAL;
}
