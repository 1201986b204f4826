/* SPDX-License-Identifier: MIT */
/*
 * A function for calibrate.c to copy and hook: returns its argument plus one. As in most functions
 * that are hooked, the first instruction stays, and the stub returns into the body.
 */
	.section .rodata
	.globl	arch_sample_function, arch_sample_size
	.balign	16
arch_sample_function:
	mov	%rdi, %rax
	add	$1, %rax
	mov	%rax, %rax
	ret
.Lend:
	.balign	8
arch_sample_size:
	.quad	.Lend - arch_sample_function
	.section .note.GNU-stack, "", @progbits
