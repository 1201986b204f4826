/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "evidence.h"

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
};

static bool take_number(const char *text, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && (*end == ' ' || *end == '\n' || !*end);
}

/* 0, or an errno. */
static int find(FILE *from, enum machine_counter c, uint64_t *value)
{
	size_t len = strlen(rows[c].line), room = 0;
	int why = ENODATA;
	char *line = NULL;

	while (getline(&line, &room, from) > 0) {
		const char *at = line + len;

		if (strncmp(line, rows[c].line, len) != 0 || *at != ' ')
			continue;
		at = strstr(at + 1, rows[c].key);
		why = at && take_number(at + strlen(rows[c].key), value) ? 0 : ENODATA;
		break;
	}
	/* A kernel with psi=0 has the files and refuses to read them. */
	why = ferror(from) && errno ? errno : why;
	free(line);
	return why;
}

static int read_one(const char *proc, enum machine_counter c, uint64_t *value)
{
	char path[256];
	FILE *from;
	int why;

	snprintf(path, sizeof(path), "%s/%s", proc, rows[c].file);
	from = fopen(path, "re");
	if (!from)
		return errno;
	errno = 0;
	why = find(from, c, value);
	fclose(from);
	*value *= why ? 0 : rows[c].unit;
	return why;
}

void machine_read(const char *proc, unsigned int groups, struct machine_values *values)
{
	*values = (struct machine_values){ 0 };
	for (int c = 0; c < MACHINE_COUNTERS; c++)
		values->why[c] = groups & 1u << rows[c].group ? read_one(proc, c, &values->of[c]) :
								ECANCELED;
}

void machine_since(struct machine_values *now, const struct machine_values *before)
{
	for (int c = 0; c < MACHINE_COUNTERS; c++) {
		if (before->why[c])
			now->why[c] = before->why[c];
		if (now->why[c] || now->of[c] < before->of[c])
			now->of[c] = 0;
		else
			now->of[c] -= before->of[c];
	}
}

const char *machine_unknown(enum machine_counter c, int why, char *buf, size_t size)
{
	if (why == ECANCELED)
		snprintf(buf, size, "its group is not in --evidence=GROUPS");
	else if (why == ENODATA)
		snprintf(buf, size, "not on this machine: /proc/%s does not have it", rows[c].file);
	else
		snprintf(buf, size, "not on this machine: /proc/%s: %s", rows[c].file,
			 strerror(why));
	return buf;
}
