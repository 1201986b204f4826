/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "evidence.h"
#include "hardware.h"
#include "src/base/caps.h"

static int look_capability(struct sb_err *err)
{
	if (caps_has(CAPS_SYS_ADMIN) || (caps_has(CAPS_BPF) && caps_has(CAPS_PERFMON)))
		return 0;
	err_set(err, SB_EPERM, "sbinject has neither CAP_SYS_ADMIN nor CAP_BPF with CAP_PERFMON");
	err_hint(err, "run it with sudo; in a container: --cap-add BPF --cap-add PERFMON");
	return -SB_EPERM;
}

const struct evidence_check evidence_checks[] = {
	{ "types of the kernel (BTF)", evidence_types },
	{ "capability for BPF", look_capability },
	{ "BPF at the scheduler", evidence_probe },
	{ "counters of the processor", hardware_probe },
};
const size_t evidence_check_count = sizeof(evidence_checks) / sizeof(*evidence_checks);
