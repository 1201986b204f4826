/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include "ask.h"
#include "json.h"
#include "evidence/evidence.h"
#include "src/base/json.h"
#include "src/result/evidence.h"
#include "src/result/kind.h"

enum { NONE = EVIDENCE_COUNTERS };

/* Members of the groups: a counter, the sum of two, the first less the second, also in percent of
 * the first, or the mean of ns over a number, in us; of PAIR the first two are ns and the last two
 * numbers. */
static const struct member {
	const char *group, *name;
	enum { SUM, LESS, LESS_PERCENT, MEAN_US, PAIR_US } what;
	unsigned int counter[4];
} members[] = {
	{ "network", "wait_ns", SUM, { EVIDENCE_NETWORK, NONE } },
	{ "network", "waits", SUM, { EVIDENCE_WAITS + EVIDENCE_NETWORK - EVIDENCE_FUTEX, NONE } },
	{ "network",
	  "avg_wait_time_us",
	  MEAN_US,
	  { EVIDENCE_NETWORK, EVIDENCE_WAITS + EVIDENCE_NETWORK - EVIDENCE_FUTEX } },
	{ "network", "tcp_connections", SUM, { EVIDENCE_TCP_CONNECTS, EVIDENCE_TCP_ACCEPTS } },
	{ "network", "tcp_connects", SUM, { EVIDENCE_TCP_CONNECTS, NONE } },
	{ "network", "tcp_accepts", SUM, { EVIDENCE_TCP_ACCEPTS, NONE } },
	{ "network", "tcp_bytes_sent", SUM, { EVIDENCE_TCP_BYTES_SENT, NONE } },
	{ "network", "tcp_bytes_received", SUM, { EVIDENCE_TCP_BYTES_RECEIVED, NONE } },
	{ "network", "tcp_segments_sent", SUM, { EVIDENCE_TCP_SEGMENTS_SENT, NONE } },
	{ "network", "tcp_segments_received", SUM, { EVIDENCE_TCP_SEGMENTS_RECEIVED, NONE } },
	{ "network", "tcp_retransmissions", SUM, { EVIDENCE_TCP_RETRANSMISSIONS, NONE } },
	{ "network", "tcp_rtt_us", MEAN_US, { EVIDENCE_TCP_RTT, EVIDENCE_TCP_RTT_SAMPLES } },
	{ "network",
	  "udp_packets",
	  SUM,
	  { EVIDENCE_UDP_PACKETS_SENT, EVIDENCE_UDP_PACKETS_RECEIVED } },
	{ "network", "udp_bytes_sent", SUM, { EVIDENCE_UDP_BYTES_SENT, NONE } },
	{ "network", "udp_bytes_received", SUM, { EVIDENCE_UDP_BYTES_RECEIVED, NONE } },
	{ "memory", "page_faults_minor", SUM, { EVIDENCE_FAULTS_MINOR, NONE } },
	{ "memory", "page_faults_major", SUM, { EVIDENCE_FAULTS_MAJOR, NONE } },
	{ "memory", "page_fault_wait_ns", SUM, { EVIDENCE_PAGE_FAULT, NONE } },
	{ "memory", "cache_hits", LESS, { EVIDENCE_LLC_REFERENCES, EVIDENCE_LLC_MISSES } },
	{ "memory", "cache_misses", SUM, { EVIDENCE_LLC_MISSES, NONE } },
	{ "memory", "tlb_misses", SUM, { EVIDENCE_DTLB_MISSES, NONE } },
	{ "io", "wait_ns", SUM, { EVIDENCE_IO, NONE } },
	{ "io", "read_calls", SUM, { EVIDENCE_READ_CALLS, NONE } },
	{ "io", "write_calls", SUM, { EVIDENCE_WRITE_CALLS, NONE } },
	{ "io", "read_bytes", SUM, { EVIDENCE_READ_BYTES, NONE } },
	{ "io", "write_bytes", SUM, { EVIDENCE_WRITE_BYTES, NONE } },
	{ "io", "disk_read_bytes", SUM, { EVIDENCE_DISK_READ_BYTES, NONE } },
	{ "io", "disk_write_bytes", SUM, { EVIDENCE_DISK_WRITE_BYTES, NONE } },
	{ "io", "waits", SUM, { EVIDENCE_WAITS + EVIDENCE_IO - EVIDENCE_FUTEX, NONE } },
	{ "io",
	  "avg_wait_time_us",
	  MEAN_US,
	  { EVIDENCE_IO, EVIDENCE_WAITS + EVIDENCE_IO - EVIDENCE_FUTEX } },
	{ "io", "file_opens", SUM, { EVIDENCE_FILE_OPENS, NONE } },
	{ "io", "disk_requests", SUM, { EVIDENCE_DISK_READS, EVIDENCE_DISK_WRITES } },
	{ "io",
	  "avg_disk_latency_us",
	  PAIR_US,
	  { EVIDENCE_DISK_READ_TIME, EVIDENCE_DISK_WRITE_TIME, EVIDENCE_DISK_READS,
	    EVIDENCE_DISK_WRITES } },
	{ "io", "cache_hits", LESS, { EVIDENCE_CACHE_READS, EVIDENCE_CACHE_MISSES } },
	{ "io", "cache_misses", SUM, { EVIDENCE_CACHE_MISSES, NONE } },
	{ "io", "cache_hit_ratio", LESS_PERCENT, { EVIDENCE_CACHE_READS, EVIDENCE_CACHE_MISSES } },
	{ "io", "cache_adds", SUM, { EVIDENCE_CACHE_ADDS, NONE } },
	{ "cpu", "on_cpu_ns", SUM, { EVIDENCE_ON_CPU, NONE } },
	{ "cpu", "run_queue_ns", SUM, { EVIDENCE_RUN_QUEUE, NONE } },
	{ "cpu", "context_switches", SUM, { EVIDENCE_VOLUNTARY, EVIDENCE_INVOLUNTARY } },
	{ "cpu", "context_switches_voluntary", SUM, { EVIDENCE_VOLUNTARY, NONE } },
	{ "cpu", "context_switches_involuntary", SUM, { EVIDENCE_INVOLUNTARY, NONE } },
	{ "cpu", "cpu_migrations", SUM, { EVIDENCE_MIGRATIONS, NONE } },
	{ "cpu", "wakeups", SUM, { EVIDENCE_WAKEUPS, NONE } },
	{ "cpu", "cycles", SUM, { EVIDENCE_CYCLES, NONE } },
	{ "cpu", "instructions", SUM, { EVIDENCE_INSTRUCTIONS, NONE } },
	{ "cpu", "branch_misses", SUM, { EVIDENCE_BRANCH_MISSES, NONE } },
	{ "locks", "futex_wait_ns", SUM, { EVIDENCE_FUTEX, NONE } },
	{ "locks", "futex_waits", SUM, { EVIDENCE_WAITS, NONE } },
	{ "locks", "avg_wait_time_us", MEAN_US, { EVIDENCE_FUTEX, EVIDENCE_WAITS } },
	{ "locks", "mutex_contentions", SUM, { EVIDENCE_MUTEX_WAITS, NONE } },
	{ "locks", "mutex_wait_ns", SUM, { EVIDENCE_MUTEX_TIME, NONE } },
	{ "locks", "rwsem_contentions", SUM, { EVIDENCE_RWSEM_WAITS, NONE } },
	{ "locks", "rwsem_wait_ns", SUM, { EVIDENCE_RWSEM_TIME, NONE } },
	{ "locks", "spinlock_contentions", SUM, { EVIDENCE_SPINLOCK_WAITS, NONE } },
	{ "locks", "spinlock_wait_ns", SUM, { EVIDENCE_SPINLOCK_TIME, NONE } },
};

