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
#include "tree.bpf.h"

/* Set by the loader. */
__u32 inherit = 1;
__u64 cost_ns[UPROBE_CLASSES + 1] = {}; /* the last stays 0: for the measurement */

/* Finds the loader's namespace: run once, by the loader itself. */
SEC("raw_tp/sched_process_exec")
int find_namespace(void *ctx)
{
	const struct task_struct *task = (const void *)bpf_get_current_task();
	const struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	const char *number = (const char *)pid + bpf_core_field_offset(struct pid, numbers) +
			     (__u64)level * bpf_core_type_size(struct upid);
	struct uprobe_numbers *n = numbers_of();
	struct pid_namespace *ns = 0;

	if (!n)
		return 0;
	bpf_core_read(&ns, sizeof(ns), &((const struct upid *)number)->ns);
	n->ns_own = (__u64)ns;
	n->ns_level = level;
	return 0;
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
	made.row = new_row();
	if (!pid)
		return 0;
	if (!bpf_map_update_elem(&procs, &pid, &made, BPF_ANY))
		tell(UPROBE_EVENT_FORK, pid, &made, from->row);
	else
		lose_hit(); /* one at least */
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
	p->row = new_row();
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
	__u32 index = (__u32)cookie, kind = (__u32)(cookie >> UPROBE_COOKIE_BITS);
	struct uprobe_target *t = bpf_map_lookup_elem(&targets, &index);
	struct uprobe_counts *c;

	if (!t || t->state == UPROBE_OFF)
		return 0;
	if (t->state == UPROBE_DELAY)
		start = bpf_ktime_get_ns();
	c = wanted(t, index);
	if (!c)
		return 0;
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
