/* SPDX-License-Identifier: MIT */
/* The programs for the kernel, as clang built them (SB_EVIDENCE_FILE and others). */
	.section .rodata
	.globl	sb_evidence_image, sb_evidence_image_end
	.balign	16
sb_evidence_image:
	.incbin	SB_EVIDENCE_FILE
sb_evidence_image_end:
	.byte	0
	.globl	sb_evidence_net_image, sb_evidence_net_image_end
	.balign	16
sb_evidence_net_image:
	.incbin	SB_EVIDENCE_NET_FILE
sb_evidence_net_image_end:
	.byte	0
	.globl	sb_evidence_within_image, sb_evidence_within_image_end
	.balign	16
sb_evidence_within_image:
	.incbin	SB_EVIDENCE_WITHIN_FILE
sb_evidence_within_image_end:
	.byte	0
	.globl	sb_evidence_cache_image, sb_evidence_cache_image_end
	.balign	16
sb_evidence_cache_image:
	.incbin	SB_EVIDENCE_CACHE_FILE
sb_evidence_cache_image_end:
	.byte	0
	.section .note.GNU-stack, "", @progbits
