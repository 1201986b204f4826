/* SPDX-License-Identifier: MIT */
/*
 * The effect of an instruction on the flow of control and on the flags.
 *
 * The kind comes from the opcode, the flags from capstone's tables. Each thread opens one handle of
 * capstone and keeps it: opening it costs more than a thousand instructions.
 */
#include <capstone/capstone.h>
#include <string.h>
#include "x86.h"

struct kind_rule {
	uint8_t map, first, last;
	enum x86_kind kind;
};

/* Opcodes that are not listed here are plain. */
static const struct kind_rule kind_rules[] = {
	{ 0, 0x70, 0x7f, X86_JCC },   { 0, 0xc2, 0xc3, X86_RET },
	{ 0, 0xca, 0xcb, X86_FIXED }, /* far ret: its frame was pushed by a far call */
	{ 0, 0xcc, 0xcc, X86_FIXED }, /* int3: the handler examines rip */
	{ 0, 0xcf, 0xcf, X86_FIXED }, /* iret */
	{ 0, 0xe0, 0xe3, X86_LOOP },  { 0, 0xe8, 0xe8, X86_CALL },
	{ 0, 0xe9, 0xe9, X86_JMP },   { 0, 0xeb, 0xeb, X86_JMP },
	{ 0, 0xf1, 0xf1, X86_FIXED },				    /* int1 */
	{ 0, 0xf4, 0xf4, X86_TRAP },  { 1, 0x07, 0x07, X86_FIXED }, /* sysret */
	{ 1, 0x0b, 0x0b, X86_TRAP },  { 1, 0x34, 0x35, X86_FIXED }, /* sysenter, sysexit */
	{ 1, 0x80, 0x8f, X86_JCC },   { 1, 0xb9, 0xb9, X86_TRAP },
	{ 1, 0xff, 0xff, X86_TRAP },
};

/* Group 5 by ModRM's reg field: near and far calls and jumps. */
static const enum x86_kind group5[8] = {
	X86_PLAIN, X86_PLAIN, X86_CALL_IND, X86_FIXED, X86_JMP_IND, X86_FIXED, X86_PLAIN, X86_FIXED,
};

/* A near branch of 16 bits on AMD, of 64 on Intel. */
static bool narrow(const struct x86_form *f)
{
	return f->opsize && !f->rex_w;
}

static enum x86_kind kind_of(const struct x86_form *f)
{
	if (f->map == 0 && f->opcode == 0xff) {
		enum x86_kind kind = group5[f->modrm >> 3 & 7];

		return kind != X86_PLAIN && narrow(f) ? X86_FIXED : kind;
	}
	if (f->map == 0 && (f->opcode & 0xfe) == 0xc2 && narrow(f))
		return X86_FIXED;
	if (f->map == 0 && (f->opcode == 0xc6 || f->opcode == 0xc7) && (f->modrm & 0x38) == 0x38)
		return X86_FIXED; /* xabort, xbegin: the abort address is relative */
	if (f->rip && f->addrsize)
		return X86_FIXED; /* EIP-relative: the lower 4 GB only */
	for (size_t i = 0; i < sizeof(kind_rules) / sizeof(kind_rules[0]); i++) {
		const struct kind_rule *r = &kind_rules[i];

		if (f->map == r->map && f->opcode >= r->first && f->opcode <= r->last)
			return r->kind;
	}
	return X86_PLAIN;
}

bool x86_ends(enum x86_kind kind)
{
	return kind == X86_JMP || kind == X86_JMP_IND || kind == X86_RET || kind == X86_TRAP;
}

enum { RSP = 4 };

bool x86_may_precede(const uint8_t *p, const struct x86_decoded *insn)
{
	const struct x86_form *f = &insn->form;
	uint8_t rm = f->modrm & 7, reg = f->modrm >> 3 & 7;
	bool registers = f->modrm_off && f->modrm >= 0xc0;

	/* Of prefixes, one REX at most. */
	if (insn->kind != X86_PLAIN || f->map || f->op_off > 1 ||
	    (f->op_off && (p[0] & 0xf0) != 0x40))
		return false;
	switch (f->opcode) {
	case 0x50 ... 0x57: /* push */
		return true;
	case 0x83: /* sub $imm8,%rsp; a large frame may end on an unmapped page */
		return f->modrm == 0xec && f->rex_w && !(p[0] & 1);
	case 0x89: /* mov, xor between registers; in doubt about the REX bits, not into rsp */
	case 0x31:
		return registers && rm != RSP;
	case 0x8b:
	case 0x33:
	case 0x63:
		return registers && reg != RSP;
	case 0x8d: /* lea */
		return reg != RSP;
	case 0xb8 ... 0xbf: /* mov $imm */
		return (f->opcode & 7) != RSP;
	default:
		return false;
	}
}

bool x86_writes_argument(const uint8_t *p, const struct x86_decoded *insn)
{
	static const unsigned int arguments = 1 << 7 | 1 << 6 | 1 << 2 | 1 << 1 | 1 << 8 | 1 << 9;
	const struct x86_form *f = &insn->form;
	uint8_t rex = f->op_off ? p[0] : 0, rm = f->modrm & 7, reg = f->modrm >> 3 & 7;

	switch (f->opcode) {
	case 0x89:
	case 0x31:
		return arguments >> (rm | (rex & 1) << 3) & 1;
	case 0x8b:
	case 0x33:
	case 0x63:
	case 0x8d:
		return arguments >> (reg | (rex & 4) << 1) & 1;
	case 0xb8 ... 0xbf:
		return arguments >> ((f->opcode & 7) | (rex & 1) << 3) & 1;
	default:
		return false;
	}
}

