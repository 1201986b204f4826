/* SPDX-License-Identifier: MIT */
	.section .rodata.device_image, "a", @progbits
	.balign	64
	.globl	device_image, device_image_end
	.type	device_image, @object
	.type	device_image_end, @object
device_image:
	.incbin	SB_DEVICE_FILE
device_image_end:
	.byte	0
	.size	device_image, device_image_end - device_image
	.size	device_image_end, 1

	.section .note.GNU-stack, "", @progbits
