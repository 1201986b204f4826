/* SPDX-License-Identifier: MIT */
/* What was emitted, read by capstone alone and held against the window it came from. */
#include <capstone/capstone.h>
#include <stdlib.h>
#include <string.h>
#include "prove.h"

enum { PUSH_SEQUENCE = 13 };

struct pair {
	const struct plan *plan;
	uint64_t at;
	const uint8_t *code;
	size_t len;
	const struct plan_pc *pcs;
};

static csh handle;

static cs_insn *read_at(const uint8_t *code, size_t len, uint64_t addr)
{
	static cs_insn *slot[4];
	static unsigned int turn;
	cs_insn **insn = &slot[turn++ % 4]; /* four are looked at together at most */
	const uint8_t *p = code;

	if (!handle) {
		if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
			abort();
		cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	}
	if (!*insn)
		*insn = cs_malloc(handle);
	return cs_disasm_iter(handle, &p, &len, &addr, *insn) ? *insn : NULL;
}

static cs_insn *read_emitted(const struct pair *p, size_t off)
{
	return off < p->len ? read_at(p->code + off, p->len - off, p->at + off) : NULL;
}

/* Where the copy of a branch has to go. */
static uint64_t wanted_target(const struct pair *p, uint64_t target)
{
	const struct plan *plan = p->plan;

	if (plan->entry && target == plan->addr - plan->skipped)
		return p->at + p->pcs[0].emitted;
	if (!plan->entry && target == plan->addr)
		return target;
	for (unsigned int i = 0; i < plan->insns; i++)
		if (p->pcs[i].original == target)
			return p->at + p->pcs[i].emitted;
	return target;
}

static bool is_jump_to(const cs_insn *insn, uint64_t target)
{
	return insn && insn->id == X86_INS_JMP && insn->detail->x86.op_count == 1 &&
	       insn->detail->x86.operands[0].type == X86_OP_IMM &&
	       (uint64_t)insn->detail->x86.operands[0].imm == target;
}

static bool same_operand(const cs_insn *a, const cs_x86_op *x, const cs_insn *b, const cs_x86_op *y)
{
	if (x->type != y->type || x->size != y->size)
		return false;
	if (x->type == X86_OP_REG)
		return x->reg == y->reg;
	if (x->type == X86_OP_IMM)
		return x->imm == y->imm;
	if (x->mem.segment != y->mem.segment || x->mem.base != y->mem.base ||
	    x->mem.index != y->mem.index || x->mem.scale != y->mem.scale)
		return false;
	if (x->mem.base == X86_REG_RIP)
		return a->address + a->size + (uint64_t)x->mem.disp ==
		       b->address + b->size + (uint64_t)y->mem.disp;
	return x->mem.disp == y->mem.disp;
}

static bool same_operands(const cs_insn *a, const cs_insn *b)
{
	const cs_x86 *x = &a->detail->x86, *y = &b->detail->x86;

	if (x->op_count != y->op_count)
		return false;
	for (unsigned int i = 0; i < x->op_count; i++)
		if (!same_operand(a, &x->operands[i], b, &y->operands[i]))
			return false;
	return true;
}

/* All bytes but those of a RIP-relative displacement. */
static bool same_bytes(const cs_insn *a, const cs_insn *b)
{
	const cs_x86 *x = &a->detail->x86;
	bool rip = false;

	for (unsigned int i = 0; i < x->op_count; i++)
		rip |= x->operands[i].type == X86_OP_MEM && x->operands[i].mem.base == X86_REG_RIP;
	for (unsigned int i = 0; i < a->size; i++)
		if (a->bytes[i] != b->bytes[i] &&
		    !(rip && i - x->encoding.disp_offset < 4u)) /* its size is wrong behind a 66 */
			return false;
	return true;
}

