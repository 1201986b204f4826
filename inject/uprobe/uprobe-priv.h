/* SPDX-License-Identifier: MIT */
#ifndef SB_UPROBE_PRIV_H
#define SB_UPROBE_PRIV_H

#include "uprobe.h"

/* Shared by the files of this folder only. */
struct btf;
struct bpf_link;
struct bpf_object;
struct bpf_program;
struct ring_buffer;

enum { TREE_PROGRAMS = 3, SECTIONS = 4 };

struct uprobes {
	struct bpf_object *obj;
	struct bpf_program *on_hit, *on_hits, *on_doorbell;
	struct bpf_link *tree[TREE_PROGRAMS];
	struct uprobe_link {
		struct bpf_link *perf; /* one place */
		int multi;	       /* many, a descriptor; 0 none */
	} * link;
	size_t n_links;
	struct ring_buffer *ring;
	int procs, counts; /* descriptors of maps */
	struct uprobe_target *targets;
	size_t targets_size;
	uint32_t n_targets; /* the last one is probe_cost()'s */
	struct {
		const char *name;
		void *at;
		size_t size;
	} section[SECTIONS];		/* of the program's variables */
	struct uprobe_numbers *numbers; /* shared with the programs */
	size_t numbers_size;
	uint32_t *inherit;
	uint64_t *cost_ns;
	bool measured[UPROBE_CLASSES];
	struct uprobe_counts *percpu; /* buffer to read into */
	int cpus;
	uprobes_event_fn *each;
	void *each_ctx;
	struct kernel_place *kernel; /* kernel.c */
	size_t n_kernel;
	int spans; /* the ring of the calls that are recorded, a descriptor; 0: none */
};

/* place.c. uprobes_link(): makes space for a link, returns its index; one place: 0 or errno. */
size_t uprobes_link(struct uprobes *u);
int uprobes_place(struct uprobes *u, struct bpf_program *prog, const char *path, uint64_t offset,
		  uint64_t cookie, size_t *id);
void uprobes_unwatch(struct uprobes *u, pid_t pid); /* uprobe.c */

/* variable.c: the section of an object that holds a global variable, and its offset there. */
bool uprobes_variable(const struct btf *btf, const char *name, const char **section,
		      uint32_t *offset);

void uprobes_kernel_close(struct uprobes *u); /* kernel.c */

/*
 * cost.c: the cost of a hit beyond what the program itself can measure, for a first instruction of
 * this kind. 0 where it cannot be measured on this machine.
 */
void probe_cost(struct uprobes *u, unsigned int kind, uint64_t *ns);

#endif
