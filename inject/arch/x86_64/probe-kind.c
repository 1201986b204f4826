/* SPDX-License-Identifier: MIT */
/* Which first instructions the kernel emulates for a uprobe: arch/x86/kernel/uprobes.c. */
#include <string.h>
#include "inject/arch/arch.h"

enum { OUT_OF_LINE, PUSH, NOP, NOP5 };

static const struct {
	uint8_t code[8];
	size_t len;
} samples[ARCH_PROBE_KINDS] = {
	[OUT_OF_LINE] = { { 0x48, 0x8d, 0x47, 0x01, 0xc3 }, 5 }, /* lea 1(%rdi), %rax; ret */
	[PUSH] = { { 0x55, 0x5d, 0xc3 }, 3 },			 /* push %rbp; pop %rbp; ret */
	[NOP] = { { 0x90, 0xc3 }, 2 },				 /* nop; ret */
	[NOP5] = { { 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3 }, 6 },	 /* nopl 0(%rax,%rax); ret */
};

unsigned int arch_probe_kind(const uint8_t *code, size_t len)
{
	static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	bool rex = len > 1 && code[0] == 0x41;
	uint8_t op = len ? code[rex] : 0;

	if (op >= 0x50 && op <= 0x57)
		return PUSH;
	if (len >= sizeof(nop5) && !memcmp(code, nop5, sizeof(nop5)))
		return NOP5; /* becomes a call on Linux 6.18 */
	if (len && (code[0] == 0x90 || code[0] == 0xe8 || code[0] == 0xe9 || code[0] == 0xeb))
		return NOP; /* and branches: also emulated */
	return OUT_OF_LINE;
}

const uint8_t *arch_probe_sample(unsigned int kind, size_t *len)
{
	*len = samples[kind].len;
	return samples[kind].code;
}

/*
 * The kernel examines only the opcode to find what it emulates: up to 6.18 at least it mistakes a
 * vector instruction (VEX, EVEX) for a push, a branch or a no-op with the same opcode. vxorps at an
 * entry (c5 f8 57 c0) became a push of rdi, vpbroadcastb (62 e2 7d 28 7a ce) a no-op.
 */
bool arch_probe_safe(const uint8_t *code, size_t len)
{
	size_t at = !len ? 0 : code[0] == 0xc5 ? 2 : code[0] == 0xc4 ? 3 : code[0] == 0x62 ? 4 : 0;
	uint8_t op;

	if (!at || at >= len)
		return true;
	op = code[at];
	return !((op >= 0x50 && op <= 0x57) || (op >= 0x70 && op <= 0x7f) || op == 0x90 ||
		 op == 0xe8 || op == 0xe9 || op == 0xeb);
}
