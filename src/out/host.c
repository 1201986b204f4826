/* SPDX-License-Identifier: MIT */
#include "host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Processors of some architectures have no name there. */
static void read_cpu(char *buf, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		const char *colon = strchr(line, ':');

		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		snprintf(buf, size, "%s", colon + 1 + (colon[1] == ' '));
		break;
	}
	if (f)
		fclose(f);
}

void out_host(struct out_host *host)
{
	memset(host, 0, sizeof(*host));
	gethostname(host->name, sizeof(host->name) - 1);
	uname(&host->kernel);
	host->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	read_cpu(host->cpu, sizeof(host->cpu));
}

char *out_when(time_t when, char *buf, size_t size)
{
	struct tm tm;

	if (!localtime_r(&when, &tm) || !strftime(buf, size, "%Y-%m-%d %H:%M:%S %z", &tm))
		buf[0] = '\0';
	return buf;
}