/* What is counted for no thread, in the groups: an object of the answer, and its member. */
static const struct {
	const char *group, *name, *object, *key;
} rows[] = {
	{ "memory", "swap_in_pages", "machine", "swap_in_pages" },
	{ "memory", "swap_out_pages", "machine", "swap_out_pages" },
	{ "memory", "oom_kills", "machine", "oom_kills" },
	{ "cpu", "interrupts", "machine", "interrupts" },
	{ "cpu", "softirqs", "machine", "softirqs" },
	{ "cpu", "throttle_events", "cgroup", "cpu_throttled_periods" },
	{ "cpu", "throttled_ns", "cgroup", "cpu_throttled_ns" },
};

/* False: it is not known. */
static bool value_of(const json_t *counters, unsigned int counter, uint64_t *value)
{
	*value = 0;
	return counter == NONE ||
	       kind_u64_read(json_object_get(counters, evidence_kinds[counter].name), value);
}

static json_t *member_json(const struct member *m, const json_t *counters)
{
	uint64_t v[4] = { 0 };

	for (size_t i = 0; i < (m->what == PAIR_US ? 4 : 2); i++)
		if (!value_of(counters, m->counter[i], &v[i]))
			return json_must(json_null());
	if (m->what == SUM)
		return kind_u64_new(v[0] + v[1]);
	if (m->what == LESS)
		return kind_u64_new(v[0] > v[1] ? v[0] - v[1] : 0); /* of estimates */
	if (m->what == LESS_PERCENT)
		return json_must(v[0] ? json_real(100 * (double)(v[0] - v[1]) / (double)v[0]) :
					json_null());
	if (m->what == PAIR_US) {
		v[0] += v[1];
		v[1] = v[2] + v[3];
	}
	return json_must(v[1] ? json_real((double)v[0] / (double)v[1] / 1000) : json_null());
}

