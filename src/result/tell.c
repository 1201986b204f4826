/* SPDX-License-Identifier: MIT */
/* What a measurement has besides the counters of threads, as results have it. Apart from their
 * documents, which are read and written without any measurement. */
#include "evidence.h"
#include "src/base/must.h"

void evidence_tell_machine(const struct evidence *e, bool quick, struct result_rows *out)
{
	struct machine_values m;
	char why[MACHINE_WHY_SIZE];

	evidence_machine(e, quick, &m);
	out->there = true;
	for (int i = 0; i < MACHINE_COUNTERS; i++) {
		out->of[i] = m.of[i];
		if (m.why[i])
			out->why[i] = must_strdup(machine_unknown(i, m.why[i], why, sizeof(why)));
	}
}

void evidence_tell_cgroup(const struct evidence *e, struct result_cgroup *out)
{
	const struct cgroup *g = evidence_cgroup(e);
	struct cgroup_values values;
	char why[CGROUP_WHY_SIZE];

	if (!g)
		return;
	cgroup_take(g, &values);
	out->rows.there = true;
	out->path = *cgroup_path(g) ? must_strdup(cgroup_path(g)) : NULL;
	for (int i = 0; i < CGROUP_COUNTERS; i++) {
		out->rows.of[i] = values.of[i];
		if (values.why[i])
			out->rows.why[i] =
				must_strdup(cgroup_unknown(g, i, values.why[i], why, sizeof(why)));
	}
}

void evidence_tell_memory(const struct memory_values *values, struct result_rows *out)
{
	out->there = true;
	for (int i = 0; i < MEMORY_ROWS; i++) {
		out->of[i] = values->of[i];
		out->why[i] = values->why[i] ? must_strdup(memory_why(values->why[i])) : NULL;
	}
}

void hardware_tell(const struct evidence *e, struct result_hardware *out)
{
	const char *why = evidence_unknown(e, EVIDENCE_CYCLES);

	out->there = evidence_hardware(e, &out->about);
	for (int i = EVIDENCE_CYCLES; why && i <= EVIDENCE_BRANCH_MISSES; i++)
		if (!evidence_unknown(e, i))
			why = NULL;
	out->limit = out->there && why ? must_strdup(why) : NULL;
}
