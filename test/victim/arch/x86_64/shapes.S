/* SPDX-License-Identifier: MIT */
/*
 * Entries as compilers and hands write them, each hard on a hook in a way of its own. All keep
 * the C calling convention unless asm-shapes.c says otherwise.
 */
	.text

/* FUNC NAME: aligned, so nops before it; END NAME; TIGHT NAME: right behind the one before. */
.macro FUNC name
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
.endm
.macro TIGHT name
	.globl	\name
	.type	\name, @function
\name:
.endm
.macro END name
	.size	\name, . - \name
.endm

/* One byte, padding behind it. */
FUNC as_ret
	ret
END as_ret

/* Three bytes, padding behind. */
FUNC as_three
	xor	%eax, %eax
	ret
END as_three

/* Four bytes, padding behind. */
FUNC as_four
	mov	%rdi, %rax
	ret
END as_four

/* Three bytes between two neighbours: neither tail nor pre-entry padding, but no-ops near by. */
FUNC as_tight_first
	lea	1(%rdi), %rax
	ret
END as_tight_first
TIGHT as_tight
	mov	%edi, %eax
	ret
END as_tight
TIGHT as_tight_last
	lea	2(%rdi), %rax
	ret
END as_tight_last

/* Three bytes, padding only before it: a two-byte jump back to a five-byte one. */
	.p2align 4
	.skip	11, 0xcc
	.nops	5
TIGHT as_pre
	mov	%edi, %eax
	ret
END as_pre
TIGHT as_pre_next
	lea	3(%rdi), %rax
	ret
END as_pre_next

/* A retry loop to byte 0 out of the window's own bytes: one call, many passes. */
FUNC as_spin0
	dec	%rdi
	jnz	as_spin0
	mov	$7, %eax
	ret
END as_spin0

/* The same from far behind, by a rel32 that can be sent past the hook. */
FUNC as_far0
	mov	%rdi, %rax
	sub	$1, %rdi
	.skip	200, 0x90
	jnz	as_far0
	ret
END as_far0

/* A branch lands on byte 3. */
FUNC as_into
	mov	%rdi, %rax
1:	dec	%rax
	jnz	1b
	lea	9(%rax), %rax
	ret
END as_into

/* A branch from another function lands on byte 3. */
FUNC as_other_into
	mov	%rdi, %rax
.Lother_target:
	add	$4, %rax
	ret
END as_other_into
FUNC as_other_from
	lea	100(%rdi), %rax
	jmp	.Lother_target
END as_other_from

/* As memcpy(): its neighbour runs through the no-ops into it, and another lands on byte 3. */
FUNC as_run_through
	add	$1, %rdi
END as_run_through
	.byte	0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
	.byte	0x66, 0x0f, 0x1f, 0x44, 0, 0
TIGHT as_run_into
	mov	%rdi, %rax
.Lrun_target:
	add	$4, %rax
	ret
END as_run_into
FUNC as_run_from
	lea	100(%rdi), %rax
	jmp	.Lrun_target
END as_run_from

/* jrcxz, loop: rel8 only, to be widened. Called with rcx as its fourth argument. */
FUNC as_jrcxz
	jrcxz	1f
	mov	$1, %eax
	ret
1:	mov	$2, %eax
	ret
END as_jrcxz
FUNC as_loop
	loop	1f
	mov	$3, %eax
	ret
1:	mov	%rcx, %rax
	ret
END as_loop

/* A conditional jump and a jump at the entry. */
FUNC as_jcc
	test	%edi, %edi
	jz	1f
	mov	$5, %eax
	ret
1:	mov	$6, %eax
	ret
END as_jcc
FUNC as_jmp
	jmp	as_four
END as_jmp
FUNC as_jmp8
	jmp	1f
	.skip	40, 0xcc
1:	lea	8(%rdi), %rax
	ret
END as_jmp8

/* A call at the entry: the pushed return address must be this function's. */
FUNC as_call
	call	as_retaddr
.Lreturned:
	lea	.Lreturned(%rip), %rdx
	sub	%rdx, %rax
	ret
END as_call

/* Returns its return address. */
FUNC as_retaddr
	mov	(%rsp), %rax
	nop
	ret
END as_retaddr

/* Takes its return address off the stack and puts it back. */
FUNC as_pop
	pop	%rdx
	mov	%rdi, %rax
	push	%rdx
	ret
END as_pop

/* RIP-relative: load, compare with an immediate behind the displacement, address, jump. */
FUNC as_rip_load
	mov	as_word(%rip), %rax
	add	%rdi, %rax
	ret
END as_rip_load
FUNC as_rip_cmp
	cmpl	$1000, as_word(%rip)
	sete	%al
	movzbl	%al, %eax
	ret
END as_rip_cmp
FUNC as_rip_lea
	lea	as_rip_lea(%rip), %rax
	ret
