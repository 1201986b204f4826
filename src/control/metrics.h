/* SPDX-License-Identifier: MIT */
#ifndef SB_METRICS_H
#define SB_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * A running session's counters for Prometheus: over HTTP in the OpenMetrics text format where the
 * request's Accept names it, else in the format before it, or in that as a file for the node
 *exporter's textfile collector. Both ask the session through its own socket, from a thread of the
 *command line: neither the tracer nor the target waits for them.
 *
 *	sbinject_hits_total{target=}			calls counted
 *	sbinject_delayed_total{target=}
 *	sbinject_injected_seconds_total{target=}	measured
 *	sbinject_overrun_seconds_total{target=}
 *	sbinject_delay_seconds{target=}			asked, a call
 *	sbinject_target_state{target=,
 *		sbinject_target_state=}			1 for the one it is in: on off pending
 *	sbinject_enabled
 *	sbinject_processes
 *
 * Targets that are limited to a process's tree (pid=N) have a tree=N label.
 *
 * by_pid: hits, injected and overrun with a pid label each; a label value a process ever seen, so
 * it has to be asked for.
 */
struct metrics;

struct metrics_config {
	const char *listen; /* [ADDR:]PORT; loopback where no address is given; NULL: none */
	const char *file;   /* NULL: none */
	bool by_pid;
	uint64_t interval_ns; /* of the file */
	pid_t session;
};

/* Before the session begins: until then there is nothing to be had. SB_EUSAGE: no such address;
 * SB_EFILE: the port is in use, or may not be bound; the file cannot be written. */
int metrics_open(const struct metrics_config *cfg, struct metrics **out, struct sb_err *err);
void metrics_close(struct metrics *m); /* NULL is harmless */

#endif
