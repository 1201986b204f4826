/* SPDX-License-Identifier: MIT */
/*
 * How displaced instructions are rewritten to run in a stub.
 *
 *	RIP-relative operand	same instruction, disp32 adjusted
 *	jmp, jcc		the rel32 form
 *	loop, jrcxz, jecxz	have no rel32 form: two more jumps
 *	call rel32		push the ORIGINAL return address; jmp
 *	call r/m64		push the ORIGINAL return address; jmp r/m64
 *	anything else		copied
 *	an inner exit		a jump, or the same conditional one, to another stub
 *
 * The pushed return address is the original one so that no frame ever returns into a stub:
 * unwinders find their tables, and stubs can be unmapped while such a call is under way. It is
 * pushed by `push imm32; movl imm32, 4(%rsp)`, which touches neither registers nor flags. (A
 * processor that enforces a shadow stack would fault at the matching ret.)
 *
 * A branch to an instruction of the window goes to its emitted copy.
 */
#include <string.h>
#include "x86.h"

enum { PUSH_RETURN = 13, REL_JMP = 5, REL_JCC = 6, LOOP_SIZE = 9, CALL_TO_JMP = 0x30 };

struct emit {
	const struct plan *plan;
	uint64_t at;
	uint8_t *buf;
	size_t cap, pos;
	unsigned int first, last; /* displaced instructions to emit: [first, last) */
	uint64_t taken; /* behind them, where to go if a conditional exit is taken; 0: nowhere */
	uint16_t copy[PLAN_MAX_INSNS]; /* where each of them begins */
	enum plan_refusal why;
};

static uint64_t insn_addr(const struct plan *plan, unsigned int i)
{
	return plan->addr + plan->insn[i].off;
}

static enum plan_refusal read_insn(const struct plan *plan, unsigned int i,
				   struct x86_decoded *insn)
{
	return x86_classify(plan->orig + plan->insn[i].off, plan->insn[i].len, insn_addr(plan, i),
			    insn);
}

static bool is_inner(const struct plan *plan, unsigned int i)
{
	return plan->inner >> i & 1;
}

static unsigned int emitted_size(const struct x86_decoded *insn, bool inner)
{
	if (inner)
		return insn->kind == X86_JCC ? REL_JCC : REL_JMP;
	switch (insn->kind) {
	case X86_JMP:
		return REL_JMP;
	case X86_JCC:
		return REL_JCC;
	case X86_LOOP:
		return insn->form.op_off + LOOP_SIZE;
	case X86_CALL:
		return PUSH_RETURN + REL_JMP;
	case X86_CALL_IND:
		return PUSH_RETURN + insn->form.len;
	default:
		return insn->form.len;
	}
}

static void put(struct emit *e, const void *bytes, size_t len)
{
	memcpy(e->buf + e->pos, bytes, len);
	e->pos += len;
}

static void put_byte(struct emit *e, uint8_t byte)
{
	put(e, &byte, 1);
}

static void put32(struct emit *e, uint32_t value)
{
	put(e, &value, sizeof(value));
}

/* A rel32 whose instruction ends `after` bytes further on, so that it reaches target. */
static void put_rel32(struct emit *e, uint64_t target, unsigned int after)
{
	int64_t rel = (int64_t)(target - (e->at + e->pos + 4 + after));

	if (rel != (int32_t)rel)
		e->why = PLAN_OUT_OF_REACH;
	put32(e, (uint32_t)rel);
}

/*
 * The destination of a displaced branch. The function's entry itself is, for a hook there, the
 * emitted copy: passing the hook again would count one call twice. A hook in mid-function counts
 * passes, so a branch to it goes through it.
 */
static uint64_t branch_target(const struct emit *e, uint64_t target)
{
	const struct plan *plan = e->plan;

	if (plan->entry && target == plan->addr - plan->skipped)
		target = plan->addr;
	if (!plan->entry && target == plan->addr)
		return target;
	for (unsigned int i = e->first; i < e->last; i++)
		if (insn_addr(plan, i) == target)
			return e->at + e->copy[i];
	return target;
}

static void put_push_return(struct emit *e, uint64_t ret)
{
	static const uint8_t mov_4_rsp[] = { 0xc7, 0x44, 0x24, 0x04 };

	put_byte(e, 0x68);
	put32(e, (uint32_t)ret);
	put(e, mov_4_rsp, sizeof(mov_4_rsp));
	put32(e, (uint32_t)(ret >> 32));
}

