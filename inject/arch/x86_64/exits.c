/* SPDX-License-Identifier: MIT */
/*
 * The ways out of a function (see inject/exits.h): a linear walk over its parts.
 *
 * An indirect jump is a switch, which stays inside, or a tail call, which leaves; only the code
 * before it shows which. Compilers emit two forms of a switch:
 *
 *	movslq (table,%rI,4),%rA; add %rT,%rA; jmp *%rA
 *	jmp *table(,%rI,8)	also as a load into a register first
 *
 * A function pointer is loaded without an index, or is an argument. Whatever fits neither is
 * refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "x86.h"
#include "inject/exits.h"
#include "src/base/must.h"

enum { MAX_PARTS = 8, LOOK_BACK = 8, NO_INDEX = 4, NOTRACK = 0x3e };

struct seen {
	const uint8_t *p;
	struct x86_decoded insn;
};

struct walk {
	const struct plan_request *req;
	exits_place_fn *place;
	void *ctx;
	struct exits *out;
	struct exits_part part[MAX_PARTS];
	size_t parts;
	bool indexed; /* some instruction loads through an index, as from a table */
	bool stacks;  /* some instruction may write the stack pointer */
	struct seen seen[LOOK_BACK];
	size_t n_seen; /* instructions of the part so far */
	char *detail;
	size_t size;
};

static enum plan_refusal refuse(const struct walk *w, enum plan_refusal why, uint64_t addr)
{
	snprintf(w->detail, w->size, "at 0x%llx", (unsigned long long)addr);
	return why;
}

static bool in_parts(const struct walk *w, uint64_t addr)
{
	for (size_t i = 0; i < w->parts; i++)
		if (addr >= w->part[i].start && addr < w->part[i].end)
			return true;
	return false;
}

static struct exits_site *add_exit(struct walk *w, const struct exits_part *part, uint64_t addr)
{
	struct exits *out = w->out;
	struct exits_site *site;

	if (!(out->count & (out->count - 1)))
		out->site = must_realloc(out->site,
					 (out->count ? out->count * 2 : 1) * sizeof(*out->site));
	site = &out->site[out->count++];
	*site = (struct exits_site){ addr, *part, false };
	return site;
}

/* ---- indirect jumps ---- */

static unsigned int rex(const uint8_t *p, const struct x86_form *f)
{
	uint8_t last = f->op_off ? p[f->op_off - 1] : 0;

	return (last & 0xf0) == 0x40 ? last : 0;
}

static unsigned int reg_of(const uint8_t *p, const struct x86_form *f)
{
	return (f->modrm >> 3 & 7) | (rex(p, f) & 4 ? 8 : 0);
}

static unsigned int rm_of(const uint8_t *p, const struct x86_form *f)
{
	return (f->modrm & 7) | (rex(p, f) & 1 ? 8 : 0);
}

static bool in_register(const struct x86_form *f)
{
	return f->modrm >= 0xc0;
}

/* A memory operand with an index register. */
static bool has_index(const uint8_t *p, const struct x86_form *f)
{
	return f->modrm_off && !in_register(f) && (f->modrm & 7) == 4 &&
	       ((f->sib >> 3 & 7) != NO_INDEX || rex(p, f) & 2);
}

/* movslq, or a load of 64 bits, through an index. */
static bool reads_table(const uint8_t *p, const struct x86_form *f)
{
	return f->map == 0 && f->rex_w && (f->opcode == 0x63 || f->opcode == 0x8b) &&
	       has_index(p, f);
}

enum origin { ORIGIN_NONE, ORIGIN_TABLE, ORIGIN_POINTER, ORIGIN_UNKNOWN };

static bool table_before(const struct walk *w, size_t back)
{
	for (; back <= LOOK_BACK && back <= w->n_seen; back++) {
		const struct seen *s = &w->seen[(w->n_seen - back) % LOOK_BACK];

		if (s->insn.form.opcode == 0x63 && reads_table(s->p, &s->insn.form))
			return true;
	}
	return false;
}

