/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The part of the uprobe backend that runs in the kernel: counts hits, spins, and keeps the set of
 * processes to do so for. Built by clang for BPF, with relocations against the running kernel's
 * types (CO-RE), and embedded in sbinject.
 *
 * Another thread on the same processor may preempt programs of uprobes since Linux 6.0, so
 * additions to counters are atomic although every processor has its own. A spin can neither be
 * killed nor, on most kernels, preempted: hence UPROBE_DELAY_MAX.
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

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

static const struct uprobe_counts none;

/* Set by the loader. */
__u32 ns_level = 0; /* of the loader's pid namespace; pids are as seen there */
__u64 ns_own = 0;
__u32 inherit = 1;
__u64 cost_ns[UPROBE_CLASSES + 1] = {}; /* the last stays 0: for the measurement */

/* Read by the loader. */
__u32 next_row = 1;
__u64 events_lost = 0, hits_lost = 0;

/* A process's number in the loader's namespace; 0: it has none there. */
static __always_inline __u32 pid_of(const struct task_struct *task)
{
	const struct task_struct *leader;
	const struct pid *pid;
	const char *number;
	struct upid upid = {};

	if (!ns_level)
		return BPF_CORE_READ(task, tgid);
	leader = BPF_CORE_READ(task, group_leader);
	pid = BPF_CORE_READ(leader, thread_pid);
	if (BPF_CORE_READ(pid, level) < ns_level)
		return 0;
	number = (const char *)pid + bpf_core_field_offset(struct pid, numbers) +
		 (__u64)ns_level * bpf_core_type_size(struct upid);
	bpf_core_read(&upid.nr, sizeof(upid.nr), &((const struct upid *)number)->nr);
	bpf_core_read(&upid.ns, sizeof(upid.ns), &((const struct upid *)number)->ns);
	return (__u64)upid.ns == ns_own ? (__u32)upid.nr : 0;
}

static __always_inline __u32 own_pid(void)
{
	if (!ns_level)
		return (__u32)(bpf_get_current_pid_tgid() >> 32);
	return pid_of((const struct task_struct *)bpf_get_current_task());
}

/* Finds the loader's namespace: run once, by the loader itself. */
SEC("raw_tp/sched_process_exec")
int find_namespace(void *ctx)
{
	const struct task_struct *task = (const void *)bpf_get_current_task();
	const struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	const char *number = (const char *)pid + bpf_core_field_offset(struct pid, numbers) +
			     (__u64)level * bpf_core_type_size(struct upid);
	struct pid_namespace *ns = 0;

	bpf_core_read(&ns, sizeof(ns), &((const struct upid *)number)->ns);
	ns_own = (__u64)ns;
	ns_level = level;
	return 0;
}

