/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_HARDWARE_H
#define SB_EVIDENCE_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Counters of the processor, by perf_event_open(2): one event of each kind for each thread that the
 * processes have when counting begins. What such a thread starts later inherits its events, and is
 * counted with it. sbinject stops and writes to no process, and the kernel removes the events with
 * their descriptors. It needs the permission to trace the processes.
 *
 * Where the processor has fewer counters than there are events, the kernel counts them in turns:
 * the growth between two readings is then scaled by the time for which it was counted.
 */
struct hardware;

struct hardware_event {
	const char *name;
	uint32_t type; /* as struct perf_event_attr */
	uint64_t config;
};

enum { HARDWARE_MOST = 8, HARDWARE_EVENTS = 6 };
/* In the order of the counters from EVIDENCE_CYCLES on. */
extern const struct hardware_event hardware_events[HARDWARE_EVENTS];

/* event: kept, not copied; n: up to HARDWARE_MOST. children: what the processes fork, too. */
struct hardware *hardware_open(const struct hardware_event *event, size_t n, bool children);
void hardware_close(struct hardware *h); /* NULL is harmless */

/* A process that is counted, if counting has not begun yet; with its descendants, if children. */
void hardware_add(struct hardware *h, pid_t pid);
void hardware_begin(struct hardware *h);

/* NULL: the event is counted. Else why it is not, as a text that lasts as long as h. */
const char *hardware_unknown(const struct hardware *h, size_t event);

/* Adds what was counted since the last reading. */
void hardware_read(struct hardware *h);
/* Since the begin: of all threads, those that ended included; of one that was there at the begin,
 * with those that it started since. False: it was not. */
uint64_t hardware_sum(const struct hardware *h, size_t event);
bool hardware_thread(const struct hardware *h, pid_t tid, size_t event, uint64_t *value);
uint64_t hardware_began_ns(const struct hardware *h); /* CLOCK_MONOTONIC; 0: not yet */

/* Whether this machine has counters of the processor, and the kernel permits them. SB_ECONFINED,
 * SB_EPERM. */
struct sb_err;
int hardware_probe(struct sb_err *err);

/* An event as the kernel writes it. Its growth, as much as it would have been if it had been
 * counted all the time. False: it was not counted at all meanwhile; what it did is not known yet.
 */
struct hardware_raw {
	uint64_t value, enabled_ns, running_ns;
};
bool hardware_growth(const struct hardware_raw *before, const struct hardware_raw *now,
		     double *growth);

struct hardware_about {
	bool user_only;	   /* what the kernel did is not counted: perf_event_paranoid */
	uint64_t threads;  /* with events of their own */
	uint64_t left_out; /* threads without: there were no descriptors left (RLIMIT_NOFILE) */
	/* Threads that began while events were opened, in each of several tries: they may be
	 * missing. */
	uint64_t unsure;
	double counted; /* of the time, in the event that was counted least; 1: nothing is scaled */
};
void hardware_about(const struct hardware *h, struct hardware_about *about);

#endif
