/* SPDX-License-Identifier: MIT */
#ifndef SB_IOCTLS_H
#define SB_IOCTLS_H

#include <stdint.h>

/*
 * The names of requests by ioctl(). They are in the file nvidia.ioctls beside the presets, a line
 * each: DEVICE-GLOB MAGIC NUMBER NAME; '#' starts a comment. Other lines are left out.
 */
void ioctls_load(void); /* once, before threads ask */

/*
 * cmd: as it was given; number: of the request, or of the one within it. NULL: it has no name.
 * Borrowed for good.
 */
const char *ioctls_name(const char *device, uint32_t cmd, uint32_t number);

#endif