/* ... and these as they are. */
static const char *const objects[] = { "machine", "cgroup", "process_memory", "hardware" };

static void put_rows(json_t *groups, const json_t *answer)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		json_t *value = json_object_get(json_object_get(answer, rows[i].object),
						rows[i].key);

		json_put(json_object_get(groups, rows[i].group), rows[i].name,
			 value ? json_incref(value) : json_must(json_null()));
	}
	for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++) {
		json_t *object = json_object_get(answer, objects[i]);

		json_put(groups, objects[i], object ? json_incref(object) : json_null());
	}
}

/* All groups are there, whatever is known. */
static json_t *evidence_groups_json(const json_t *answer)
{
	const json_t *counters = json_object_get(answer, "counters");
	const char *limit = json_string_value(json_object_get(answer, "limit"));
	json_t *o = json_must(json_object());

	if (!counters)
		limit = "the session has no --evidence";
	json_put(o, "available", json_boolean(counters != NULL));
	json_put(o, "limit", limit ? json_must(json_string(limit)) : json_must(json_null()));
	json_put(o, "sample",
		 counters ? json_incref(json_object_get(answer, "sample")) : json_null());
	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
		const struct member *m = &members[i];

		if (!json_object_get(o, m->group))
			json_put(o, m->group, json_must(json_object()));
		json_put(json_object_get(o, m->group), m->name, member_json(m, counters));
	}
	put_rows(o, counters ? answer : NULL);
	return o;
}

static void take(json_t *to, const json_t *from, const char *key)
{
	json_put(to, key, json_incref(json_object_get(from, key)));
}

static char *text_of(const json_t *doc, size_t *len)
{
	char *text = json_document(doc, true);

	*len = strlen(text);
	return text;
}

char *report_text(pid_t session, size_t *len)
{
	static const char *const keys[] = { "backend", "enabled", "pids", "total_hits",
					    "total_delay_ns" };
	json_t *status = control_ask(session, "{\"op\":\"status\"}\n");
	json_t *list = status ? control_ask(session, "{\"op\":\"list\"}\n") : NULL;
	json_t *evidence = list ? control_ask(session, "{\"op\":\"evidence\"}\n") : NULL;
	json_t *doc = json_must(json_object());
	char *text = NULL;

	if (evidence) {
		json_put(doc, "schema", json_string("sbinject.report/1"));
		json_put(doc, "version", json_string(SB_VERSION));
		json_put(doc, "session", json_integer(session));
		json_put(doc, "ended", json_false());
		for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
			take(doc, status, keys[i]);
		take(doc, list, "targets");
		json_put(doc, "evidence", evidence_groups_json(evidence));
		text = text_of(doc, len);
	}
	json_decref(status);
	json_decref(list);
	json_decref(evidence);
	json_decref(doc);
	return text;
}

/* Of every process that was hooked, once each. */
static json_t *pids_json(const struct result *res)
{
	json_t *pids = json_must(json_array());

	for (size_t i = 0; i < res->n_processes; i++) {
		bool had = !res->process[i].pid;

		for (size_t k = 0; k < i && !had; k++)
			had = res->process[k].pid == res->process[i].pid;
		if (!had)
			json_add(pids, json_must(json_integer(res->process[i].pid)));
	}
	return pids;
}

char *report_ended(const struct result *res, pid_t session, size_t *len)
{
	json_t *doc = json_must(json_object()), *list = json_must(json_array());
	json_t *evidence = evidence_json(&res->evidence);
	uint64_t hits = 0, injected = 0;
	char *text;

	for (size_t i = 0; i < res->n_targets; i++) {
		hits += res->target[i].counts.hits;
		injected += res->target[i].counts.injected_ns;
		json_add(list, control_ended_target(&res->target[i], i));
	}
	json_put(doc, "schema", json_string("sbinject.report/1"));
	json_put(doc, "version", json_string(SB_VERSION));
	json_put(doc, "session", json_integer(session));
	json_put(doc, "ended", json_true());
	json_put(doc, "backend", json_name(res->backend));
	json_put(doc, "enabled", json_false());
	json_put(doc, "pids", pids_json(res));
	json_put(doc, "total_hits", kind_u64_new(hits));
	json_put(doc, "total_delay_ns", kind_u64_new(injected));
	json_put(doc, "targets", list);
	json_put(doc, "evidence", evidence_groups_json(evidence));
	text = text_of(doc, len);
	json_decref(evidence);
	json_decref(doc);
	return text;
}
