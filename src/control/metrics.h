/* SPDX-License-Identifier: MIT */
#ifndef SB_METRICS_H
#define SB_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "src/base/err.h"
#include "src/result/result.h"

/*
 * The counters of a running session for Prometheus: over HTTP, in the OpenMetrics text format if
 * the request's Accept header names it, else in the older text format; or as a file in the older
 * format, for the textfile collector of the node exporter. The same server and writer have the run
 * so far as a document (report.h). All query the session through its own socket, from a thread of
 * the command line: neither the tracer nor the target waits for them.
 *
 *	sbinject_hits_total{target=}			calls counted
 *	sbinject_delayed_total{target=}
 *	sbinject_injected_seconds_total{target=}	measured
 *	sbinject_overrun_seconds_total{target=}
 *	sbinject_delay_seconds{target=}			delay of one call, as set
 *	sbinject_target_state{target=,
 *		sbinject_target_state=}			1 for its state: on off pending
 *	sbinject_call_duration_seconds{target=}		histogram: how long calls took; time=yes
 *	sbinject_calls_missed{target=}			hits that are not in it: in progress, or
 *							no return was seen
 *	sbinject_enabled
 *	sbinject_processes
 *
 * A target that is limited to a process tree (pid=N) has a tree=N label.
 *
 * by_pid: hits, injected and overrun each have a pid label. That is one label value for each
 * process ever seen, so it is off by default.
 */
struct metrics;

struct metrics_config {
	const char *listen; /* [ADDR:]PORT; loopback if there is no address; NULL: none */
	const char *file;   /* NULL: none */
	const char *report; /* a file for what /report serves; NULL: none */
	bool by_pid;
	uint64_t interval_ns; /* of the files */
	pid_t session;
};

/* Call it before the session begins; until then there is nothing to read. SB_EUSAGE: no such
 * address. SB_EFILE: the port is in use or may not be bound; the file cannot be written. */
int metrics_open(const struct metrics_config *cfg, struct metrics **out, struct sb_err *err);
/* result: of the run, for the last report; NULL: the file keeps the one before. m may be NULL. */
void metrics_close(struct metrics *m, const struct result *result);

#endif
