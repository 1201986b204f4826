/* SPDX-License-Identifier: MIT */
#ifndef SB_X86_STUB_H
#define SB_X86_STUB_H

#include "inject/arch/arch.h"

/* The templates that stub-code.S describes; fields are offsets from the template's start. */
struct stub_template {
	const uint8_t *code;
	uint32_t size;
	uint32_t entry;	 /* first instruction to run */
	uint32_t jmp;	 /* rel32 to the slow path */
	uint32_t record; /* imm64 */
	uint32_t cell;	 /* imm64 */
	uint32_t mask;	 /* imm32: (slots - 1) << 10 (own), slots << 10 (shared) */
	uint32_t out;	 /* rdx has its own value again: on one path here it was never spilled */
	uint32_t each;	 /* imm64, the function's own counter; 0: it has none */
	uint32_t done;	 /* the hit has been counted */
	uint32_t base;	 /* rel32 to counters_off in the common code */
	uint32_t taken;	 /* the same; 0: it counts in a shared slot */
	uint32_t slow;	 /* the code before it: the path where a goroutine's stack is too short */
	uint32_t low_record, low_cell, low_slot, low_each,
		low_base; /* on that path: imm64, imm64, disp32, imm64, rel32 as base */
	uint32_t kind;	  /* imm32 */
};

struct stub_common {
	const uint8_t *code, *doorbell_site;
	uint32_t size;
	/* 64-bit words */
	uint32_t header, record, procs, tables, most, ring_most, counters;
	uint32_t calls, spans, functions, trace, taken, span_size, span_within, span_cost;
	uint32_t value_within, value_cost, stack;
	uint32_t span_mask, own, slots, chunk_mask;	       /* 32-bit words */
	uint32_t stacks, stacks_taken, stack_size, stack_most; /* 64-bit words */
	uint32_t stack_mask, stack_place, wide;		       /* 32-bit words */
	uint32_t slow, doorbell, doorbell_once;
	uint32_t gadget_syscall, gadget_sigreturn, gadget_result;
	uint32_t python_fault; /* where a fault of the code behind the template continues */
	uint32_t doorbell_size, doorbell_jmp;
	uint32_t counted; /* from here on the hit is in its slot, unless the thread is filtered out
			   */
	uint32_t kept;	  /* from here the return address is in r11 ... */
	uint32_t due;	  /* from here to spent: the delay is being spent */
	uint32_t spin;	  /* from here to spent: r9 is the time to spend */
	uint32_t spent;	  /* from here to end: figures are being written */
	uint32_t end;
	uint32_t leave; /* from here to back, and from odd_end to due: so are those of a call that
			   begins */
	uint32_t back, back_end; /* ... and between these in rdx again */
	uint32_t odd, odd_end;	 /* between these the hit is not in its slot either */
};

/* Registers that stubs spill; SPILL_* of stub-code.S. */
enum stub_spilled {
	SPILLED_RAX,
	SPILLED_RCX,
	SPILLED_RDX,
	SPILLED_FLAGS,
	SPILLED_RBX,
	SPILLED_RSI,
	SPILLED_RDI,
	SPILLED_R8,
	SPILLED_R9,
	SPILLED_R10,
	SPILLED_R11,
	SPILLED_COUNT,
};

/* One spilling instruction of a template: spilled once the pc has reached `after`. */
struct stub_spill {
	const uint8_t *after;
	uint32_t what; /* enum stub_spilled */
	uint32_t at;   /* bytes under rsp */
};

extern const struct stub_spill stub_spills[], stub_spills_end[];

enum { STUB_TEMPLATES = 17 };
extern const struct stub_template stub_templates[STUB_TEMPLATES];
extern const struct stub_common stub_common_template;

size_t stub_common_size(void);
size_t stub_after_fault(size_t at);
void stub_emit_common(const struct arch_env *env, uint8_t *buf);
void stub_common_gadgets(uint64_t common, struct arch_gadgets *out);
size_t stub_common_parts(struct arch_part *parts);
size_t stub_emit_site(const struct arch_env *env, const struct plan *plan,
		      const struct arch_count *count, uint64_t at, uint8_t *buf, size_t cap,
		      struct arch_site *out, enum plan_refusal *why);
/* leave.c; see arch.h. */
bool stub_leave_site(const uint8_t *code, size_t len, size_t at, const struct arch_spill *spill,
		     struct arch_regs *regs, bool *half);
enum arch_leave stub_leave_common(const uint8_t *code, size_t len, size_t at,
				  const struct arch_spill *spill, struct arch_regs *regs,
				  struct arch_cut *cut);

size_t stub_emit_doorbell(const struct arch_env *env, const struct plan *plan, uint64_t at,
			  bool once, uint8_t *buf, size_t cap, struct arch_site *out,
			  enum plan_refusal *why);

#endif