/* In doubt true. */
static bool may_write(const struct seen *s, unsigned int reg)
{
	const struct x86_form *f = &s->insn.form;

	if (!f->modrm_off) /* pop, mov $imm; cltq and its like write rax and rdx */
		return f->map != 0 || (f->opcode & 0xfe) == 0x98 ||
		       ((f->opcode & 0xf8) == 0x58 && (f->opcode & 7) == (reg & 7)) ||
		       ((f->opcode & 0xf8) == 0xb8 && (f->opcode & 7) == (reg & 7));
	if (f->map == 0 && (f->opcode == 0x85 || f->opcode == 0x39 || f->opcode == 0x3b))
		return false; /* test, cmp */
	return reg_of(s->p, f) == reg || (in_register(f) && rm_of(s->p, f) == reg);
}

/* What the instruction puts into *reg; ORIGIN_NONE: look further back, perhaps for another *reg. */
static enum origin origin_at(const struct walk *w, size_t back, unsigned int *reg)
{
	const struct seen *s = &w->seen[(w->n_seen - back) % LOOK_BACK];
	const struct x86_form *f = &s->insn.form;
	unsigned int to = reg_of(s->p, f), rm = rm_of(s->p, f);
	bool plain = f->map == 0 && f->modrm_off;

	if (s->insn.kind != X86_PLAIN && s->insn.kind != X86_JCC)
		return ORIGIN_UNKNOWN;
	if (plain && ((f->opcode == 0x01 && in_register(f) && rm == *reg) ||
		      (f->opcode == 0x03 && to == *reg)))
		return table_before(w, back + 1) ? ORIGIN_TABLE : ORIGIN_UNKNOWN;
	if (plain && f->opcode == 0x8b && to == *reg && !in_register(f))
		return has_index(s->p, f) ? ORIGIN_UNKNOWN : ORIGIN_POINTER;
	if (plain && in_register(f) && f->opcode == 0x8b && to == *reg)
		*reg = rm;
	else if (plain && in_register(f) && f->opcode == 0x89 && rm == *reg)
		*reg = to;
	else if (may_write(s, *reg))
		return ORIGIN_UNKNOWN;
	return ORIGIN_NONE;
}

static enum origin origin_of(const struct walk *w, unsigned int reg)
{
	for (size_t back = 1; back <= LOOK_BACK && back <= w->n_seen; back++) {
		enum origin o = origin_at(w, back, &reg);

		if (o != ORIGIN_NONE)
			return o;
	}
	return ORIGIN_NONE;
}

static enum plan_refusal take_indirect(struct walk *w, const struct exits_part *part, uint64_t pc,
				       const uint8_t *p, const struct x86_decoded *insn)
{
	const struct x86_form *f = &insn->form;
	enum origin o = ORIGIN_POINTER;

	if (f->op_off && p[0] == NOTRACK)
		o = ORIGIN_TABLE;
	else if (has_index(p, f)) /* without a base: a table at a fixed address */
		o = f->modrm < 0x40 && (f->sib & 7) == 5 ? ORIGIN_TABLE : ORIGIN_UNKNOWN;
	else if (in_register(f))
		o = origin_of(w, rm_of(p, f));
	if (o == ORIGIN_TABLE)
		w->out->tables = true;
	else if (o == ORIGIN_POINTER || !w->indexed)
		add_exit(w, part, pc);
	else
		return refuse(w, PLAN_EXIT_INDIRECT, pc);
	return PLAN_OK;
}

/* ---- direct jumps ---- */

