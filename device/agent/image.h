/* SPDX-License-Identifier: MIT */
#ifndef SB_DEVICE_IMAGE_H
#define SB_DEVICE_IMAGE_H

/*
 * The device agent as a file, embedded in the sbinject binary. The entry point in its ELF header is
 * its sb_agent(). Empty (both symbols have one address) on a machine that it is not made for.
 */
extern const unsigned char device_image[], device_image_end[];

#endif
