/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_MACHINE_H
#define SB_EVIDENCE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What the kernel counts for the whole machine and for no thread: it costs the program nothing, and
 * says whether others were in the way. From /proc: pressure, vmstat and stat; and from sysfs, of
 * the processors.
 */
enum machine_counter {
	MACHINE_CPU_PRESSURE,	 /* ns in which some task waited for a processor */
	MACHINE_MEMORY_PRESSURE, /* ... for memory, and in which all did */
	MACHINE_MEMORY_STALL,
	MACHINE_IO_PRESSURE,
	MACHINE_IO_STALL,
	MACHINE_SWAP_IN, /* pages */
	MACHINE_SWAP_OUT,
	MACHINE_OOM_KILLS,
	MACHINE_INTERRUPTS,
	MACHINE_SOFTIRQS,
	MACHINE_IDLE, /* ns of all processors in idle states, and how often they entered one */
	MACHINE_IDLE_ENTRIES,
	MACHINE_FREQUENCY,	/* Hz, the mean of the processors: as of now, no sum */
	MACHINE_FREQUENCY_MEAN, /* ... over the time */
	MACHINE_COUNTERS
};

/* "cpu_pressure_ns". */
extern const char *const machine_names[MACHINE_COUNTERS];

struct machine_values {
	uint64_t of[MACHINE_COUNTERS];
	int why[MACHINE_COUNTERS];  /* not 0: it is not known, an errno */
	double weighted_hz, weight; /* inner */
};

/* ENODATA: the file is there, and lacks it. proc: "/proc"; cpus: "/sys/devices/system/cpu". groups:
 * as struct evidence_config; ECANCELED: the counter's group is not among them. quick: see
 * processors_read(). */
void machine_read(const char *proc, const char *cpus, unsigned int groups, bool quick,
		  struct machine_values *values);

/* What was added since: of those that are known in both. */
void machine_since(struct machine_values *now, const struct machine_values *before);

/* Why a counter is not known, with the name of its file. Returns buf. */
enum { MACHINE_WHY_SIZE = 128 };
const char *machine_unknown(enum machine_counter counter, int why, char *buf, size_t size);

#endif
