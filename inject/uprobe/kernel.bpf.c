/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What runs at one function or tracepoint of the kernel, or at two that begin and end something:
 * counts, how long the calls took, their
 * arguments. Nothing is ever delayed here. An object holds the same programs for each mechanism,
 * of which the loader takes those that it attaches.
 *
 * A call is found again at its return by its thread: in storage of the task, which the kernel frees
 * with it. What is nested deeper than KERNEL_DEPTH, and a return whose entry was not seen, is not
 * timed. Programs may be preempted: additions are atomic.
 */
#include "tree.bpf.h"
#include <linux/ptrace.h>
#include <bpf/bpf_tracing.h>
#include <stdbool.h>
#include "kernel-abi.h"

struct call {
	__u64 start;
	__u64 value[KERNEL_VALUES];
};

struct calls {
	__u32 depth, unused; /* calls in progress, those without a place included */
	struct call call[KERNEL_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct calls);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kernel_times);
} times SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* the loader has another one */
} spans SEC(".maps");

const volatile struct kernel_setting setting = {};

#define KTHREAD 0x00200000 /* PF_KTHREAD */
#define WAKE_AT 4	   /* the reader is woken where less than one in so many bytes is free */

/* ---- values ---- */

/* What a register holds, as a value of its type. */
static __always_inline __u64 extend(__u64 raw, __u32 i)
{
	__u32 left = 64 - setting.bits[i];

	raw = raw >> setting.shift[i] << left;
	return setting.sign[i] ? (__u64)((__s64)raw >> left) : raw >> left;
}

static __always_inline void add_sum(struct kernel_times *t, __u32 i, __u64 v)
{
	__u64 before;

	if (setting.sign[i] && (__s64)v < 0)
		return;
	__sync_fetch_and_add(&t->summed[i], 1);
	if (t->sum[i] == ~0ull)
		return;
	before = __sync_fetch_and_add(&t->sum[i], v);
	if (before + v < before)
		t->sum[i] = ~0ull;
}

/* ---- the end of a call ---- */

static __always_inline __u32 bucket_of(__u64 ns)
{
	__u64 v = ns;
	__u32 e = 0;

	if (ns < 32)
		return (__u32)ns;
	for (__u32 step = 32; step; step >>= 1) {
		if (v >> step) {
			v >>= step;
			e += step;
		}
	}
	e = (e - 4) * 32 + (ns >> (e - 5) & 31);
	return e < KERNEL_BUCKETS ? e : KERNEL_BUCKETS - 1;
}

/* Another thread may do the same on this processor: a few tries are enough. */
static __always_inline void raise(__u64 *most, __u64 v)
{
	for (int i = 0; i < 8; i++) {
		__u64 old = *(volatile __u64 *)most;

		if (old >= v || __sync_val_compare_and_swap(most, old, v) == old)
			return;
	}
}

/* Whose call it is: of the running thread, of another one, of no process. */
enum whose { OF_CURRENT, OF_TASK, OF_INTERRUPT };

static __always_inline void sign(struct kernel_span *s, enum whose whose,
				 const struct task_struct *task)
{
	const struct uprobe_numbers *n = numbers_of();

	s->pid = s->tid = 0;
	__builtin_memset(s->comm, 0, sizeof(s->comm));
	if (whose == OF_CURRENT) {
		s->pid = own_pid();
		s->tid = own_tid();
		bpf_get_current_comm(s->comm, sizeof(s->comm));
	} else if (whose == OF_TASK) {
		s->pid = pid_of(task);
		s->tid = n && n->ns_level ? number_of(n, BPF_CORE_READ(task, thread_pid)) :
					    (__u32)BPF_CORE_READ(task, pid);
		bpf_core_read_str(s->comm, sizeof(s->comm), &task->comm);
	}
}

static __always_inline void record(struct kernel_times *t, const struct call *call, __u64 ns,
				   enum whose whose, const struct task_struct *task)
{
	__u64 room = bpf_ringbuf_query(&spans, BPF_RB_RING_SIZE);
	__u64 used = bpf_ringbuf_query(&spans, BPF_RB_AVAIL_DATA);
	__u32 n = setting.n_values;
	struct kernel_span *s;

