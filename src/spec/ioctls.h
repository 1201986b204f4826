/* SPDX-License-Identifier: MIT */
#ifndef SB_IOCTLS_H
#define SB_IOCTLS_H

#include <stdint.h>

/*
 * The names of requests by ioctl(), and of what those to NVIDIA's resource manager ask for. They
 * are in the files nvidia.ioctls and nvidia.rm beside the presets, a line each: DEVICE-GLOB MAGIC
 * NUMBER NAME, and WHAT NUMBER NAME; '#' starts a comment. Other lines are left out.
 */
void ioctls_load(void); /* once, before threads ask */

/*
 * cmd: as it was given; number: of the request, or of the one within it. NULL: it has no name.
 * Borrowed for good.
 */
const char *ioctls_name(const char *device, uint32_t cmd, uint32_t number);

/* Of a request of that name: of NV_ESC_RM_CONTROL a command, of NV_ESC_RM_ALLOC a class. NULL: it
 * has no name, or the request has none. Borrowed for good. */
const char *ioctls_detail_name(const char *request, uint32_t detail);

#endif