static int64_t field(const uint8_t *p, unsigned int len)
{
	int32_t wide;

	if (len == 1)
		return (int8_t)*p;
	memcpy(&wide, p, sizeof(wide));
	return wide;
}

enum plan_refusal x86_classify(const uint8_t *p, size_t avail, uint64_t addr,
			       struct x86_decoded *insn)
{
	struct x86_form *f = &insn->form;

	memset(insn, 0, sizeof(*insn));
	if (!x86_length(p, avail, f))
		return PLAN_UNDECODABLE;
	insn->kind = kind_of(f);
	switch (insn->kind) {
	case X86_JMP:
	case X86_JCC:
	case X86_LOOP:
	case X86_CALL:
		insn->target = addr + f->len + field(p + f->imm_off, f->imm_len);
		break;
	default:
		if (f->rip)
			insn->target = addr + f->len + field(p + f->disp_off, 4);
	}
	return PLAN_OK;
}

struct flag_bits {
	uint8_t flag;
	uint64_t reads, writes;
};

#define WRITES(F)                                                            \
	(X86_EFLAGS_MODIFY_##F | X86_EFLAGS_RESET_##F | X86_EFLAGS_SET_##F | \
	 X86_EFLAGS_UNDEFINED_##F)

static const struct flag_bits flag_bits[] = {
	{ X86_CF, X86_EFLAGS_TEST_CF, WRITES(CF) }, { X86_PF, X86_EFLAGS_TEST_PF, WRITES(PF) },
	{ X86_AF, X86_EFLAGS_TEST_AF, WRITES(AF) }, { X86_ZF, X86_EFLAGS_TEST_ZF, WRITES(ZF) },
	{ X86_SF, X86_EFLAGS_TEST_SF, WRITES(SF) }, { X86_OF, X86_EFLAGS_TEST_OF, WRITES(OF) },
};

#define ANY_TEST                                                                             \
	(X86_EFLAGS_TEST_OF | X86_EFLAGS_TEST_SF | X86_EFLAGS_TEST_ZF | X86_EFLAGS_TEST_PF | \
	 X86_EFLAGS_TEST_CF | X86_EFLAGS_TEST_AF | X86_EFLAGS_TEST_DF | X86_EFLAGS_TEST_NT | \
	 X86_EFLAGS_TEST_IF | X86_EFLAGS_TEST_TF | X86_EFLAGS_TEST_RF)

/* Shifts and repeated compares leave every flag unchanged when their count is 0. */
static bool may_do_nothing(const struct x86_form *f, const uint8_t *p)
{
	bool shift = f->map == 0 && (f->opcode & 0xfe) == 0xc0;
	bool wide_shift = f->map == 1 && (f->opcode == 0xa4 || f->opcode == 0xac);

	if (shift || wide_shift)
		return !(p[f->imm_off] & 31);
	if (f->map == 0 && (f->opcode & 0xfe) == 0xd2)
		return true;
	if (f->map == 1 && (f->opcode == 0xa5 || f->opcode == 0xad))
		return true;
	return f->map == 0 && f->rep && (f->opcode & 0xf6) == 0xa6;
}

/* fcmovcc, which is missing in capstone's tables. */
static bool is_fcmov(const struct x86_form *f)
{
	return f->map == 0 && (f->opcode & 0xfe) == 0xda && f->modrm >= 0xc0 && f->modrm < 0xe0;
}

static bool in_list(const cs_detail *detail, unsigned int reg)
{
	for (unsigned int i = 0; i < detail->regs_read_count; i++)
		if (detail->regs_read[i] == reg)
			return true;
	return false;
}

static void read_flags(csh handle, const cs_insn *cs, const uint8_t *p, struct x86_decoded *insn)
{
	uint64_t bits = cs->detail->x86.eflags;

	/* capstone keeps x87 status bits in the same field */
	if (cs_insn_group(handle, cs, X86_GRP_FPU))
		bits = 0;
	for (size_t i = 0; i < sizeof(flag_bits) / sizeof(flag_bits[0]); i++) {
		if (bits & flag_bits[i].reads)
			insn->flags_in |= flag_bits[i].flag;
		if (bits & flag_bits[i].writes)
			insn->flags_out |= flag_bits[i].flag;
	}
	/* the two tables of capstone do not always agree: "reads" wins */
	if (is_fcmov(&insn->form) || (!(bits & ANY_TEST) && in_list(cs->detail, X86_REG_EFLAGS)))
		insn->flags_in = X86_ARITH;
	if (may_do_nothing(&insn->form, p))
		insn->flags_out = 0;
}

static __thread csh handle;
static __thread cs_insn *scratch;

static bool open_decoder(void)
{
	if (scratch)
		return true;
	if (!handle && cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return false;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	scratch = cs_malloc(handle);
	return scratch != NULL;
}

enum plan_refusal x86_decode(const uint8_t *p, size_t avail, uint64_t addr,
			     struct x86_decoded *insn)
{
	const uint8_t *code = p;
	size_t left = avail > 15 ? 15 : avail;
	const cs_x86 *x86;

	if (!open_decoder() || x86_classify(p, avail, addr, insn) != PLAN_OK)
		return PLAN_UNDECODABLE;
	if (!cs_disasm_iter(handle, &code, &left, &addr, scratch) ||
	    scratch->size != insn->form.len)
		return PLAN_UNDECODABLE;
	x86 = &scratch->detail->x86;
	if (insn->form.rip && x86->encoding.disp_offset != insn->form.disp_off)
		return PLAN_UNDECODABLE;
	read_flags(handle, scratch, p, insn);
	return PLAN_OK;
}