	if (ns < setting.min_ns) {
		__sync_fetch_and_add(&t->filtered, 1);
		return;
	}
	s = bpf_ringbuf_reserve(&spans, KERNEL_SPAN_SIZE(n), 0);
	if (!s) {
		__sync_fetch_and_add(&t->lost, 1);
		return;
	}
	s->start_ns = call->start;
	s->dur_ns = ns;
	s->place = setting.place;
	s->unused = 0;
	sign(s, whose, task);
#pragma unroll
	for (__u32 i = 0; i < KERNEL_VALUES; i++)
		if (i < n)
			s->value[i] = call->value[i];
	__sync_fetch_and_add(&t->recorded, 1);
	bpf_ringbuf_submit(s, used > room / WAKE_AT ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

static __always_inline void ended(const struct call *call, __u64 ns, enum whose whose,
				  const struct task_struct *task)
{
	__u32 at = 0;
	struct kernel_times *t = bpf_map_lookup_elem(&times, &at);

	if (!t)
		return;
	__sync_fetch_and_add(&t->calls, 1);
	__sync_fetch_and_add(&t->ns, ns);
	raise(&t->most, ns);
	raise(&t->inv_least, ~ns);
	__sync_fetch_and_add(&t->bucket[bucket_of(ns)], 1);
#pragma unroll
	for (__u32 i = 0; i < KERNEL_VALUES; i++)
		if (i < setting.n_values && setting.sum[i])
			add_sum(t, i, call->value[i]);
	if (setting.record)
		record(t, call, ns, whose, task);
}

/* ---- the begin of a call ---- */

/* A quick look, before more is done for a call that may be of any process. */
static __always_inline bool is_concerned(void)
{
	__u32 target = setting.target, pid;
	const struct uprobe_target *t = bpf_map_lookup_elem(&targets, &target);
	const struct uprobe_proc *p;

	if (!t || t->state == UPROBE_OFF)
		return false;
	if (!t->need)
		return true;
	pid = own_pid();
	p = bpf_map_lookup_elem(&procs, &pid);
	return p && p->roots & t->need;
}

/* A thread of the kernel's own, or a processor that is idle. */
static __always_inline bool is_kthread(void)
{
	const struct task_struct *task = (const void *)bpf_get_current_task();

	return BPF_CORE_READ(task, flags) & KTHREAD;
}

/* A hit of no process. */
static __always_inline bool count_apart(__u32 target)
{
	struct uprobe_counts *c = counts_apart(target);

	if (c)
		__sync_fetch_and_add(&c->hits, 1);
	return c;
}

/* A hit that is wanted: it is counted. */
static __always_inline bool begins(void)
{
	__u32 target = setting.target;
	struct uprobe_target *t = bpf_map_lookup_elem(&targets, &target);
	struct uprobe_counts *c;

	if (!t || t->state == UPROBE_OFF)
		return false;
	if (setting.kthreads && is_kthread())
		return count_apart(target);
	c = wanted(t, target);
	if (c)
		__sync_fetch_and_add(&c->hits, 1);
	return c;
}

/* Where the running thread's next call goes; NULL: it cannot be timed. */
static __always_inline struct call *push(struct calls **of)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct calls *c = bpf_task_storage_get(&calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u32 depth;

	if (!c)
		return 0;
	depth = c->depth++;
	*of = c;
	return depth < KERNEL_DEPTH ? &c->call[depth] : 0;
}

/* The call that returns; NULL: its begin was not seen, or had no place. */
static __always_inline struct call *pop(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct calls *c = bpf_task_storage_get(&calls, task, 0, 0);
	__u32 depth;

	if (!c || !c->depth)
		return 0;
	depth = --c->depth;
	return depth < KERNEL_DEPTH ? &c->call[depth] : 0;
}

/* Takes the arguments that are recorded; ARGUMENT puts number n into raw. */
#define VALUES_OF(ARGUMENT)                                                         \
	_Pragma("unroll") for (__u32 i = 0; i < KERNEL_VALUES; i++)                 \
	{                                                                           \
		if (i < setting.n_values && setting.position[i] != KERNEL_RETURN) { \
			__u64 raw = 0;                                              \
			__u32 n = setting.position[i];                              \
			ARGUMENT;                                                   \
			call->value[i] = extend(raw, i);                            \
		}                                                                   \
	}

static __always_inline void returned(struct call *call, __u64 raw)
{
#pragma unroll
	for (__u32 i = 0; i < KERNEL_VALUES; i++)
		if (i < setting.n_values && setting.position[i] == KERNEL_RETURN)
			call->value[i] = extend(raw, i);
}

/* The last thing of an entry: the time spent here is not the call's. */
static __always_inline void stamp(struct call *call)
{
	call->start = bpf_ktime_get_ns();
}

/* ---- fentry and fexit ---- */

SEC("fentry")
int fenter(__u64 *ctx)
{
	struct calls *of;
	struct call *call;

	if (!begins() || !setting.timed)
		return 0;
	call = push(&of);
	if (!call)
		return 0;
	VALUES_OF(bpf_get_func_arg(ctx, n, &raw));
	stamp(call);
	return 0;
}

SEC("fexit")
int fleave(__u64 *ctx)
{
	__u64 now = bpf_ktime_get_ns(), raw = 0;
	struct call *call = pop();

	if (!call)
		return 0;
	bpf_get_func_ret(ctx, &raw);
	returned(call, raw);
	ended(call, now - call->start, OF_CURRENT, 0);
	return 0;
}

/* ---- kprobe and kretprobe ---- */

/* The load of an argument: a constant offset, as the kernel demands of its context. */
#define LOAD(CTX, OFFSET) asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(raw) : "r"(CTX), "i"(OFFSET))

#define REGISTER_OF(N)                                                            \
	case N - 1:                                                               \
		LOAD(regs, (unsigned long)&PT_REGS_PARM##N((struct pt_regs *)0)); \
		break

SEC("kprobe")
int kenter(struct pt_regs *regs)
{
	struct calls *of;
	struct call *call;

	if (!begins() || !setting.timed)
		return 0;
	call = push(&of);
	if (!call)
		return 0;
	VALUES_OF(switch (n) {
		REGISTER_OF(1);
		REGISTER_OF(2);
		REGISTER_OF(3);
		REGISTER_OF(4);
		REGISTER_OF(5);
	});
	stamp(call);
	return 0;
}

SEC("kretprobe")
int kleave(struct pt_regs *regs)
{
	__u64 now = bpf_ktime_get_ns();
	struct call *call = pop();

	if (!call)
		return 0;
	returned(call, PT_REGS_RC(regs));
	ended(call, now - call->start, OF_CURRENT, 0);
	return 0;
}

/* ---- a tracepoint ---- */

#define ARGUMENT_OF(N)            \
	case N:                   \
		LOAD(ctx, (N)*8); \
		break

/* An instant: it begins and ends at once. */
SEC("raw_tp")
int point(struct bpf_raw_tracepoint_args *ctx)
{
	struct call here = {}, *call = &here;

	if (!begins() || !setting.timed)
		return 0;
	VALUES_OF(switch (n) {
		ARGUMENT_OF(0);
		ARGUMENT_OF(1);
		ARGUMENT_OF(2);
		ARGUMENT_OF(3);
		ARGUMENT_OF(4);
		ARGUMENT_OF(5);
		ARGUMENT_OF(6);
		ARGUMENT_OF(7);
		ARGUMENT_OF(8);
		ARGUMENT_OF(9);
		ARGUMENT_OF(10);
	});
	stamp(call);
	ended(call, 0, OF_CURRENT, 0);
	return 0;
}

#include "ioctl.bpf.h"
#include "sched.bpf.h"

/* GPL-compatible, as some of the helpers require. */
char _license[] SEC("license") = "Dual MIT/GPL";
