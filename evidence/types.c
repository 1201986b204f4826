/* SPDX-License-Identifier: MIT */
#include <unistd.h>
#include "check.h"

int evidence_types(struct sb_err *err)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		return 0;
	err_set(err, SB_ECONFINED, "this kernel does not describe its types (BTF)");
	err_hint(err, "it takes one with CONFIG_DEBUG_INFO_BTF, as distributions have it");
	return -SB_ECONFINED;
}