/* Copies an instruction with its RIP-relative operand, if any, adjusted. */
static void put_copy(struct emit *e, const uint8_t *code, const struct x86_decoded *insn)
{
	const struct x86_form *f = &insn->form;

	if (!f->rip) {
		put(e, code, f->len);
		return;
	}
	put(e, code, f->disp_off);
	put_rel32(e, insn->target, f->len - f->disp_off - 4);
	put(e, code + f->disp_off + 4, f->len - f->disp_off - 4);
}

/* loop +2; jmp +5; jmp rel32: prefixes stay, 67 makes it count in ecx. */
static void put_loop(struct emit *e, const uint8_t *code, const struct x86_decoded *insn)
{
	static const uint8_t around[] = { 0x02, 0xeb, 0x05, 0xe9 };

	put(e, code, insn->form.op_off + 1);
	put(e, around, sizeof(around));
	put_rel32(e, branch_target(e, insn->target), 0);
}

static void put_call_ind(struct emit *e, const uint8_t *code, const struct x86_decoded *insn,
			 uint64_t ret)
{
	size_t start;

	put_push_return(e, ret);
	start = e->pos;
	put_copy(e, code, insn);
	/* group 5: /2 is call, /4 is jmp */
	e->buf[start + insn->form.modrm_off] ^= CALL_TO_JMP;
}

static void put_jcc(struct emit *e, const struct x86_decoded *insn, uint64_t target)
{
	put_byte(e, 0x0f);
	put_byte(e, 0x80 | (insn->form.opcode & 15));
	put_rel32(e, target, 0);
}

/* Its target is not known yet: plan_link(). */
static void put_inner(struct emit *e, const struct x86_decoded *insn)
{
	if (insn->kind == X86_JCC) {
		put_jcc(e, insn, e->at + e->pos);
		return;
	}
	put_byte(e, 0xe9);
	put_rel32(e, e->at + e->pos, 0);
}

static void put_insn(struct emit *e, unsigned int i, const struct x86_decoded *insn)
{
	const uint8_t *code = e->plan->orig + e->plan->insn[i].off;
	uint64_t end = insn_addr(e->plan, i) + insn->form.len;

	switch (insn->kind) {
	case X86_JMP:
		put_byte(e, 0xe9);
		put_rel32(e, branch_target(e, insn->target), 0);
		break;
	case X86_JCC:
		put_jcc(e, insn, branch_target(e, insn->target));
		break;
	case X86_LOOP:
		put_loop(e, code, insn);
		break;
	case X86_CALL:
		put_push_return(e, end);
		put_byte(e, 0xe9);
		put_rel32(e, insn->target, 0);
		break;
	case X86_CALL_IND:
		put_call_ind(e, code, insn, end);
		break;
	default:
		put_copy(e, code, insn);
	}
}

/* First pass: where each copy will begin; a forward branch inside the window needs it. */
static bool lay_out(struct emit *e)
{
	size_t pos = 0;

	for (unsigned int i = e->first; i < e->last; i++) {
		struct x86_decoded insn;

		if (read_insn(e->plan, i, &insn) != PLAN_OK)
			return false;
		e->copy[i] = (uint16_t)pos;
		pos += emitted_size(&insn, is_inner(e->plan, i));
	}
	return pos + REL_JCC + REL_JMP <= e->cap;
}

/* Decodes what was written: it must still be one instruction, with the same operand. */
static bool reads_back(const struct emit *e, unsigned int i, const struct x86_decoded *insn)
{
	struct x86_decoded got;
	unsigned int off = e->copy[i];

	if (e->pos - off != emitted_size(insn, is_inner(e->plan, i)))
		return false;
	if (is_inner(e->plan, i))
		return true;
	if (insn->kind == X86_CALL || insn->kind == X86_CALL_IND)
		off += PUSH_RETURN;
	if (insn->kind == X86_LOOP)
		off += insn->form.op_off + 4;
	if (x86_classify(e->buf + off, e->pos - off, e->at + off, &got) != PLAN_OK)
		return false;
	if (off + got.form.len != e->pos)
		return false;
	return x86_ends(got.kind) || got.kind == X86_JCC || got.target == insn->target;
}

static size_t refuse(enum plan_refusal *why, enum plan_refusal code)
{
	*why = code;
	return 0;
}

/* Where a conditional exit is taken the stub's own code is entered. */
static void put_if_taken(struct emit *e, struct plan_pc *pcs, size_t *n_pcs)
{
	unsigned int exit = e->plan->insns - 1u;
	struct x86_decoded insn;

	if (read_insn(e->plan, exit, &insn) != PLAN_OK) {
		e->why = PLAN_UNDECODABLE;
		return;
	}
	pcs[(*n_pcs)++] = (struct plan_pc){ (uint16_t)e->pos, insn_addr(e->plan, exit) };
	put_jcc(e, &insn, e->taken);
}

