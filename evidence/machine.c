/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "evidence.h"
#include "field.h"
#include "processors.h"

enum { US = 1000 };

const char *const machine_names[MACHINE_COUNTERS] = {
	[MACHINE_CPU_PRESSURE] = "cpu_pressure_ns",
	[MACHINE_MEMORY_PRESSURE] = "memory_pressure_ns",
	[MACHINE_MEMORY_STALL] = "memory_stall_ns",
	[MACHINE_IO_PRESSURE] = "io_pressure_ns",
	[MACHINE_IO_STALL] = "io_stall_ns",
	[MACHINE_SWAP_IN] = "swap_in_pages",
	[MACHINE_SWAP_OUT] = "swap_out_pages",
	[MACHINE_OOM_KILLS] = "oom_kills",
	[MACHINE_INTERRUPTS] = "interrupts",
	[MACHINE_SOFTIRQS] = "softirqs",
	[MACHINE_IDLE] = "cpu_idle_ns",
	[MACHINE_IDLE_ENTRIES] = "cpu_idle_entries",
	[MACHINE_FREQUENCY] = "cpu_frequency_hz",
	[MACHINE_FREQUENCY_MEAN] = "cpu_frequency_mean_hz",
};

/* A line begins with `line` and a blank; the number stands behind `key`, or right there. */
static const struct {
	const char *file, *line, *key;
	unsigned int group, unit;
} rows[MACHINE_COUNTERS] = {
	[MACHINE_CPU_PRESSURE] = { "pressure/cpu", "some", "total=", GROUP_TIME, US },
	[MACHINE_MEMORY_PRESSURE] = { "pressure/memory", "some", "total=", GROUP_FAULTS, US },
	[MACHINE_MEMORY_STALL] = { "pressure/memory", "full", "total=", GROUP_FAULTS, US },
	[MACHINE_IO_PRESSURE] = { "pressure/io", "some", "total=", GROUP_IO, US },
	[MACHINE_IO_STALL] = { "pressure/io", "full", "total=", GROUP_IO, US },
	[MACHINE_SWAP_IN] = { "vmstat", "pswpin", "", GROUP_FAULTS, 1 },
	[MACHINE_SWAP_OUT] = { "vmstat", "pswpout", "", GROUP_FAULTS, 1 },
	[MACHINE_OOM_KILLS] = { "vmstat", "oom_kill", "", GROUP_FAULTS, 1 },
	[MACHINE_INTERRUPTS] = { "stat", "intr", "", GROUP_SWITCHES, 1 },
	[MACHINE_SOFTIRQS] = { "stat", "softirq", "", GROUP_SWITCHES, 1 },
	/* Of each processor, read by itself. */
	[MACHINE_IDLE] = { "cpuidle", NULL, NULL, GROUP_TIME, 1 },
	[MACHINE_IDLE_ENTRIES] = { "cpuidle", NULL, NULL, GROUP_TIME, 1 },
	[MACHINE_FREQUENCY] = { "cpufreq/scaling_cur_freq", NULL, NULL, GROUP_TIME, 1 },
	[MACHINE_FREQUENCY_MEAN] = { "cpufreq/stats/time_in_state", NULL, NULL, GROUP_TIME, 1 },
};

static int read_one(const char *proc, enum machine_counter c, uint64_t *value)
{
	char path[256];
	int why;

	snprintf(path, sizeof(path), "%s/%s", proc, rows[c].file);
	why = field_read(path, rows[c].line, rows[c].key, value);
	*value *= rows[c].unit;
	return why;
}

static void take(struct machine_values *values, enum machine_counter c, int why, uint64_t value)
{
	values->why[c] = why;
	values->of[c] = why ? 0 : value;
}

static void read_processors(const char *cpus, bool quick, struct machine_values *values)
{
	struct processors p;

	processors_read(cpus, quick, &p);
	take(values, MACHINE_IDLE, p.idle_why, p.idle_ns);
	take(values, MACHINE_IDLE_ENTRIES, p.idle_why, p.idle_entries);
	take(values, MACHINE_FREQUENCY, p.hz_why, p.hz);
	take(values, MACHINE_FREQUENCY_MEAN, p.weighted_why, 0);
	values->weighted_hz = p.weighted_hz;
	values->weight = p.weight;
}

void machine_read(const char *proc, const char *cpus, unsigned int groups, bool quick,
		  struct machine_values *values)
{
	*values = (struct machine_values){ 0 };
	for (int c = 0; c < MACHINE_COUNTERS; c++)
		values->why[c] = !(groups & 1u << rows[c].group) ? ECANCELED :
				 rows[c].line ? read_one(proc, c, &values->of[c]) :
						0;
	if (groups & 1u << GROUP_TIME)
		read_processors(cpus, quick, values);
}

/* It is known where a tick has passed. */
static void take_mean(struct machine_values *now, const struct machine_values *before)
{
	double weight = now->weight - before->weight;

	if (now->why[MACHINE_FREQUENCY_MEAN])
		return;
	if (weight > 0)
		now->of[MACHINE_FREQUENCY_MEAN] =
			(uint64_t)((now->weighted_hz - before->weighted_hz) / weight + 0.5);
	else
		now->why[MACHINE_FREQUENCY_MEAN] = ETIME;
}

void machine_since(struct machine_values *now, const struct machine_values *before)
{
	for (int c = 0; c < MACHINE_COUNTERS; c++) {
		if (c == MACHINE_FREQUENCY)
			continue;
		if (before->why[c])
			now->why[c] = before->why[c];
		if (now->why[c] || now->of[c] < before->of[c])
			now->of[c] = 0;
		else
			now->of[c] -= before->of[c];
	}
	take_mean(now, before);
}

const char *machine_unknown(enum machine_counter c, int why, char *buf, size_t size)
{
	const char *where = rows[c].line ? "/proc" : "/sys/devices/system/cpu/cpu*";

	if (why == ECANCELED)
		snprintf(buf, size, "its group is not in --evidence=GROUPS");
	else if (why == EAGAIN)
		snprintf(buf, size, "read at the end only: there are many processors");
	else if (why == ETIME)
		snprintf(buf, size, "too short a time: the kernel counts it in ticks");
	else if (why == EOPNOTSUPP && !rows[c].line)
		snprintf(buf, size,
			 "this kernel takes 10 ms a processor for it (Linux 5.19 does not)");
	else if (why == ENODATA)
		snprintf(buf, size, "not on this machine: %s/%s does not have it", where,
			 rows[c].file);
	else
		snprintf(buf, size, "not on this machine: %s/%s: %s", where, rows[c].file,
			 strerror(why));
	return buf;
}
