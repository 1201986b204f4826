/* SPDX-License-Identifier: MIT */
#include "caps.h"

#include <stdio.h>

bool caps_has(int capability)
{
	unsigned long long caps = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (f)
		fclose(f);
	return caps >> capability & 1;
}
