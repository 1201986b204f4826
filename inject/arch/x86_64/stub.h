/* SPDX-License-Identifier: MIT */
#ifndef SB_X86_STUB_H
#define SB_X86_STUB_H

#include "../arch.h"

/* The templates that stub-code.S describes; fields are offsets from the template's start. */
struct stub_template {
	const uint8_t *code;
	uint32_t size;
	uint32_t entry;	 /* first instruction to run */
	uint32_t jmp;	 /* rel32 to the slow path */
	uint32_t record; /* imm64 */
	uint32_t cell;	 /* imm64 */
	uint32_t mask;	 /* imm32: (slots - 1) << 10 (own), slots << 10 (shared) */
};

struct stub_common {
	const uint8_t *code, *bell_site;
	uint32_t size;
	uint32_t header, record, procs; /* 64-bit words */
	uint32_t own, slots;		/* 32-bit words */
	uint32_t slow, bell;
	uint32_t gadget_syscall, gadget_sigreturn, gadget_result;
	uint32_t bell_size, bell_jmp;
	uint32_t reserved;
};

extern const struct stub_template stub_templates[6];
extern const struct stub_common stub_common_template;

size_t stub_common_size(void);
void stub_emit_common(const struct arch_env *env, uint8_t *buf);
void stub_common_gadgets(uint64_t common, struct arch_gadgets *out);
size_t stub_emit_site(const struct arch_env *env, const struct plan *plan, uint64_t cell,
		      uint64_t at, uint8_t *buf, size_t cap, struct arch_site *out,
		      enum plan_refusal *why);
size_t stub_emit_bell(const struct arch_env *env, const struct plan *plan, uint64_t at,
		      uint8_t *buf, size_t cap, struct arch_site *out, enum plan_refusal *why);

#endif
