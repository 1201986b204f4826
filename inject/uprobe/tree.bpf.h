/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef SB_UPROBE_TREE_BPF_H
#define SB_UPROBE_TREE_BPF_H

/*
 * The maps that the programs of uprobes and of the kernel's functions share, by their names: which
 * processes belong to which tree, the targets' settings, and the counts. Only for programs that run
 * in the kernel. Each target has programs of its own objects there; one of them may preempt another
 * on the same processor, so counters are atomic although every processor has its own.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "uprobe-abi.h"

/* Of the kernel's structures only the fields that are read; offsets are the running kernel's. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pid_namespace;
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[1];
};
typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
};
struct task_struct {
	int pid, tgid;
	unsigned int flags, __state;
	char comm[16];
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
};
#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set before loading */
	__type(key, __u32);
	__type(value, struct uprobe_target);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, UPROBE_MAX_ROWS);
	__type(key, __u32);
	__type(value, struct uprobe_proc);
} procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, UPROBE_MAX_ROWS);
	__type(key, struct uprobe_key);
	__type(value, struct uprobe_counts);
} counts SEC(".maps");

/* One element. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct uprobe_numbers);
} numbers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

static const struct uprobe_counts none;

static __always_inline struct uprobe_numbers *numbers_of(void)
{
	__u32 at = 0;

	return bpf_map_lookup_elem(&numbers, &at);
}

static __always_inline __u32 new_row(void)
{
	struct uprobe_numbers *n = numbers_of();

	return n ? __sync_fetch_and_add(&n->next_row, 1) : 0;
}

/* A number in the loader's namespace; 0: it has none there. */
static __always_inline __u32 number_of(const struct uprobe_numbers *n, const struct pid *pid)
{
	const char *number;
	struct upid upid = {};

	if (BPF_CORE_READ(pid, level) < n->ns_level)
		return 0;
	number = (const char *)pid + bpf_core_field_offset(struct pid, numbers) +
		 (__u64)n->ns_level * bpf_core_type_size(struct upid);
	bpf_core_read(&upid.nr, sizeof(upid.nr), &((const struct upid *)number)->nr);
	bpf_core_read(&upid.ns, sizeof(upid.ns), &((const struct upid *)number)->ns);
	return (__u64)upid.ns == n->ns_own ? (__u32)upid.nr : 0;
}

/* A process's number. */
static __always_inline __u32 pid_of(const struct task_struct *task)
{
	const struct uprobe_numbers *n = numbers_of();
	const struct task_struct *leader;

	if (!n || !n->ns_level)
		return BPF_CORE_READ(task, tgid);
	leader = BPF_CORE_READ(task, group_leader);
	return number_of(n, BPF_CORE_READ(leader, thread_pid));
}

static __always_inline __u32 own_pid(void)
{
	const struct uprobe_numbers *n = numbers_of();

	if (!n || !n->ns_level)
		return (__u32)(bpf_get_current_pid_tgid() >> 32);
	return pid_of((const struct task_struct *)bpf_get_current_task());
}

/* The running thread's number. */
static __always_inline __u32 own_tid(void)
{
	const struct uprobe_numbers *n = numbers_of();
	const struct task_struct *task;

	if (!n || !n->ns_level)
		return (__u32)bpf_get_current_pid_tgid();
	task = (const struct task_struct *)bpf_get_current_task();
	return number_of(n, BPF_CORE_READ(task, thread_pid));
}

static __always_inline void lose_hit(void)
{
	struct uprobe_numbers *n = numbers_of();

	if (n)
		__sync_fetch_and_add(&n->hits_lost, 1);
}

static __always_inline void note_apart(void)
{
	struct uprobe_numbers *n = numbers_of();

	if (n)
		__sync_fetch_and_add(&n->hits_apart, 1);
}

static __always_inline void tell(__u32 kind, __u32 pid, const struct uprobe_proc *p, __u32 parent)
{
	struct uprobe_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		struct uprobe_numbers *n = numbers_of();

		if (n)
			__sync_fetch_and_add(&n->events_lost, 1);
		return;
	}
	e->kind = kind;
	e->pid = pid;
	e->row = p->row;
	e->generation = p->generation;
	e->parent = parent;
	e->unused = 0;
	e->roots = p->roots;
	bpf_ringbuf_submit(e, 0);
}

/* The first hit of a process in no tree, for a target of all processes. */
static __always_inline struct uprobe_proc *meet(__u32 pid)
{
	struct uprobe_proc made = { .row = new_row() };

	if (!bpf_map_update_elem(&procs, &pid, &made, BPF_NOEXIST))
		tell(UPROBE_EVENT_FIRST, pid, &made, 0);
	return bpf_map_lookup_elem(&procs, &pid);
}

static __always_inline struct uprobe_counts *counts_of(const struct uprobe_key *key)
{
	struct uprobe_counts *c = bpf_map_lookup_elem(&counts, key);

	if (c)
		return c;
	bpf_map_update_elem(&counts, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&counts, key);
}

/* Counts of no process: the row 0, which no process has. NULL, and lost: there was no room. */
static __always_inline struct uprobe_counts *counts_apart(__u32 target)
{
	struct uprobe_key key = { .target = target };
	struct uprobe_counts *c = counts_of(&key);

	if (!c)
		lose_hit();
	return c;
}

/*
 * Is a hit of the running process wanted? Then its counts, made at its first hit, or those of no
 * process, where there is no memory at hand for its own. NULL: it is not wanted, or these are not
 * there either, which is counted as lost.
 */
static __always_inline struct uprobe_counts *wanted(const struct uprobe_target *t, __u32 target)
{
	struct uprobe_key key = { .target = target };
	struct uprobe_counts *c;
	struct uprobe_proc *p;
	__u32 pid = own_pid();

	p = bpf_map_lookup_elem(&procs, &pid);
	if (t->need && (!p || !(p->roots & t->need)))
		return 0;
	if (!t->need && p && p->roots >> UPROBE_SKIP_BIT & 1)
		return 0;
	if (!p)
		p = meet(pid);
	if (p)
		key.row = p->row;
	c = p ? counts_of(&key) : 0;
	if (c)
		return c;
	c = counts_apart(target);
	if (c)
		note_apart();
	return c;
}

#endif
