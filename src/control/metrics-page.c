/* SPDX-License-Identifier: MIT */
/* What the parts of the metrics' text share, and the evidence in it. */
#include "metrics-page.h"

#include <string.h>
#include "src/result/kind.h"
#include "src/result/result.h"

void page_head(const struct page *p, const char *name, const char *type, const char *unit,
	       const char *help)
{
	const char *suffix = !p->openmetrics && !strcmp(type, "counter") ? "_total" : "";

	if (!p->openmetrics && !strcmp(type, "stateset"))
		type = "gauge";
	fprintf(p->f, "# TYPE %s%s %s\n", name, suffix, type);
	if (unit && p->openmetrics)
		fprintf(p->f, "# UNIT %s %s\n", name, unit);
	fprintf(p->f, "# HELP %s%s %s\n", name, suffix, help);
}

/* Counters that are one metric, distinguished by a label. */
static const struct family {
	const char *name, *unit, *help, *label;
	double scale;
	struct member {
		enum evidence_counter counter;
		const char *value; /* of the label; NULL: the metric has none */
	} member[EVIDENCE_REASONS];
	size_t n;
} families[] = {
	{ "sbinject_evidence_seconds",
	  "seconds",
	  "Time of threads, by what they did.",
	  "reason",
	  1e-9,
	  { { EVIDENCE_ON_CPU, "on_cpu" },
	    { EVIDENCE_RUN_QUEUE, "run_queue" },
	    { EVIDENCE_FUTEX, "futex" },
	    { EVIDENCE_IO, "io" },
	    { EVIDENCE_NETWORK, "network" },
	    { EVIDENCE_PAGE_FAULT, "page_fault" },
	    { EVIDENCE_SLEEP, "sleep" },
	    { EVIDENCE_OTHER, "other" } },
	  8 },
	{ "sbinject_evidence_switches",
	  NULL,
	  "Switches of threads off a processor.",
	  "kind",
	  1,
	  { { EVIDENCE_VOLUNTARY, "voluntary" }, { EVIDENCE_INVOLUNTARY, "involuntary" } },
	  2 },
	{ "sbinject_evidence_page_faults",
	  NULL,
	  "Page faults: minor ones are served from memory, major ones from a device.",
	  "kind",
	  1,
	  { { EVIDENCE_FAULTS_MINOR, "minor" }, { EVIDENCE_FAULTS_MAJOR, "major" } },
	  2 },
	{ "sbinject_evidence_calls",
	  NULL,
	  "Calls that read and write.",
	  "kind",
	  1,
	  { { EVIDENCE_READ_CALLS, "read" }, { EVIDENCE_WRITE_CALLS, "write" } },
	  2 },
	{ "sbinject_evidence_io_bytes",
	  "bytes",
	  "Bytes read and written by calls, and from and to devices.",
	  "kind",
	  1,
	  { { EVIDENCE_READ_BYTES, "read" },
	    { EVIDENCE_WRITE_BYTES, "write" },
	    { EVIDENCE_DISK_READ_BYTES, "disk_read" },
	    { EVIDENCE_DISK_WRITE_BYTES, "disk_write" } },
	  4 },
	{ "sbinject_evidence_wakeups",
	  NULL,
	  "Wakeups of threads.",
	  NULL,
	  1,
	  { { EVIDENCE_WAKEUPS, NULL } },
	  1 },
	{ "sbinject_evidence_migrations",
	  NULL,
	  "Threads that went on on another processor.",
	  NULL,
	  1,
	  { { EVIDENCE_MIGRATIONS, NULL } },
	  1 },
	{ "sbinject_evidence_tcp_connections",
	  NULL,
	  "TCP connections begun and accepted.",
	  "kind",
	  1,
	  { { EVIDENCE_TCP_CONNECTS, "connect" }, { EVIDENCE_TCP_ACCEPTS, "accept" } },
	  2 },
	{ "sbinject_evidence_socket_bytes",
	  "bytes",
	  "Bytes sent and received by calls on sockets.",
	  "kind",
	  1,
	  { { EVIDENCE_TCP_BYTES_SENT, "tcp_sent" },
	    { EVIDENCE_TCP_BYTES_RECEIVED, "tcp_received" },
	    { EVIDENCE_UDP_BYTES_SENT, "udp_sent" },
	    { EVIDENCE_UDP_BYTES_RECEIVED, "udp_received" } },
	  4 },
	{ "sbinject_evidence_socket_packets",
	  NULL,
	  "Segments of TCP and packets of UDP.",
	  "kind",
	  1,
	  { { EVIDENCE_TCP_SEGMENTS_SENT, "tcp_sent" },
	    { EVIDENCE_TCP_SEGMENTS_RECEIVED, "tcp_received" },
	    { EVIDENCE_TCP_RETRANSMISSIONS, "tcp_sent_again" },
	    { EVIDENCE_UDP_PACKETS_SENT, "udp_sent" },
	    { EVIDENCE_UDP_PACKETS_RECEIVED, "udp_received" } },
	  5 },
	{ "sbinject_evidence_file_opens",
	  NULL,
	  "Files opened.",
	  NULL,
	  1,
	  { { EVIDENCE_FILE_OPENS, NULL } },
	  1 },
	{ "sbinject_evidence_disk_requests",
	  NULL,
	  "Requests to devices that have ended.",
	  "kind",
	  1,
	  { { EVIDENCE_DISK_READS, "read" }, { EVIDENCE_DISK_WRITES, "write" } },
	  2 },
	{ "sbinject_evidence_disk_request_seconds",
	  "seconds",
	  "Time of these requests, added up.",
	  "kind",
	  1e-9,
	  { { EVIDENCE_DISK_READ_TIME, "read" }, { EVIDENCE_DISK_WRITE_TIME, "write" } },
	  2 },
	{ "sbinject_evidence_page_cache_pages",
	  NULL,
	  "Pages that reads took from the page cache, those of them that were not there before, "
	  "and "
	  "pages that came into it.",
	  "kind",
	  1,
	  { { EVIDENCE_CACHE_READS, "read" },
	    { EVIDENCE_CACHE_MISSES, "missed" },
	    { EVIDENCE_CACHE_ADDS, "added" } },
	  3 },
	{ "sbinject_evidence_kernel_lock_waits",
	  NULL,
	  "Waits for locks of the kernel.",
	  "kind",
	  1,
	  { { EVIDENCE_SPINLOCK_WAITS, "spinlock" },
	    { EVIDENCE_MUTEX_WAITS, "mutex" },
	    { EVIDENCE_RWSEM_WAITS, "rwsem" } },
	  3 },
	{ "sbinject_evidence_kernel_lock_seconds",
	  "seconds",
	  "Time of these waits.",
	  "kind",
	  1e-9,
	  { { EVIDENCE_SPINLOCK_TIME, "spinlock" },
	    { EVIDENCE_MUTEX_TIME, "mutex" },
	    { EVIDENCE_RWSEM_TIME, "rwsem" } },
	  3 },
	{ "sbinject_evidence_cpu_cycles",
	  NULL,
	  "Cycles of the processor.",
	  NULL,
	  1,
	  { { EVIDENCE_CYCLES, NULL } },
	  1 },
	{ "sbinject_evidence_cpu_instructions",
	  NULL,
	  "Instructions that the processor completed.",
	  NULL,
	  1,
	  { { EVIDENCE_INSTRUCTIONS, NULL } },
	  1 },
	{ "sbinject_evidence_cpu_cache",
	  NULL,
	  "References to the last level of cache, and those of them that it did not have.",
	  "kind",
	  1,
	  { { EVIDENCE_LLC_REFERENCES, "reference" }, { EVIDENCE_LLC_MISSES, "miss" } },
	  2 },
	{ "sbinject_evidence_cpu_misses",
	  NULL,
	  "Loads whose page the TLB did not have, and branches that were predicted wrong.",
	  "kind",
	  1,
	  { { EVIDENCE_DTLB_MISSES, "dtlb_load" }, { EVIDENCE_BRANCH_MISSES, "branch" } },
	  2 },
	{ "sbinject_evidence_tcp_rtt_seconds",
	  "seconds",
	  "Round-trip times of TCP, one for each receipt, added up.",
	  NULL,
	  1e-9,
	  { { EVIDENCE_TCP_RTT, NULL } },
	  1 },
	{ "sbinject_evidence_tcp_rtts",
	  NULL,
	  "How many round-trip times were added up.",
	  NULL,
	  1,
	  { { EVIDENCE_TCP_RTT_SAMPLES, NULL } },
	  1 },
};

