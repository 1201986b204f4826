/* SPDX-License-Identifier: MIT */
/* The programs for the kernel, as clang built them (SB_UPROBE_FILE, SB_KERNEL_FILE). */
	.section .rodata
	.globl	sb_uprobe_image, sb_uprobe_image_end
	.balign	16
sb_uprobe_image:
	.incbin	SB_UPROBE_FILE
sb_uprobe_image_end:
	.byte	0
	.globl	sb_kernel_image, sb_kernel_image_end
	.balign	16
sb_kernel_image:
	.incbin	SB_KERNEL_FILE
sb_kernel_image_end:
	.byte	0
	.section .note.GNU-stack, "", @progbits