END as_rip_lea
FUNC as_rip_jmp
	jmp	*as_pointer(%rip)
END as_rip_jmp
FUNC as_rip_call
	call	*as_pointer(%rip)
	inc	%rax
	ret
END as_rip_call

/* endbr64 first, with a body of four bytes, and with a longer one. */
FUNC as_endbr_short
	endbr64
	mov	%rdi, %rax
	ret
END as_endbr_short
FUNC as_endbr
	endbr64
	lea	77(%rdi), %rax
	add	$1, %rax
	ret
END as_endbr

/* Reads the flags that its caller set: see as_call_flags(). */
FUNC as_flags
	setc	%al
	sets	%dl
	movzbl	%al, %eax
	movzbl	%dl, %edx
	lea	(%rax,%rdx,2), %rax
	ret
END as_flags

/* A compare-and-swap loop as in sem_trywait: back into its first bytes. */
FUNC as_cas
	mov	(%rdi), %eax
1:	lea	1(%rax), %edx
	lock cmpxchg %edx, (%rdi)
	jne	1b
	ret
END as_cas

/* A string instruction at the entry: as_rep(to, from, unused, n). */
FUNC as_rep
	rep movsb
	mov	%rdi, %rax
	ret
END as_rep

/* A system call at the entry: as_syscall(), called with its number in rax. */
FUNC as_syscall
	syscall
	ret
END as_syscall

/* Keeps its data in the red zone. */
FUNC as_redzone
	mov	%rdi, -8(%rsp)
	mov	%rsi, -120(%rsp)
	mov	-8(%rsp), %rax
	add	-120(%rsp), %rax
	ret
END as_redzone

/* Does nothing, in five bytes and a return: see as_call_registers(). */
FUNC as_nothing
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
	ret
END as_nothing

/* ---- the callers, which are not hooked ---- */

/* long as_call_flags(long flags): as_flags() with the carry and the sign set from bits 0, 1. */
FUNC as_call_flags
	mov	$0, %eax
	test	$2, %dil
	jz	1f
	mov	$0x80, %ah
1:	test	$1, %dil
	jz	2f
	or	$0x01, %ah
2:	or	$0x02, %ah
	sahf
	call	as_flags
	ret
END as_call_flags

/* long as_call_syscall(long number) */
FUNC as_call_syscall
	mov	%rdi, %rax
	call	as_syscall
	ret
END as_call_syscall

/*
 * long as_call_registers(void): as_nothing() with a pattern in every register; 0 if all are
 * kept, else which one is not (1: rax, 2: rcx, ... 16: xmm0, 17: xmm15).
 */
FUNC as_call_registers
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	$0x1111111111111111, %rax
	movq	%rax, %xmm0
	lea	1(%rax), %rcx
	lea	2(%rax), %rdx
	lea	3(%rax), %rbx
	lea	4(%rax), %rbp
	lea	5(%rax), %rsi
	lea	6(%rax), %rdi
	lea	7(%rax), %r8
	lea	8(%rax), %r9
	lea	9(%rax), %r10
	lea	10(%rax), %r11
	lea	11(%rax), %r12
	lea	12(%rax), %r13
	lea	13(%rax), %r14
	lea	14(%rax), %r15
	movq	%rcx, %xmm15
	call	as_nothing
	push	%rax
	movabs	$0x1111111111111111, %rax
	cmp	%rax, (%rsp)
	lea	8(%rsp), %rsp
	mov	$1, %eax
	jne	9f
	movabs	$0x1111111111111111, %rax
.macro SAME reg, plus, number
	add	$1, %rax
	cmp	%rax, \reg
	mov	$\number, %eax
	jne	9f
	movabs	$0x1111111111111111 + \plus, %rax
.endm
	SAME	%rcx, 1, 2
	SAME	%rdx, 2, 3
	SAME	%rbx, 3, 4
	SAME	%rbp, 4, 5
	SAME	%rsi, 5, 6
	SAME	%rdi, 6, 7
	SAME	%r8, 7, 8
	SAME	%r9, 8, 9
	SAME	%r10, 9, 10
	SAME	%r11, 10, 11
	SAME	%r12, 11, 12
	SAME	%r13, 12, 13
	SAME	%r14, 13, 14
	SAME	%r15, 14, 15
	movabs	$0x1111111111111111, %rcx
	movq	%xmm0, %rdx
	mov	$16, %eax
	cmp	%rcx, %rdx
	jne	9f
	inc	%rcx
	movq	%xmm15, %rdx
	mov	$17, %eax
	cmp	%rcx, %rdx
	jne	9f
	xor	%eax, %eax
9:	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
END as_call_registers

	.data
	.p2align 3
as_word:
	.quad	1000
as_pointer:
	.quad	as_four

	.section .note.GNU-stack, "", @progbits
