/* SPDX-License-Identifier: MIT */
#include "unwind.h"

#include <stdlib.h>
#include "bytes.h"
#include "image-priv.h"
#include "unwind-rules.h"

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
		return bytes_take_leb(b, op == OP_CONSTS);
	v = bytes_take(b, (size_t)1 << log);
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
		*top += bytes_take_leb(b, false);
		return true;
	}
	if (op >= OP_LIT0 && op < OP_LIT0 + 32)
		return push(m, op - (uint64_t)OP_LIT0);
	if (op >= OP_BREG0 && op < OP_BREG0 + UNWIND_REGS)
		return push_register(m, op - (uint32_t)OP_BREG0, bytes_take_leb(b, true));
	return false;
}

/* cfa: what the expression finds on its stack; NULL: nothing. */
static bool evaluate(const struct unwind_expr *expr, const uint64_t *cfa, struct machine *m,
		     uint64_t *value)
{
	struct bytes b = { expr->byte, expr->byte + expr->size, false };

	m->n = 0;
	if (cfa)
		push(m, *cfa);
	for (int i = 0; b.p < b.end; i++)
		if (i == EXPR_STEPS || !evaluate_one(m, &b, (uint8_t)bytes_take(&b, 1)) || b.cut)
			return false;
	if (!m->n)
		return false;
	*value = m->stack[m->n - 1];
	return true;
}

/* ---- a step ---- */

static bool find_cfa(const struct unwind_rules *rules, struct machine *m, uint64_t *cfa)
{
	if (rules->cfa_expr.size)
		return evaluate(&rules->cfa_expr, NULL, m, cfa);
	*cfa = 0;
	if (!knows(m->regs, rules->cfa_reg))
		return false;
	*cfa = m->regs->reg[rules->cfa_reg] + (uint64_t)rules->cfa_offset;
	return true;
}

static bool find_register(const struct unwind_rule *rule, uint32_t i, uint64_t cfa,
			  struct machine *m, uint64_t *to)
{
	uint64_t at = 0;

	switch (rule->kind) {
	case UNWIND_SAME:
		*to = m->regs->reg[i];
		return i != UNWIND_PC && knows(m->regs, i);
	case UNWIND_AT:
		return m->read(m->ctx, cfa + (uint64_t)rule->offset, to);
	case UNWIND_EXPR_AT:
		return evaluate(&rule->expr, &cfa, m, &at) && m->read(m->ctx, at, to);
	case UNWIND_EXPR_VALUE:
		return evaluate(&rule->expr, &cfa, m, to);
	default:
		return false;
	}
}

/* ---- rules ---- */

enum { KEPT = 256 };

/* The rules of places that were asked for, in an image. */
struct unwind_kept {
	struct {
		uint64_t vaddr;
		bool asked, found;
		struct unwind_rules rules;
	} place[KEPT];
};

/* Valid until the next call; NULL: there are none. */
static const struct unwind_rules *rules_at(struct image *img, uint64_t vaddr)
{
	size_t i = vaddr * 0x9e3779b97f4a7c15ull >> 32 & (KEPT - 1);

	if (!img->kept_rules)
		img->kept_rules = calloc(1, sizeof(*img->kept_rules));
	if (!img->kept_rules)
		return NULL;
	if (!img->kept_rules->place[i].asked || img->kept_rules->place[i].vaddr != vaddr) {
		img->kept_rules->place[i].found = unwind_rules(img, vaddr,
							       &img->kept_rules->place[i].rules);
		img->kept_rules->place[i].asked = true;
		img->kept_rules->place[i].vaddr = vaddr;
	}
	return img->kept_rules->place[i].found ? &img->kept_rules->place[i].rules : NULL;
}

enum unwind_result unwind_caller(struct image *img, uint64_t bias, struct unwind_regs *regs,
				 unwind_read_fn *read, void *ctx)
{
	struct machine m = { .regs = regs, .read = read, .ctx = ctx };
	const struct unwind_rules *rules;
	struct unwind_regs up = { 0 };
	uint64_t cfa;

	rules = knows(regs, UNWIND_PC) ? rules_at(img, regs->reg[UNWIND_PC] - regs->called - bias) :
					 NULL;
	if (!rules)
		return UNWIND_NO_TABLE;
	if (rules->rule[UNWIND_PC].kind == UNWIND_NONE)
		return UNWIND_OUTERMOST;
	if (!find_cfa(rules, &m, &cfa))
		return UNWIND_NO_MEMORY;
	for (uint32_t i = 0; i < UNWIND_REGS; i++)
		if (find_register(&rules->rule[i], i, cfa, &m, &up.reg[i]))
			up.known |= 1u << i;
	if (rules->rule[UNWIND_RSP].kind == UNWIND_SAME)
		up.reg[UNWIND_RSP] = cfa;
	up.known |= 1u << UNWIND_RSP;
	up.called = !rules->signal;
	if (!knows(&up, UNWIND_PC))
		return UNWIND_NO_MEMORY;
	/* A handler may be on another stack than what it interrupted. */
	if (!rules->signal && knows(regs, UNWIND_RSP) && cfa <= regs->reg[UNWIND_RSP])
		return UNWIND_NO_TABLE;
	*regs = up;
	return rules->signal ? UNWIND_SIGNAL : UNWIND_CALLER;
}

bool unwind_step(struct image *img, uint64_t bias, struct unwind_regs *regs, unwind_read_fn *read,
		 void *ctx)
{
	return unwind_caller(img, bias, regs, read, ctx) <= UNWIND_SIGNAL;
}