/* push imm32; movl imm32, 4(%rsp): together the return address. */
static bool pushes(const struct pair *p, size_t off, uint64_t ret)
{
	const cs_insn *push = read_emitted(p, off);
	const cs_insn *mov = push ? read_emitted(p, off + push->size) : NULL;
	const cs_x86_op *op = mov ? mov->detail->x86.operands : NULL;

	return mov && push->id == X86_INS_PUSH && mov->id == X86_INS_MOV &&
	       (uint32_t)push->detail->x86.operands[0].imm == (uint32_t)ret &&
	       op[0].type == X86_OP_MEM && op[0].size == 4 && op[0].mem.base == X86_REG_RSP &&
	       op[0].mem.index == X86_REG_INVALID && op[0].mem.disp == 4 &&
	       (uint32_t)op[1].imm == ret >> 32 && push->size + mov->size == PUSH_SEQUENCE;
}

static const char *call_differs(const struct pair *p, const cs_insn *a, size_t off)
{
	const cs_x86_op *op = &a->detail->x86.operands[0];
	const cs_insn *jump;

	if (!pushes(p, off, a->address + a->size))
		return "the return address of a call";
	jump = read_emitted(p, off + PUSH_SEQUENCE);
	if (!jump || jump->id != X86_INS_JMP)
		return "a call is no jump";
	if (op->type == X86_OP_IMM)
		return is_jump_to(jump, (uint64_t)op->imm) ? NULL : "the target of a call";
	return same_operands(a, jump) ? NULL : "the operand of a call";
}

static const char *loop_differs(const struct pair *p, const cs_insn *b, size_t off, uint64_t target)
{
	size_t over = off + b->size, jump = over + 2;

	if ((uint64_t)b->detail->x86.operands[0].imm != p->at + jump ||
	    !is_jump_to(read_emitted(p, over), p->at + jump + 5))
		return "the way around a loop";
	return is_jump_to(read_emitted(p, jump), target) ? NULL : "the target of a loop";
}

static bool is_loop(const cs_insn *a)
{
	static const unsigned int ids[] = { X86_INS_LOOP, X86_INS_LOOPE, X86_INS_LOOPNE,
					    X86_INS_JRCXZ, X86_INS_JECXZ };

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (a->id == ids[i])
			return true;
	return false;
}

static const char *insn_differs(const struct pair *p, const cs_insn *a, size_t off)
{
	const cs_x86_op *op = &a->detail->x86.operands[0];
	const cs_insn *b = read_emitted(p, off);
	uint64_t target;

	if (!b)
		return "what was emitted is no instruction";
	if (a->id == X86_INS_CALL)
		return call_differs(p, a, off);
	if (a->id != b->id)
		return "another instruction";
	if (cs_insn_group(handle, a, X86_GRP_JUMP) && op->type == X86_OP_IMM) {
		target = wanted_target(p, (uint64_t)op->imm);
		if (is_loop(a))
			return loop_differs(p, b, off, target);
		return (uint64_t)b->detail->x86.operands[0].imm == target ? NULL :
									    "the target of a jump";
	}
	if (a->size != b->size || !same_bytes(a, b))
		return "the bytes of an instruction";
	return same_operands(a, b) ? NULL : "the operands of an instruction";
}

const char *listing_differs(const struct plan *plan, uint64_t at, const uint8_t *code, size_t len,
			    const struct plan_pc *pcs, size_t n)
{
	struct pair p = { plan, at, code, len, pcs };

	if (n != plan->insns + (plan->ends ? 0u : 1u))
		return "the number of boundaries";
	for (unsigned int i = 0; i < plan->insns; i++) {
		uint64_t addr = plan->addr + plan->insn[i].off;
		const cs_insn *a = read_at(plan->orig + plan->insn[i].off, plan->insn[i].len, addr);
		const char *why;

		if (!a || a->size != plan->insn[i].len || pcs[i].original != addr)
			return "the window is not read alike";
		why = insn_differs(&p, a, pcs[i].emitted);
		if (why)
			return why;
	}
	if (plan->ends)
		return NULL;
	if (pcs[n - 1].original != plan->resume || pcs[n - 1].emitted + 5u != len)
		return "the end";
	return is_jump_to(read_emitted(&p, pcs[n - 1].emitted), plan->resume) ? NULL :
										"the way back";
}
