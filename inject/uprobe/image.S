/* SPDX-License-Identifier: MIT */
/* The program for the kernel, as clang built it (SB_UPROBE_FILE). */
	.section .rodata
	.globl	sb_uprobe_image, sb_uprobe_image_end
	.balign	16
sb_uprobe_image:
	.incbin	SB_UPROBE_FILE
sb_uprobe_image_end:
	.byte	0
	.section .note.GNU-stack, "", @progbits
