/* SPDX-License-Identifier: MIT */
#ifndef SB_X86_H
#define SB_X86_H

#include "inject/plan.h"

/*
 * Reading x86-64 instructions, for this folder only.
 *
 * Two decoders of different origin must agree before an instruction is displaced: a small one here,
 * for lengths and the places of fields (x86_length(), about 150 MB/s), and capstone (about 10
 * MB/s), for the validity of an instruction and the flags that it touches. Walking long stretches
 * (landing confirmation) uses the small one alone.
 */

/* Where the parts of one instruction lie; offsets count from its first byte, 0: absent. */
struct x86_form {
	uint8_t len;
	uint8_t map;	/* 0: one byte, 1: 0f, 2: 0f38, 3: 0f3a, 5, 6: EVEX only, 8..10: XOP */
	uint8_t opcode; /* within the map */
	uint8_t op_off; /* the opcode byte: prefixes end here */
	uint8_t modrm_off;
	uint8_t disp_off, disp_len;
	uint8_t imm_off, imm_len; /* also the displacement field of a relative branch */
	uint8_t modrm;
	uint8_t sib;
	uint8_t rep; /* f2, f3 or 0 */
	bool rex_w;
	bool opsize;   /* 66 */
	bool addrsize; /* 67 */
	bool rip;      /* the memory operand is RIP-relative */
	bool odd;      /* valid, but not found in real programs: a sign of data among code */
};

/* The length of the instruction at p, or 0 if it is none or does not end within avail bytes. */
unsigned int x86_length(const uint8_t *p, size_t avail, struct x86_form *form);

enum x86_kind {
	X86_PLAIN,    /* copied, its RIP-relative operand adjusted */
	X86_JMP,      /* jmp rel8, rel32 */
	X86_JCC,      /* jcc rel8, rel32 */
	X86_LOOP,     /* loop, loope, loopne, jrcxz, jecxz */
	X86_CALL,     /* call rel32 */
	X86_CALL_IND, /* call r/m64 */
	X86_JMP_IND,  /* jmp r/m64 */
	X86_RET,      /* ret, ret imm16 */
	X86_TRAP,     /* ud2, hlt: never falls through */
	X86_FIXED,    /* runs only at its original address */
};

enum x86_flag {
	X86_CF = 1,
	X86_PF = 2,
	X86_AF = 4,
	X86_ZF = 8,
	X86_SF = 16,
	X86_OF = 32,
	X86_ARITH = 63,
};

struct x86_decoded {
	struct x86_form form;
	enum x86_kind kind;
	uint64_t target;	     /* of a relative branch or a RIP-relative operand, else 0 */
	uint8_t flags_in, flags_out; /* X86_CF...; only x86_decode() fills them */
};

/* Lengths and kind only; 0 or PLAN_UNDECODABLE. */
enum plan_refusal x86_classify(const uint8_t *p, size_t avail, uint64_t addr,
			       struct x86_decoded *insn);

/* Both decoders; PLAN_UNDECODABLE where either fails or they differ. */
enum plan_refusal x86_decode(const uint8_t *p, size_t avail, uint64_t addr,
			     struct x86_decoded *insn);

/* True for kinds after which execution never continues behind the instruction. */
bool x86_ends(enum x86_kind kind);

/*
 * True for an entry's first instruction that may run before the stub: it does not touch what lies
 * under the stack pointer, and execution continues behind it.
 */
bool x86_may_precede(const uint8_t *p, const struct x86_decoded *insn);
/* Of such an instruction: does it write a register that holds an argument? */
bool x86_writes_argument(const uint8_t *p, const struct x86_decoded *insn);

/* True where the arithmetic flags at pc may still be read. */
bool x86_flags_live(const struct plan_request *req, uint64_t pc);

/* The length of the no-op at p (nop of any form, int3, xchg %ax,%ax, lea 0(%rsi),%rsi), or 0. */
unsigned int x86_nop_length(const uint8_t *p, size_t avail);

/* True if [from, to) decodes as no-ops and nothing else, the last one ending at `to`. */
bool x86_only_nops(const struct plan_request *req, uint64_t from, uint64_t to);

/* True if [from, to) lies in no-ops that begin at `from`; the last one may end behind `to`. */
bool x86_covered_by_nops(const struct plan_request *req, uint64_t from, uint64_t to);

/* Where the no-ops end that begin at `from`, `to` at most; `from`: none is there. */
uint64_t x86_nops_from(const struct plan_request *req, uint64_t from, uint64_t to);

/* True if [from, to) is nothing but no-ops, and no code runs into them. */
bool x86_dead_nops(const struct plan_request *req, uint64_t from, uint64_t to);

/*
 * Where among the no-ops [from, to) a jump of 5 bytes may be put, the later the better: no code
 * falls into them from above, or such code meets an instruction boundary there. 0: nowhere.
 */
uint64_t x86_pad_place(const struct plan_request *req, uint64_t from, uint64_t to);

/* The text at a run-time address and the number of bytes that follow; NULL outside. */
const uint8_t *x86_text_at(const struct plan_request *req, uint64_t addr, size_t *avail);

#endif
