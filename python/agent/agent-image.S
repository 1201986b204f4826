/* SPDX-License-Identifier: MIT */
	.section .rodata.agent_image, "a", @progbits
	.balign	64
	.globl	agent_image, agent_image_end
	.type	agent_image, @object
	.type	agent_image_end, @object
agent_image:
	.incbin	SB_AGENT_FILE
agent_image_end:
	.byte	0
	.size	agent_image, agent_image_end - agent_image
	.size	agent_image_end, 1

	.section .note.GNU-stack, "", @progbits