static void put_member(const struct page *p, const struct family *f, const struct member *m,
		       const json_t *counters)
{
	const json_t *json = json_object_get(counters, evidence_kinds[m->counter].name);
	uint64_t value;

	if (!kind_u64_read(json, &value))
		return;
	fprintf(p->f, "%s_total", f->name);
	if (m->value)
		fprintf(p->f, "{%s=\"%s\"}", f->label, m->value);
	fprintf(p->f, " %.17g\n",
		steady_value(p->steady, evidence_kinds[m->counter].name, (double)value * f->scale,
			     0));
}

/* A counter that is not known has no sample; a metric without one has no head. */
void page_evidence(const struct page *p, const json_t *counters)
{
	for (size_t i = 0; counters && i < sizeof(families) / sizeof(*families); i++) {
		const struct family *f = &families[i];
		bool any = false;

		for (size_t k = 0; k < f->n; k++)
			any |= json_is_integer(json_object_get(
				counters, evidence_kinds[f->member[k].counter].name));
		if (any)
			page_head(p, f->name, "counter", f->unit, f->help);
		for (size_t k = 0; any && k < f->n; k++)
			put_member(p, f, &f->member[k], counters);
	}
}

void page_sample(const struct page *p, const json_t *sample)
{
	if (!json_is_integer(sample))
		return;
	page_head(p, "sbinject_evidence_sample", "gauge", NULL,
		  "One of so many frequent events is counted, as so many.");
	fprintf(p->f, "sbinject_evidence_sample %lld\n", (long long)json_integer_value(sample));
}