/* A linker's stub for a call into another module: jmp *GOT(%rip), perhaps behind an endbr64. */
static bool is_linkage(const struct walk *w, uint64_t addr)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	struct x86_decoded insn;
	size_t avail;
	const uint8_t *p = x86_text_at(w->req, addr, &avail);

	if (p && avail > sizeof(endbr64) && !memcmp(p, endbr64, sizeof(endbr64))) {
		p += sizeof(endbr64);
		avail -= sizeof(endbr64);
		addr += sizeof(endbr64);
	}
	return p && x86_classify(p, avail, addr, &insn) == PLAN_OK && insn.kind == X86_JMP_IND &&
	       insn.form.rip;
}

static enum plan_refusal take_branch(struct walk *w, const struct exits_part *part, uint64_t pc,
				     const struct x86_decoded *insn)
{
	struct exits_part other = { 0 };
	enum exits_place place;

	if (in_parts(w, insn->target))
		return PLAN_OK;
	place = is_linkage(w, insn->target) ? EXITS_FUNCTION :
					      w->place(w->ctx, insn->target, &other);
	if (place == EXITS_PART) {
		if (w->parts == MAX_PARTS)
			return refuse(w, PLAN_EXIT_ELSEWHERE, pc);
		w->part[w->parts++] = other;
		return PLAN_OK;
	}
	if (place == EXITS_UNKNOWN)
		return refuse(w, PLAN_EXIT_ELSEWHERE, pc);
	if (insn->kind == X86_LOOP)
		return refuse(w, PLAN_EXIT_CONDITIONAL, pc);
	w->out->conditional |= insn->kind == X86_JCC;
	add_exit(w, part, pc);
	return PLAN_OK;
}

/* ---- the walk ---- */

static enum plan_refusal take(struct walk *w, const struct exits_part *part, uint64_t pc,
			      const uint8_t *p, const struct x86_decoded *insn)
{
	switch (insn->kind) {
	case X86_RET:
		add_exit(w, part, pc);
		return PLAN_OK;
	case X86_JMP:
	case X86_JCC:
	case X86_LOOP:
		return take_branch(w, part, pc, insn);
	case X86_JMP_IND:
		return take_indirect(w, part, pc, p, insn);
	default:
		return PLAN_OK;
	}
}

/* Of opcodes whose ModRM.reg is no register, but a part of the opcode. */
static bool is_group(const struct x86_form *f)
{
	return f->map == 0 && ((f->opcode & 0xfc) == 0x80 || (f->opcode & 0xfe) == 0xc0 ||
			       (f->opcode & 0xfe) == 0xc6 || (f->opcode & 0xfc) == 0xd0 ||
			       (f->opcode & 0xf6) == 0xf6);
}

/* In doubt true. */
static bool moves_stack(const uint8_t *p, const struct x86_form *f)
{
	enum { SP = 4, POP = 0x8f, XCHG = 0x94, MOV = 0xbc, GROUP5 = 0xff, PUSH = 6 };

	if (f->modrm_off)
		return (in_register(f) && (f->modrm & 7) == SP) || f->opcode == POP ||
		       (is_group(f) ? f->opcode == GROUP5 && (f->modrm >> 3 & 7) == PUSH :
				      reg_of(p, f) == SP);
	if (f->map) /* push and pop of %fs and %gs */
		return (f->opcode & 0xf6) == 0xa0;
	return (f->opcode & 0xf0) == 0x50 || (f->opcode & 0xfd) == 0x68 ||
	       (f->opcode & 0xfe) == 0x9c || (f->opcode & 0xfe) == 0xc8 || f->opcode == XCHG ||
	       f->opcode == MOV;
}

/* Only no-ops, and no int3 among them, which would end the program here. */
static bool runs_through(const struct walk *w, uint64_t pc, uint64_t end)
{
	while (pc < end) {
		size_t avail;
		const uint8_t *p = x86_text_at(w->req, pc, &avail);
		unsigned int len = p && *p != 0xcc ? x86_nop_length(p, avail) : 0;

		if (!len)
			return false;
		pc += len;
	}
	return pc == end;
}

