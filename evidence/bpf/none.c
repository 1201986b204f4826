/* SPDX-License-Identifier: MIT */
/* Built where clang or libbpf is missing: the evidence is that of /proc, and says why. */
#include "load.h"

struct evidence_bpf *evidence_bpf_open(const struct evidence_config *cfg, struct sb_err *err)
{
	(void)cfg;
	err_set(err, SB_EUSAGE, "this sbinject was built without BPF");
	err_hint(err, "it needs clang and libbpf where it is built (scripts/deps.sh uprobe), then "
		      "make again");
	return NULL;
}

void evidence_bpf_close(struct evidence_bpf *b)
{
	(void)b;
}

void evidence_bpf_add(struct evidence_bpf *b, pid_t pid)
{
	(void)b;
	(void)pid;
}

const char *evidence_bpf_unknown(const struct evidence_bpf *b, enum evidence_counter counter)
{
	(void)b;
	(void)counter;
	return "this sbinject was built without BPF";
}

uint64_t evidence_bpf_lost(const struct evidence_bpf *b)
{
	(void)b;
	return 0;
}

void evidence_bpf_take(struct evidence_bpf *b, struct evidence_reading *r)
{
	(void)b;
	(void)r;
}

void evidence_bpf_pauses(struct evidence_bpf *b, uint64_t until_ns, size_t most,
			 evidence_pause_fn *fn, void *ctx)
{
	(void)b;
	(void)until_ns;
	(void)most;
	(void)fn;
	(void)ctx;
}

bool evidence_bpf_stack(const struct evidence_bpf *b, size_t number,
			struct evidence_stack_copy *out)
{
	(void)b;
	(void)number;
	(void)out;
	return false;
}