static __always_inline void tell(__u32 kind, __u32 pid, const struct uprobe_proc *p, __u32 parent)
{
	struct uprobe_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		__sync_fetch_and_add(&events_lost, 1);
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

/* raw tracepoint: (parent, child) */
SEC("raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct *parent = (const void *)ctx->args[0];
	const struct task_struct *child = (const void *)ctx->args[1];
	struct uprobe_proc made = {}, *from;
	__u32 pid;

	if (!inherit || BPF_CORE_READ(parent, tgid) == BPF_CORE_READ(child, tgid))
		return 0;
	pid = pid_of(parent);
	from = bpf_map_lookup_elem(&procs, &pid);
	if (!from || !from->roots)
		return 0;
	pid = pid_of(child);
	made.roots = from->roots;
	made.generation = 0;
	made.row = __sync_fetch_and_add(&next_row, 1);
	if (pid && !bpf_map_update_elem(&procs, &pid, &made, BPF_ANY))
		tell(UPROBE_EVENT_FORK, pid, &made, from->row);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 pid = own_pid();
	struct uprobe_proc *p = bpf_map_lookup_elem(&procs, &pid);

	if (!p)
		return 0;
	p->generation++;
	p->row = __sync_fetch_and_add(&next_row, 1);
	tell(UPROBE_EVENT_EXEC, pid, p, 0);
	return 0;
}

/* Every thread passes here; the last one ends the process. */
SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct *task = (const void *)ctx->args[0];
	__u32 pid = own_pid();
	struct uprobe_proc *p = bpf_map_lookup_elem(&procs, &pid);

	if (!p || BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	tell(UPROBE_EVENT_EXIT, pid, p, 0);
	bpf_map_delete_elem(&procs, &pid);
	return 0;
}

/* The first hit of a process in no tree, for a target of all processes. */
static __always_inline struct uprobe_proc *meet(__u32 pid)
{
	struct uprobe_proc made = { .row = __sync_fetch_and_add(&next_row, 1) };

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

struct spin {
	struct uprobe_target *target;
	__u64 start, want, spent;
	__u64 cut;
};

static long spin_once(__u32 i, struct spin *s)
{
	s->spent = bpf_ktime_get_ns() - s->start;
	if (s->spent >= s->want)
		return 1;
	s->cut = *(volatile __u32 *)&s->target->state != UPROBE_DELAY;
	return s->cut;
}

static __always_inline __u32 bucket_of(__u64 excess)
{
	__u64 v = excess >> 2;
	__u32 e = 0;

	if (v < 4)
		return (__u32)v;
	for (__u32 step = 16; step; step >>= 1) {
		if (v >> (e + step))
			e += step;
	}
	return (e - 1) * 4 + ((v >> (e - 2)) & 3);
}

static __always_inline void note(struct uprobe_counts *c, const struct spin *s, __u64 asked,
				 __u64 cost)
{
	/* As in the stub: an interruption is no delay, and no residual outlives a hit. */
	__u64 over = s->spent > s->want + UPROBE_OVERRUN_NS ? s->spent - s->want : 0;
	__u64 given = s->spent - over;
	__u32 b = bucket_of(given > asked ? given - asked : 0);

	if (s->spent + cost > c->max_ns)
		c->max_ns = s->spent + cost;
	if (s->cut) {
		__sync_fetch_and_add(&c->cuts, 1);
		__sync_fetch_and_add(&c->cut_ns, s->spent + cost);
		return;
	}
	__sync_fetch_and_add(&c->injected_ns, given + cost);
	__sync_fetch_and_add(&c->overrun_ns, over);
	c->residual_ns += (__s64)given - (__s64)asked;
	if (b < UPROBE_BUCKETS)
		__sync_fetch_and_add(&c->bucket[b], 1);
}

/* asked: the time to spend between the two readings of the clock. */
static __always_inline void delay(struct uprobe_target *t, struct uprobe_counts *c, __u64 start,
				  __u64 cost)
{
	__u64 delay_ns = t->delay_ns < UPROBE_DELAY_MAX ? t->delay_ns : UPROBE_DELAY_MAX;
	__u64 asked = delay_ns > cost ? delay_ns - cost : 0;
	struct spin s = { .target = t, .start = start, .want = asked };
	__s64 owed = c->residual_ns, most = (__s64)(asked / 2);

	if (owed > most)
		owed = most;
	if (owed < -most)
		owed = -most;
	s.want -= owed;
	bpf_loop(1 << 23, spin_once, &s, 0);
	note(c, &s, asked, cost);
}

static __always_inline int hit(void *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), start = 0, hits;
	__u32 index = (__u32)cookie, kind = (__u32)(cookie >> UPROBE_COOKIE_BITS), pid;
	struct uprobe_target *t = bpf_map_lookup_elem(&targets, &index);
	struct uprobe_key key = { .target = index };
	struct uprobe_counts *c;
	struct uprobe_proc *p;

	if (!t || t->state == UPROBE_OFF)
		return 0;
	if (t->state == UPROBE_DELAY)
		start = bpf_ktime_get_ns();
	pid = own_pid();
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
	if (!c) {
		__sync_fetch_and_add(&hits_lost, 1);
		return 0;
	}
	hits = __sync_fetch_and_add(&c->hits, 1) + 1;
	if (start && kind <= UPROBE_NO_CLASS && (t->every <= 1 || hits % t->every == 0))
		delay(t, c, start, cost_ns[kind]);
	return 0;
}

SEC("uprobe")
int on_hit(void *ctx)
{
	return hit(ctx);
}

/* The same, for places that are registered together. */
SEC("uprobe")
int on_hits(void *ctx)
{
	return hit(ctx);
}

SEC("uprobe")
int on_doorbell(void *ctx)
{
	__u32 pid = own_pid();
	struct uprobe_proc *p = bpf_map_lookup_elem(&procs, &pid);

	if (p && p->roots)
		tell(UPROBE_EVENT_BELL, pid, p, 0);
	return 0;
}

/* GPL-compatible, as some of the helpers require. */
char _license[] SEC("license") = "Dual MIT/GPL";
