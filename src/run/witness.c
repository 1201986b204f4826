/* SPDX-License-Identifier: MIT */
#include "witness.h"

#include <stdlib.h>
#include "inject/clock.h"
#include "src/base/must.h"
#include "src/result/evidence.h"
#include "src/session/processes.h"

enum { LOOKS = 8 };
#define LOOK_NS 250000000ull

/* Again while there are new ones: a process forks before it is watched. */
void witness_add(struct evidence *e, const struct session_config *cfg)
{
	size_t n = 0, before;

	for (int i = 0; i < LOOKS; i++) {
		pid_t *pids;

		before = n;
		processes_descendants(cfg, &pids, &n);
		for (size_t k = 0; k < n; k++)
			evidence_add(e, pids[k]);
		free(pids);
		if (n == before)
			break;
	}
}

struct evidence *witness_open(const struct session_config *cfg, bool pauses)
{
	unsigned int groups = cfg->evidence_groups ? cfg->evidence_groups : EVIDENCE_ALL;
	const struct evidence_config own = {
		.children = cfg->children,
		.groups = groups,
		.sample = cfg->evidence_sample,
		.pauses = pauses && (groups & (1u << GROUP_TIME | 1u << GROUP_WAITS)),
	};

	return evidence_open(&own);
}

void witness_begin(struct evidence *e, const struct session_config *cfg)
{
	if (cfg->launched)
		evidence_add(e, cfg->launched);
	else
		witness_add(e, cfg);
	evidence_begin(e);
}

void witness_measure(struct evidence *e, const struct session_config *cfg)
{
	pid_t *pid;
	size_t n;

	if (!e || cfg->launched)
		return;
	processes_descendants(cfg, &pid, &n);
	evidence_memory_begin(e, pid, n);
	free(pid);
}

void witness_measured(const struct evidence *e, struct result_evidence *out)
{
	pid_t *pid = must_calloc(out->n_threads + 1, sizeof(*pid));
	struct memory_values values;
	size_t n = 0, k;

	for (size_t i = 0; i < out->n_threads; i++) {
		for (k = 0; k < n && pid[k] != out->thread[i].pid; k++)
			;
		pid[n] = out->thread[i].pid;
		n += k == n && pid[n];
	}
	evidence_tell_memory(evidence_memory_then(e), &out->memory[0]);
	evidence_memory(e, pid, n, &values);
	evidence_tell_memory(&values, &out->memory[1]);
	free(pid);
}

void witness_look(struct evidence *e, uint64_t *due)
{
	struct evidence_reading r;
	uint64_t now = clock_ns();

	if (!e || !evidence_limit(e) || now < *due)
		return;
	evidence_take(e, &r);
	evidence_reading_free(&r);
	*due = now + LOOK_NS;
}

static void tell_thread(const struct evidence_thread *from, struct result_evidence_thread *to)
{
	char name[64];

	*to = (struct result_evidence_thread){ .pid = from->pid,
					       .tid = from->tid,
					       .values = from->values,
					       .hardware = from->hardware };
	processes_thread_name(from->pid, from->tid, name, sizeof(name));
	to->name = name[0] ? must_strdup(name) : NULL;
}

void witness_tell(const struct evidence *e, const struct evidence_reading *r,
		  struct result_evidence *out)
{
	const struct sb_err *limit = evidence_limit(e);

	out->source = must_strdup(limit ? "proc" : "bpf");
	out->limit = limit ? must_strdup(limit->what) : NULL;
	out->remedy = limit ? must_strdup(err_remedy(limit)) : NULL;
	out->time_s = (double)(r->t_ns - evidence_began_ns(e)) / 1e9;
	out->lost = evidence_lost(e);
	out->sample = evidence_sample(e);
	out->sum = r->sum;
	for (int i = 0; i < EVIDENCE_COUNTERS; i++)
		out->unknown[i] = evidence_unknown(e, i);
	evidence_tell_machine(e, false, &out->machine);
	evidence_tell_cgroup(e, &out->cgroup);
	hardware_tell(e, &out->hardware);
	out->thread = must_calloc(r->n_threads, sizeof(*out->thread));
	out->n_threads = r->n_threads;
	for (size_t i = 0; i < r->n_threads; i++)
		tell_thread(&r->thread[i], &out->thread[i]);
}