/*
 * The main part does not end with a jump: its last instruction that is no no-op is at `pc`. What
 * follows is the next function's entry, perhaps behind no-ops, of which the first is the exit. Its
 * stub finds the return address where it was at the entry, and so does that function, if nothing
 * here moves the stack pointer. A system call in the end does not return.
 */
static enum plan_refusal runs_on(struct walk *w, const struct exits_part *part, uint64_t pc,
				 const struct x86_decoded *last)
{
	const struct x86_form *f = &last->form;
	struct exits_part whole = { part->start, w->req->next }, other = { 0 };
	uint64_t behind = pc + f->len;

	if (part != w->part || w->stacks || (f->map == 1 && f->opcode == 0x05) ||
	    (last->kind != X86_PLAIN && last->kind != X86_JCC) || whole.end < part->end ||
	    w->place(w->ctx, whole.end, &other) != EXITS_FUNCTION ||
	    !runs_through(w, behind, whole.end) || (behind == whole.end && last->kind != X86_PLAIN))
		return refuse(w, PLAN_EXIT_RUNS_ON, part->end);
	add_exit(w, &whole, behind < whole.end ? behind : pc)->runs_on = true;
	return PLAN_OK;
}

/* Behind a call in the end, too, which does not return. */
static bool ends(enum x86_kind kind)
{
	return x86_ends(kind) || kind == X86_CALL || kind == X86_CALL_IND;
}

/* Reads one part up to its end, and every instruction of it. */
static enum plan_refusal walk_part(struct walk *w, const struct exits_part *part)
{
	struct x86_decoded last = { .kind = X86_FIXED }; /* that is no no-op */
	enum plan_refusal why = PLAN_OK;
	uint64_t pc = part->start, last_pc = pc;

	w->n_seen = 0;
	while (pc < part->end && why == PLAN_OK) {
		struct seen *s = &w->seen[w->n_seen % LOOK_BACK];
		struct x86_decoded insn;
		size_t avail;
		const uint8_t *p = x86_text_at(w->req, pc, &avail);

		if (!p || x86_classify(p, avail, pc, &insn) != PLAN_OK)
			return refuse(w, PLAN_EXIT_UNDECODABLE, pc);
		w->indexed |= reads_table(p, &insn.form) ||
			      (insn.kind == X86_JMP_IND && has_index(p, &insn.form));
		why = take(w, part, pc, p, &insn);
		w->stacks |= moves_stack(p, &insn.form);
		if (!x86_nop_length(p, avail)) {
			last = insn;
			last_pc = pc;
		}
		*s = (struct seen){ p, insn };
		w->n_seen++;
		pc += insn.form.len;
	}
	if (why != PLAN_OK)
		return why;
	if (pc != part->end)
		return refuse(w, PLAN_EXIT_RUNS_ON, part->end);
	return ends(last.kind) ? PLAN_OK : runs_on(w, part, last_pc, &last);
}

enum plan_refusal exits_find(const struct plan_request *req, exits_place_fn *place, void *ctx,
			     struct exits *out, char *detail, size_t size)
{
	struct walk w = { .req = req,
			  .place = place,
			  .ctx = ctx,
			  .out = out,
			  .part = { { req->func, req->func_end } },
			  .parts = 1,
			  .detail = detail,
			  .size = size };
	enum plan_refusal why = PLAN_OK;

	*out = (struct exits){ 0 };
	detail[0] = '\0';
	if (req->func_end <= req->func)
		return refuse(&w, PLAN_EXIT_RUNS_ON, req->func);
	for (size_t i = 0; i < w.parts && why == PLAN_OK; i++)
		why = walk_part(&w, &w.part[i]);
	if (why == PLAN_OK && !out->count)
		why = refuse(&w, PLAN_EXIT_NONE, req->func);
	if (why == PLAN_OK)
		return why;
	free(out->site);
	*out = (struct exits){ 0 };
	return why;
}
