/* SPDX-License-Identifier: MIT */
/* The evidence of a session up to now, as requests and documents have it. */
#include "json.h"

#include <stdlib.h>
#include "evidence/evidence.h"
#include "src/result/evidence.h"

void control_evidence(struct evidence *e, json_t *to)
{
	struct evidence_reading reading;
	struct result_rows machine = { 0 }, memory = { 0 };
	struct result_cgroup cgroup = { 0 };
	struct result_hardware hardware = { 0 };
	bool unknown[EVIDENCE_COUNTERS];

	evidence_take(e, &reading);
	for (int i = 0; i < EVIDENCE_COUNTERS; i++)
		unknown[i] = evidence_unknown(e, i);
	evidence_tell_machine(e, true, &machine);
	evidence_tell_cgroup(e, &cgroup);
	evidence_tell_memory(evidence_memory_then(e), &memory);
	hardware_tell(e, &hardware);
	json_put(to, "t_ns", json_integer((json_int_t)reading.t_ns));
	json_put(to, "counters", evidence_values_json(&reading.sum, unknown));
	json_put(to, "machine", rows_json(&machine, machine_names, MACHINE_COUNTERS));
	json_put(to, "cgroup", evidence_cgroup_json(&cgroup));
	json_put(to, "process_memory", evidence_memory_json(&memory, NULL));
	json_put(to, "hardware", hardware_json(&hardware));
	json_put(to, "sample", json_integer(evidence_sample(e)));
	json_put(to, "limit", json_name(evidence_limit(e) ? evidence_limit(e)->what : NULL));
	free(hardware.limit);
	rows_free(&machine);
	rows_free(&memory);
	result_cgroup_free(&cgroup);
	evidence_reading_free(&reading);
}
