/* SPDX-License-Identifier: MIT */
#ifndef SB_CAPS_H
#define SB_CAPS_H

#include <stdbool.h>

/* Numbers of capabilities(7), as in linux/capability.h, which older headers lack in part. */
enum { CAPS_SYS_ADMIN = 21, CAPS_PERFMON = 38, CAPS_BPF = 39 };

/* Does sbinject have this capability now? False also where /proc cannot be read. */
bool caps_has(int capability);

#endif
