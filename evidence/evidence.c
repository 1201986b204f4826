/* SPDX-License-Identifier: MIT */
#include "evidence.h"

#include <stdlib.h>
#include "evidence/bpf/load.h"
#include "cgroup.h"
#include "hardware.h"
#include "machine.h"
#include "memory.h"
#include "now.h"
#include "proc.h"
#include "src/base/must.h"

#define CPUS "/sys/devices/system/cpu"

struct evidence {
	struct evidence_bpf *bpf;   /* NULL: by /proc */
	struct evidence_proc *proc; /* NULL: by BPF */
	struct hardware *hardware;  /* NULL: not asked for */
	struct sb_err why;	    /* there is no BPF */
	unsigned int groups, sample;
	bool pauses;
	uint64_t began_ns;	       /* 0: no process was added */
	struct machine_values machine; /* then */
	struct cgroup *cgroup;	       /* of the first one; NULL: no process was added */
	struct memory_values memory;   /* before the watching */
};

int evidence_probe(struct sb_err *err)
{
	struct evidence_bpf *bpf = evidence_bpf_open(&(struct evidence_config){ 0 }, err);

	evidence_bpf_close(bpf);
	return bpf ? 0 : -(int)err->code;
}

struct evidence *evidence_open(const struct evidence_config *cfg)
{
	struct evidence *e = must_calloc(1, sizeof(*e));

	e->groups = cfg->groups;
	memory_unread(MEMORY_LATER, &e->memory);
	e->bpf = evidence_bpf_open(cfg, &e->why);
	e->sample = e->bpf && cfg->sample ? cfg->sample : 1;
	e->pauses = e->bpf && cfg->pauses;
	if (!e->bpf)
		e->proc = evidence_proc_open(cfg->children);
	if (cfg->groups & 1u << GROUP_HARDWARE)
		e->hardware = hardware_open(hardware_events, HARDWARE_EVENTS, cfg->children);
	return e;
}

struct evidence *evidence_open_proc(bool children)
{
	struct evidence *e = must_calloc(1, sizeof(*e));

	e->groups = EVIDENCE_ALL;
	memory_unread(MEMORY_LATER, &e->memory);
	e->sample = 1;
	e->proc = evidence_proc_open(children);
	err_set(&e->why, SB_EUSAGE, "BPF was not asked for");
	err_hint(&e->why, "--evidence, as root");
	return e;
}

void evidence_close(struct evidence *e)
{
	if (!e)
		return;
	evidence_bpf_close(e->bpf);
	evidence_proc_close(e->proc);
	hardware_close(e->hardware);
	cgroup_close(e->cgroup);
	free(e);
}

void evidence_add(struct evidence *e, pid_t pid)
{
	if (!e->began_ns) {
		e->began_ns = evidence_now_ns();
		machine_read("/proc", CPUS, e->groups, false, &e->machine);
		e->cgroup = cgroup_open(pid, e->groups);
	}
	if (e->hardware)
		hardware_add(e->hardware, pid);
	if (e->bpf)
		evidence_bpf_add(e->bpf, pid);
	else
		evidence_proc_add(e->proc, pid);
}

void evidence_begin(struct evidence *e)
{
	if (e->hardware)
		hardware_begin(e->hardware);
}

bool evidence_hardware(const struct evidence *e, struct hardware_about *about)
{
	if (e->hardware)
		hardware_about(e->hardware, about);
	return e->hardware;
}

const struct sb_err *evidence_limit(const struct evidence *e)
{
	return e->bpf ? NULL : &e->why;
}

const char *evidence_unknown(const struct evidence *e, enum evidence_counter counter)
{
	bool io = counter >= EVIDENCE_READ_CALLS && counter <= EVIDENCE_DISK_WRITE_BYTES;

	if (!(e->groups & 1u << evidence_kinds[counter].group))
		return "its group is not in --evidence=GROUPS";
	if (evidence_kinds[counter].group == GROUP_HARDWARE)
		return hardware_unknown(e->hardware, counter - EVIDENCE_CYCLES);
	if (e->bpf)
		return evidence_bpf_unknown(e->bpf, counter);
	if (evidence_proc_knows(counter))
		return NULL;
	return io ? "the kernel does not count it" : e->why.what;
}

unsigned int evidence_sample(const struct evidence *e)
{
	return e->sample;
}

bool evidence_tells(const struct evidence *e)
{
	return e->pauses;
}

uint64_t evidence_began_ns(const struct evidence *e)
{
	return e->began_ns;
}

void evidence_machine(const struct evidence *e, bool quick, struct machine_values *values)
{
	machine_read("/proc", CPUS, e->groups, quick, values);
	machine_since(values, &e->machine);
}

void evidence_memory(const struct evidence *e, const pid_t *pid, size_t n,
		     struct memory_values *values)
{
	if (e->groups & 1u << GROUP_FAULTS)
		memory_read("/proc", pid, n, values);
	else
		memory_unread(MEMORY_UNASKED, values);
}

void evidence_memory_begin(struct evidence *e, const pid_t *pid, size_t n)
{
	evidence_memory(e, pid, n, &e->memory);
}

const struct memory_values *evidence_memory_then(const struct evidence *e)
{
	return &e->memory;
}

const struct cgroup *evidence_cgroup(const struct evidence *e)
{
	return e->cgroup;
}

uint64_t evidence_lost(const struct evidence *e)
{
	return e->bpf ? evidence_bpf_lost(e->bpf) : evidence_proc_lost(e->proc);
}

/* A thread that has the number of one that ended began later. */
static void add_hardware(struct hardware *h, struct evidence_reading *r)
{
	uint64_t began = hardware_began_ns(h);

	hardware_read(h);
	for (size_t c = 0; c < HARDWARE_EVENTS; c++) {
		r->sum.of[EVIDENCE_CYCLES + c] = hardware_sum(h, c);
		for (size_t i = 0; i < r->n_threads; i++) {
			struct evidence_thread *t = &r->thread[i];

			if (t->began_ns <= began)
				t->hardware = hardware_thread(h, t->tid, c,
							      &t->values.of[EVIDENCE_CYCLES + c]);
		}
	}
}

void evidence_take(struct evidence *e, struct evidence_reading *r)
{
	*r = (struct evidence_reading){ 0 };
	if (e->bpf)
		evidence_bpf_take(e->bpf, r);
	else
		evidence_proc_take(e->proc, r);
	if (e->hardware)
		add_hardware(e->hardware, r);
}

void evidence_pauses(struct evidence *e, uint64_t until_ns, size_t most, evidence_pause_fn *fn,
		     void *ctx)
{
	if (e->bpf)
		evidence_bpf_pauses(e->bpf, until_ns, most, fn, ctx);
}

bool evidence_stack(const struct evidence *e, size_t number, struct evidence_stack_copy *out)
{
	return e->bpf && evidence_bpf_stack(e->bpf, number, out);
}
