/* SPDX-License-Identifier: MIT */
/* What is counted for no thread, in the metrics' text: of the machine, and of the
 * control group of the root process. */
#include <string.h>
#include "metrics-page.h"
#include "src/result/kind.h"

enum { MEMBERS = 4 };

/* Numbers of one object that are one metric, distinguished by a label. */
static const struct family {
	const char *object, *name, *type, *unit, *help, *label;
	double scale;
	struct member {
		const char *key, *value; /* of the label; NULL: the metric has none */
	} member[MEMBERS];
} families[] = {
	{ "machine",
	  "sbinject_evidence_machine_pressure_waiting_seconds",
	  "counter",
	  "seconds",
	  "Time in which some task of the machine waited.",
	  "resource",
	  1e-9,
	  { { "cpu_pressure_ns", "cpu" },
	    { "memory_pressure_ns", "memory" },
	    { "io_pressure_ns", "io" } } },
	{ "machine",
	  "sbinject_evidence_machine_pressure_stalled_seconds",
	  "counter",
	  "seconds",
	  "Time in which all tasks of the machine that were not idle waited.",
	  "resource",
	  1e-9,
	  { { "memory_stall_ns", "memory" }, { "io_stall_ns", "io" } } },
	{ "machine",
	  "sbinject_evidence_machine_swap_pages",
	  "counter",
	  "pages",
	  "Pages read from and written to swap.",
	  "kind",
	  1,
	  { { "swap_in_pages", "in" }, { "swap_out_pages", "out" } } },
	{ "machine",
	  "sbinject_evidence_machine_oom_kills",
	  "counter",
	  NULL,
	  "Processes of the machine that the OOM killer ended.",
	  NULL,
	  1,
	  { { "oom_kills", NULL } } },
	{ "machine",
	  "sbinject_evidence_machine_interrupts",
	  "counter",
	  NULL,
	  "Interrupts that the machine served.",
	  NULL,
	  1,
	  { { "interrupts", NULL } } },
	{ "machine",
	  "sbinject_evidence_machine_softirqs",
	  "counter",
	  NULL,
	  "Softirqs that the machine served.",
	  NULL,
	  1,
	  { { "softirqs", NULL } } },
	{ "machine",
	  "sbinject_evidence_machine_cpu_idle_seconds",
	  "counter",
	  "seconds",
	  "Time of all processors in idle states.",
	  NULL,
	  1e-9,
	  { { "cpu_idle_ns", NULL } } },
	{ "machine",
	  "sbinject_evidence_machine_cpu_idle_entries",
	  "counter",
	  NULL,
	  "How often processors entered an idle state.",
	  NULL,
	  1,
	  { { "cpu_idle_entries", NULL } } },
	{ "machine",
	  "sbinject_evidence_machine_cpu_frequency_hertz",
	  "gauge",
	  "hertz",
	  "The mean frequency of the processors now.",
	  NULL,
	  1,
	  { { "cpu_frequency_hz", NULL } } },
	{ "machine",
	  "sbinject_evidence_machine_cpu_frequency_mean_hertz",
	  "gauge",
	  "hertz",
	  "The same over the time of the session.",
	  NULL,
	  1,
	  { { "cpu_frequency_mean_hz", NULL } } },
	{ "cgroup",
	  "sbinject_evidence_cgroup_cpu_periods",
	  "counter",
	  NULL,
	  "Periods of the control group's quota of processor time.",
	  NULL,
	  1,
	  { { "cpu_periods", NULL } } },
	{ "cgroup",
	  "sbinject_evidence_cgroup_cpu_throttled_periods",
	  "counter",
	  NULL,
	  "Periods in which the control group used up its quota.",
	  NULL,
	  1,
	  { { "cpu_throttled_periods", NULL } } },
	{ "cgroup",
	  "sbinject_evidence_cgroup_cpu_throttled_seconds",
	  "counter",
	  "seconds",
	  "Time without a processor for that, added up over the processors.",
	  NULL,
	  1e-9,
	  { { "cpu_throttled_ns", NULL } } },
	{ "cgroup",
	  "sbinject_evidence_cgroup_pressure_waiting_seconds",
	  "counter",
	  "seconds",
	  "Time in which some task of the control group waited.",
	  "resource",
	  1e-9,
	  { { "cpu_pressure_ns", "cpu" },
	    { "memory_pressure_ns", "memory" },
	    { "io_pressure_ns", "io" } } },
	{ "cgroup",
	  "sbinject_evidence_cgroup_pressure_stalled_seconds",
	  "counter",
	  "seconds",
	  "Time in which all tasks of the control group that were not idle waited.",
	  "resource",
	  1e-9,
	  { { "cpu_stall_ns", "cpu" }, { "memory_stall_ns", "memory" }, { "io_stall_ns", "io" } } },
	{ "cgroup",
	  "sbinject_evidence_cgroup_memory_events",
	  "counter",
	  NULL,
	  "How often the control group reached a limit of memory.",
	  "kind",
	  1,
	  { { "memory_high_events", "high" },
	    { "memory_max_events", "max" },
	    { "memory_oom_events", "oom" } } },
	{ "cgroup",
	  "sbinject_evidence_cgroup_oom_kills",
	  "counter",
	  NULL,
	  "Processes of the control group that the OOM killer ended.",
	  NULL,
	  1,
	  { { "oom_kills", NULL } } },
	{ "cgroup",
	  "sbinject_evidence_cgroup_page_faults",
	  "counter",
	  NULL,
	  "Page faults of the control group.",
	  "kind",
	  1,
	  { { "page_faults_major", "major" } } },
	{ "cgroup",
	  "sbinject_evidence_cgroup_refault_pages",
	  "counter",
	  "pages",
	  "Pages that were read again soon after they were reclaimed.",
	  "kind",
	  1,
	  { { "refault_anon_pages", "anon" }, { "refault_file_pages", "file" } } },
	{ "cgroup",
	  "sbinject_evidence_cgroup_swap_pages",
	  "counter",
	  "pages",
	  "Pages of the control group read from and written to swap.",
	  "kind",
	  1,
	  { { "swap_in_pages", "in" }, { "swap_out_pages", "out" } } },
	{ "cgroup",
	  "sbinject_evidence_cgroup_memory_bytes",
	  "gauge",
	  "bytes",
	  "Memory and swap of the control group now.",
	  "kind",
	  1,
	  { { "memory_current_bytes", "memory" }, { "swap_current_bytes", "swap" } } },
	{ "process_memory",
	  "sbinject_evidence_process_memory_begin_bytes",
	  "gauge",
	  "bytes",
	  "Memory of the processes when the session began.",
	  "kind",
	  1,
	  { { "rss_bytes", "rss" },
	    { "pss_bytes", "pss" },
	    { "anonymous_bytes", "anonymous" },
	    { "swap_bytes", "swap" } } },
};

static void put_member(const struct page *p, const struct family *f, const struct member *m,
		       uint64_t value)
{
	bool counter = !strcmp(f->type, "counter");
	double shown = (double)value * f->scale;
	char key[96];

	snprintf(key, sizeof(key), "%s %s", f->object, m->key);
	fprintf(p->f, "%s%s", f->name, counter ? "_total" : "");
	if (m->value)
		fprintf(p->f, "{%s=\"%s\"}", f->label, m->value);
	fprintf(p->f, " %.17g\n", counter ? steady_value(p->steady, key, shown, 0) : shown);
}

void page_rows(const struct page *p, const json_t *evidence)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		const struct family *f = &families[i];
		const json_t *object = json_object_get(evidence, f->object);
		const json_t *begin = json_object_get(object, "begin");
		bool head = false;
		uint64_t value;

		for (size_t k = 0; k < MEMBERS && f->member[k].key; k++) {
			if (!kind_u64_read(
				    json_object_get(begin ? begin : object, f->member[k].key),
				    &value))
				continue;
			if (!head)
				page_head(p, f->name, f->type, f->unit, f->help);
			head = true;
			put_member(p, f, &f->member[k], value);
		}
	}
}
