/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef SB_EVIDENCE_ROWS_BPF_H
#define SB_EVIDENCE_ROWS_BPF_H

/* The maps that all programs of the evidence share, by their names, and the row of the running
 * thread. Only for programs that run in the kernel. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "evidence-abi.h"

struct task_struct;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32); /* the index of its row */
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, EVIDENCE_ROWS);
	__type(key, __u32);
	__type(value, struct evidence_row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct evidence_control);
} control SEC(".maps");

static const __u32 first = 0;

/* 0: the running thread is not watched. */
static __always_inline __u32 row_number(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u32 *index = bpf_task_storage_get(&tasks, task, 0, 0);

	return index ? *index : 0;
}

static __always_inline struct evidence_row *row_of_caller(void)
{
	__u32 at = row_number();

	return at ? bpf_map_lookup_elem(&rows, &at) : 0;
}

/* As how many a frequent event counts; 0: it is left out. Chosen at random: of what a program does
 * in turns, each Nth event could always be the same turn. */
static __always_inline __u64 weight_of_event(void)
{
	const struct evidence_control *c = bpf_map_lookup_elem(&control, &first);

	if (!c || c->sample <= 1)
		return 1;
	return bpf_get_prandom_u32() % c->sample ? 0 : c->sample;
}

#endif
