/* SPDX-License-Identifier: MIT */
#ifndef SB_LIBBPF_LOG_H
#define SB_LIBBPF_LOG_H

#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "src/base/log.h"

/* For libbpf_set_print(): its words are for -v. A header, since only builds with libbpf have it. */
static inline int libbpf_log(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[512];

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = '\0';
	log_debug("libbpf: %s", line);
	return 0;
}

#endif
