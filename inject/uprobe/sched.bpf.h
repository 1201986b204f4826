/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef SB_UPROBE_SCHED_BPF_H
#define SB_UPROBE_SCHED_BPF_H

/*
 * For kernel.bpf.c: the runs of a device's interrupt handlers, and the times that threads are
 * without a processor. Both begin and end at two tracepoints.
 *
 * An interrupt is of no process, whatever thread it interrupts: it is counted in row 0. Handlers do
 * not interrupt each other on one processor.
 *
 * A thread's time off the processor begins as it leaves it, in its own context, and ends in the
 * context of whatever thread leaves the processor to it.
 */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct irqaction {
	const char *name;
};
#pragma clang attribute pop

/* include/linux/sched.h: the same in every Linux from 4.14 on. */
#define STATE_SLEEPS   0x0001 /* TASK_INTERRUPTIBLE */
#define STATE_STOPPED  0x000c /* __TASK_STOPPED, __TASK_TRACED */
#define STATE_DEAD     0x0080 /* TASK_DEAD: it never returns */
#define STATE_IS_WOKEN 0x0200 /* TASK_WAKING: what it has waited for is known no more */

/* The handler that runs on this processor. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct call);
} handlers SEC(".maps");

struct away {
	__u64 start;
	__u64 reason;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct away);
} away SEC(".maps");

/* ---- interrupts: (irq, action), (irq, action, result) ---- */

SEC("raw_tp")
int iqenter(struct bpf_raw_tracepoint_args *ctx)
{
	const struct irqaction *action = (const void *)ctx->args[1];
	__u32 at = 0, target = setting.target;
	struct uprobe_target *t = bpf_map_lookup_elem(&targets, &target);
	struct call *call = bpf_map_lookup_elem(&handlers, &at);
	char name[KERNEL_DEVICE] = {};

	if (!t || t->state == UPROBE_OFF || !call)
		return 0;
	bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(action, name));
	if (!is_named(name) || !count_apart(target) || !setting.timed)
		return 0;
	call->value[KERNEL_INTERRUPT_NUMBER] = (__u32)ctx->args[0];
	call->value[KERNEL_INTERRUPT_CPU] = bpf_get_smp_processor_id();
	__builtin_memcpy(&call->value[KERNEL_INTERRUPT_NAME], name, sizeof(name));
	stamp(call);
	return 0;
}

SEC("raw_tp")
int iqleave(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 at = 0;
	struct call *call = bpf_map_lookup_elem(&handlers, &at);

	/* Of several handlers of one number, each begins and ends by itself. */
	if (!call || !call->start || call->value[KERNEL_INTERRUPT_NUMBER] != (__u32)ctx->args[0])
		return 0;
	now -= call->start;
	call->value[KERNEL_INTERRUPT_RESULT] = (__u32)ctx->args[2];
	ended(call, now, OF_INTERRUPT, 0);
	call->start = 0;
	return 0;
}

/* ---- switches: (preempt, previous, next, ...) ---- */

static __always_inline __u64 reason_of(__u32 state)
{
	if (!state)
		return KERNEL_OFFCPU_RUNNABLE;
	if (state & (STATE_SLEEPS | STATE_IS_WOKEN))
		return KERNEL_OFFCPU_SLEEPS;
	return state & STATE_STOPPED ? KERNEL_OFFCPU_STOPPED : KERNEL_OFFCPU_WAITS;
}

/* The running thread leaves. One that is preempted does not wait yet, whatever its state. */
static __always_inline void leaves(struct task_struct *task, bool preempted)
{
	__u32 state = preempted ? 0 : BPF_CORE_READ(task, __state);
	char name[KERNEL_DEVICE] = {};
	struct away *a;

	if (state & STATE_DEAD || !is_concerned())
		return;
	bpf_get_current_comm(name, sizeof(name));
	if (!is_named(name) || !begins() || !setting.timed)
		return;
	a = bpf_task_storage_get(&away, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!a)
		return;
	a->reason = reason_of(state);
	a->start = bpf_ktime_get_ns();
}

static __always_inline void returns(struct task_struct *task)
{
	struct away *a = bpf_task_storage_get(&away, task, 0, 0);
	struct call call = {};
	__u64 now;

	if (!a || !a->start)
		return;
	now = bpf_ktime_get_ns();
	call.start = a->start;
	call.value[KERNEL_OFFCPU_REASON] = a->reason;
	a->start = 0;
	ended(&call, now - call.start, OF_TASK, task);
}

SEC("tp_btf")
int switched(__u64 *ctx)
{
	struct task_struct *previous = (void *)ctx[1], *next = (void *)ctx[2];

	leaves(previous, ctx[0]);
	returns(next);
	return 0;
}

#endif
