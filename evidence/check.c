/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <stdio.h>
#include "evidence.h"

#define CAP_SYS_ADMIN 21
#define CAP_PERFMON   38
#define CAP_BPF	      39

static int look_capability(struct sb_err *err)
{
	unsigned long long caps = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (f)
		fclose(f);
	if (caps >> CAP_SYS_ADMIN & 1 || (caps >> CAP_BPF & 1 && caps >> CAP_PERFMON & 1))
		return 0;
	err_set(err, SB_EPERM, "sbinject has neither CAP_SYS_ADMIN nor CAP_BPF with CAP_PERFMON");
	err_hint(err, "run it with sudo; in a container: --cap-add BPF --cap-add PERFMON");
	return -SB_EPERM;
}

const struct evidence_check evidence_checks[] = {
	{ "types of the kernel (BTF)", evidence_types },
	{ "capability for BPF", look_capability },
	{ "BPF at the scheduler", evidence_probe },
};
const size_t evidence_check_count = sizeof(evidence_checks) / sizeof(*evidence_checks);
