/* SPDX-License-Identifier: MIT */
#include "processors.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

enum { US = 1000, KHZ = 1000 };

/* 0, or an errno. ENODATA: it is no number. */
static int read_number(const char *path, uint64_t *value)
{
	unsigned long long n = 0;
	FILE *f = fopen(path, "re");
	int why = f ? 0 : errno;

	if (f && fscanf(f, "%llu", &n) != 1)
		why = ENODATA;
	if (f)
		fclose(f);
	*value = why ? 0 : n;
	return why;
}

/* The states of a processor have numbers from 0 on. */
static int add_idle(const char *cpu, struct processors *p)
{
	uint64_t us, entries;
	char path[600];
	int why = 0;

	for (int state = 0; why == 0; state++) {
		snprintf(path, sizeof(path), "%s/cpuidle/state%d/time", cpu, state);
		why = read_number(path, &us);
		if (why)
			return state && why == ENOENT ? 0 : why;
		snprintf(path, sizeof(path), "%s/cpuidle/state%d/usage", cpu, state);
		why = read_number(path, &entries);
		p->idle_ns += us * US;
		p->idle_entries += entries;
	}
	return why;
}

/* Lines of a frequency in kHz and the time there, in ticks. */
static int add_weighted(const char *cpu, struct processors *p)
{
	unsigned long long khz, ticks;
	char path[600];
	int found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/cpufreq/stats/time_in_state", cpu);
	f = fopen(path, "re");
	if (!f)
		return errno;
	while (fscanf(f, "%llu %llu", &khz, &ticks) == 2) {
		p->weighted_hz += (double)khz * KHZ * (double)ticks;
		p->weight += (double)ticks;
		found++;
	}
	fclose(f);
	return found ? 0 : ENODATA;
}

/* Before Linux 5.19 a read on x86 measures for 10 ms, for each processor. */
static bool takes_long(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;

	return uname(&u) < 0 ||
	       (!strncmp(u.machine, "x86", 3) && (sscanf(u.release, "%u.%u", &major, &minor) != 2 ||
						  major < 5 || (major == 5 && minor < 19)));
}

static bool is_cpu(const char *name)
{
	return !strncmp(name, "cpu", 3) && name[3] && !name[3 + strspn(name + 3, "0123456789")];
}

/* One without the directory of a number is offline: it has no part in it. */
static void add_cpu(const char *cpu, struct processors *p, uint64_t *with_hz)
{
	char path[600];
	uint64_t khz;
	int why;

	if (!p->idle_why)
		p->idle_why = add_idle(cpu, p);
	if (!p->weighted_why)
		p->weighted_why = add_weighted(cpu, p);
	if (p->hz_why)
		return;
	snprintf(path, sizeof(path), "%s/cpufreq/scaling_cur_freq", cpu);
	why = read_number(path, &khz);
	p->hz_why = why;
	p->hz += khz * KHZ;
	*with_hz += !why;
}

static bool is_offline(const char *cpu)
{
	char path[600];
	uint64_t online;

	snprintf(path, sizeof(path), "%s/online", cpu);
	return read_number(path, &online) == 0 && !online;
}

/* The first reason of each, or the sums. */
static void finish(struct processors *p, uint64_t with_hz)
{
	p->hz = p->hz_why || !with_hz ? 0 : p->hz / with_hz;
	if (p->idle_why)
		p->idle_ns = p->idle_entries = 0;
	if (p->weighted_why)
		p->weighted_hz = p->weight = 0;
}

void processors_read(const char *cpus, bool quick, struct processors *p)
{
	struct dirent *entry;
	uint64_t with_hz = 0;
	size_t n = 0;
	DIR *dir = opendir(cpus);

	*p = (struct processors){ .hz_why = takes_long() ? EOPNOTSUPP : 0 };
	while (dir && (entry = readdir(dir)))
		n += is_cpu(entry->d_name);
	if (!n || (quick && n > PROCESSORS_QUICK))
		p->idle_why = p->hz_why = p->weighted_why = n ? EAGAIN : ENOENT;
	if (dir)
		rewinddir(dir);
	while (dir && p->idle_why != EAGAIN && (entry = readdir(dir))) {
		char cpu[512];

		if (!is_cpu(entry->d_name))
			continue;
		snprintf(cpu, sizeof(cpu), "%s/%s", cpus, entry->d_name);
		if (!is_offline(cpu))
			add_cpu(cpu, p, &with_hz);
	}
	if (dir)
		closedir(dir);
	finish(p, with_hz);
}
