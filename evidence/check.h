/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_CHECK_H
#define SB_EVIDENCE_CHECK_H

#include <stddef.h>
#include "src/base/err.h"

/* What BPF needs to be the source of evidence, for `doctor`: rows that are looked at in order. */
struct evidence_check {
	const char *name;
	int (*look)(struct sb_err *err); /* 0: yes. Else SB_EPERM, SB_ECONFINED, SB_EUSAGE */
};

/* Does the kernel describe its types? SB_ECONFINED: no. */
int evidence_types(struct sb_err *err);

extern const struct evidence_check evidence_checks[];
extern const size_t evidence_check_count;

#endif
