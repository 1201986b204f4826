/* SPDX-License-Identifier: MIT */
/* The program for the kernel, as clang built it (SB_EVIDENCE_FILE). */
	.section .rodata
	.globl	sb_evidence_image, sb_evidence_image_end
	.balign	16
sb_evidence_image:
	.incbin	SB_EVIDENCE_FILE
sb_evidence_image_end:
	.byte	0
	.section .note.GNU-stack, "", @progbits