/* Writes the instructions of the range, then a jump to `next`; 0: the last one ends the code. */
static size_t emit(struct emit *e, uint64_t next, uint64_t original, struct plan_pc *pcs,
		   size_t *n_pcs, enum plan_refusal *why)
{
	*n_pcs = 0;
	if (!lay_out(e))
		return refuse(why, PLAN_UNMOVABLE);
	for (unsigned int i = e->first; i < e->last; i++) {
		struct x86_decoded insn;

		if (read_insn(e->plan, i, &insn) != PLAN_OK)
			return refuse(why, PLAN_UNDECODABLE);
		pcs[(*n_pcs)++] = (struct plan_pc){ e->copy[i], insn_addr(e->plan, i) };
		if (is_inner(e->plan, i))
			put_inner(e, &insn);
		else
			put_insn(e, i, &insn);
		if (e->why == PLAN_OK && !reads_back(e, i, &insn))
			return refuse(why, PLAN_UNMOVABLE);
	}
	if (e->taken)
		put_if_taken(e, pcs, n_pcs);
	if (next) {
		pcs[(*n_pcs)++] = (struct plan_pc){ (uint16_t)e->pos, original };
		put_byte(e, 0xe9);
		put_rel32(e, next, 0);
	}
	*why = e->why;
	return e->why == PLAN_OK ? e->pos : 0;
}

size_t plan_emit(const struct plan *plan, uint64_t at, uint8_t *buf, size_t cap,
		 struct plan_pc *pcs, size_t *n_pcs, enum plan_refusal *why)
{
	struct emit e = { .plan = plan,
			  .at = at,
			  .buf = buf,
			  .cap = cap,
			  .first = plan->before,
			  .last = plan->insns };

	return emit(&e, plan->ends ? 0 : plan->resume, plan->resume, pcs, n_pcs, why);
}

size_t plan_emit_before(const struct plan *plan, uint64_t at, uint64_t hook, uint8_t *buf,
			size_t cap, struct plan_pc *pcs, size_t *n_pcs, enum plan_refusal *why)
{
	struct emit e = { .plan = plan, .at = at, .buf = buf, .cap = cap, .last = plan->before };

	if (!plan->conditional)
		return emit(&e, hook, insn_addr(plan, plan->before), pcs, n_pcs, why);
	e.taken = hook;
	return emit(&e, plan->resume, plan->resume, pcs, n_pcs, why);
}

void plan_link(uint8_t *code, uint64_t at, uint64_t to)
{
	unsigned int field = *code == 0x0f ? 2 : 1;
	int32_t rel = (int32_t)(to - (at + field + sizeof(rel)));

	memcpy(code + field, &rel, sizeof(rel));
}

void plan_patch(const struct plan *plan, uint64_t stub, uint8_t *at_addr, uint8_t *at_pad)
{
	uint8_t *jump = plan->pad ? at_pad : at_addr;
	uint64_t from = plan->pad ? plan->pad : plan->addr;
	int32_t rel = (int32_t)(stub - (from + REL_JMP));

	memset(at_addr, 0xcc, plan->len);
	if (plan->shape == PLAN_INT3)
		return;
	if (plan->shape == PLAN_TWIN) {
		at_addr[0] = 0xeb;
		at_addr[1] = (uint8_t)(plan->twin - (plan->addr + 2));
		return;
	}
	jump[0] = 0xe9;
	memcpy(jump + 1, &rel, sizeof(rel));
	if (plan->pad) {
		at_addr[0] = 0xeb;
		at_addr[1] = (uint8_t)(plan->pad - (plan->addr + 2));
	}
}

unsigned int plan_retarget(const struct plan_retarget *rt, uint64_t past, uint64_t *addr,
			   uint8_t *bytes)
{
	int32_t rel = (int32_t)(past - (rt->field + rt->insn_end));

	*addr = rt->field - rt->widen;
	if (rt->widen)
		bytes[0] = 0xe9;
	memcpy(bytes + rt->widen, &rel, sizeof(rel));
	return sizeof(rel) + rt->widen;
}

int plan_emitted_pc(const struct plan_pc *pcs, size_t n, uint64_t original)
{
	for (size_t i = 0; i < n; i++)
		if (pcs[i].original == original)
			return pcs[i].emitted;
	return -1;
}
