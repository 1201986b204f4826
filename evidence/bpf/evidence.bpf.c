/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The part of the evidence that runs in the kernel: what each watched thread does, at each switch
 * and each wakeup. Built by clang for BPF, with relocations against the running kernel's types
 * (CO-RE), and embedded in sbinject.
 *
 * Nothing runs at a system call: the registers that the kernel saved at its entry tell at the
 * switch which call the thread is in. A thread that nothing watches costs one look at its
 * task-local storage.
 *
 * Changes of one row never overlap: the scheduler orders the switches and wakeups of a thread.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "evidence-abi.h"

#define PF_KTHREAD 0x00200000
#define FILE_TYPE  0170000
#define SOCKET	   0140000

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
struct inode {
	unsigned short i_mode;
};
struct file {
	struct inode *f_inode;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct restart_block {
	void *fn;
};
struct task_struct {
	struct restart_block restart_block;
	int pid, tgid, on_cpu;
	unsigned int flags, __state;
	unsigned int in_iowait : 1;
	unsigned long min_flt, maj_flt;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct files_struct *files;
};
struct pt_regs;
struct pt_regs___x86 {
	unsigned long orig_ax, di;
};
struct pt_regs___arm64 {
	unsigned long regs[31];
	int syscallno;
	unsigned long orig_x0;
};
struct bpf_iter_meta;
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
#pragma clang attribute pop

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

/* Rows of threads that have ended. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, EVIDENCE_ROWS);
	__type(value, __u32);
} spare SEC(".maps");

#define ORDERED() __asm__ volatile("" : : : "memory")

static const __u32 first = 0;

static __always_inline struct evidence_row *row_of(struct task_struct *task)
{
	__u32 *index;

	if (task->flags & PF_KTHREAD)
		return 0;
	index = bpf_task_storage_get(&tasks, task, 0, 0);
	return index ? bpf_map_lookup_elem(&rows, index) : 0;
}

static __always_inline void enter(struct evidence_row *r, __u32 state, __u64 now)
{
	__u32 was = r->state & (EVIDENCE_STATES - 1);

	if (r->since && now > r->since)
		r->ns[was] += now - r->since;
	r->since = now;
	r->state = state;
	r->entered[state & (EVIDENCE_STATES - 1)]++;
}

static __always_inline void begin(struct evidence_row *r)
{
	r->seq++;
	ORDERED();
}

static __always_inline void end(struct evidence_row *r)
{
	ORDERED();
	r->seq++;
}

/* ---- why a thread is off the processor ---- */

struct call {
	long number; /* negative: an exception */
	__u64 arg;
};

static __always_inline struct call call_of(struct task_struct *task)
{
	const void *regs = (const void *)bpf_task_pt_regs(task);
	const struct pt_regs___x86 *x86 = regs;
	const struct pt_regs___arm64 *arm = regs;
	struct call call = { .number = -1 };

	if (bpf_core_field_exists(x86->orig_ax)) {
		call.number = (long)x86->orig_ax;
		call.arg = x86->di;
	} else if (bpf_core_field_exists(arm->syscallno)) {
		call.number = arm->syscallno;
		call.arg = arm->orig_x0;
	}
	return call;
}

static __always_inline int is_socket(struct task_struct *task, __u64 fd)
{
	struct files_struct *files = task->files;
	struct file *file = 0;
	struct fdtable *fdt;

	if (!files)
		return 0;
	fdt = files->fdt;
	if (fd >= fdt->max_fds)
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), fdt->fd + fd);
	return file && (BPF_CORE_READ(file, f_inode, i_mode) & FILE_TYPE) == SOCKET;
}

/* What goes on after a signal, or a stop by a tracer. 0 where the kernel hides the addresses. */
extern const void hrtimer_nanosleep_restart __ksym __weak;
extern const void futex_wait_restart __ksym __weak;
extern const void do_restart_poll __ksym __weak;

static __always_inline __u32 restarted(struct task_struct *task)
{
	const void *fn = (const void *)task->restart_block.fn;

	if (fn == &futex_wait_restart)
		return EVIDENCE_STATE_FUTEX;
	if (fn == &do_restart_poll)
		return EVIDENCE_STATE_NETWORK;
	return fn == &hrtimer_nanosleep_restart ? EVIDENCE_STATE_SLEEP : EVIDENCE_STATE_OTHER;
}

static __always_inline __u32 reason_of(struct task_struct *task)
{
	const struct evidence_control *c = bpf_map_lookup_elem(&control, &first);
	struct call call = call_of(task);
	__u32 class;

	if (call.number < 0)
		return EVIDENCE_STATE_PAGE_FAULT;
	if (!c || call.number >= EVIDENCE_CALLS)
		return EVIDENCE_STATE_OTHER;
	class = c->class_of[call.number & (EVIDENCE_CALLS - 1)];
	if (class == EVIDENCE_BY_FILE)
		return is_socket(task, call.arg) ? EVIDENCE_STATE_NETWORK : EVIDENCE_STATE_IO;
	if (class == EVIDENCE_RESTARTED)
		return restarted(task);
	/* in_iowait: it waits for a device, whatever the call. */
	if (class == EVIDENCE_STATE_OTHER && BPF_CORE_READ_BITFIELD(task, in_iowait))
		return EVIDENCE_STATE_IO;
	return class;
}

/* ---- the scheduler ---- */

/* As the kernel counts its own nvcsw and nivcsw: a thread that sleeps has a state other than 0. */
static __always_inline void leave(struct evidence_row *r, struct task_struct *task, int wants,
				  __u64 now)
{
	__u32 state = wants ? reason_of(task) : EVIDENCE_STATE_RUN_QUEUE;

	begin(r);
	enter(r, state, now);
	if (wants)
		r->voluntary++;
	else
		r->involuntary++;
	end(r);
}

static __always_inline void arrive(struct evidence_row *r, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id();

	begin(r);
	enter(r, EVIDENCE_STATE_ON_CPU, now);
	if (r->cpu != cpu) {
		r->migrations += r->cpu != ~0u;
		r->cpu = cpu;
	}
	end(r);
}

/* (preempt, previous, next, state of the previous) */
SEC("tp_btf/sched_switch")
int on_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct evidence_row *out = row_of(prev), *in = row_of(next);
	__u64 now = 0;

	if (out) {
		now = bpf_ktime_get_ns();
		leave(out, prev, !(__u8)ctx[0] && (__u32)ctx[3], now);
	}
	if (in)
		arrive(in, now ? now : bpf_ktime_get_ns());
	return 0;
}

static __always_inline int wake(struct task_struct *task)
{
	struct evidence_row *r = row_of(task);

	if (!r)
		return 0;
	begin(r);
	r->wakeups++;
	if (r->state > EVIDENCE_STATE_RUN_QUEUE)
		enter(r, EVIDENCE_STATE_RUN_QUEUE, bpf_ktime_get_ns());
	end(r);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int on_wakeup(__u64 *ctx)
{
	return wake((void *)ctx[0]);
}

SEC("tp_btf/sched_wakeup_new")
int on_wakeup_new(__u64 *ctx)
{
	return wake((void *)ctx[0]);
}

/* ---- the set of threads ---- */

/* A number of a thread in the loader's namespace; 0: it has none there. */
static __always_inline __u32 number_of(const struct task_struct *task,
				       const struct evidence_control *c)
{
	const struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct upid upid = {};
	const char *number;

	if (!pid || BPF_CORE_READ(pid, level) < c->ns_level)
		return 0;
	number = (const char *)pid + bpf_core_field_offset(struct pid, numbers) +
		 (__u64)c->ns_level * bpf_core_type_size(struct upid);
	bpf_core_read(&upid.nr, sizeof(upid.nr), &((const struct upid *)number)->nr);
	bpf_core_read(&upid.ns, sizeof(upid.ns), &((const struct upid *)number)->ns);
	return (__u64)upid.ns == c->ns_own ? (__u32)upid.nr : 0;
}

static __always_inline void learn_namespace(const struct task_struct *task,
					    struct evidence_control *c)
{
	const struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	const char *number = (const char *)pid + bpf_core_field_offset(struct pid, numbers) +
			     (__u64)level * bpf_core_type_size(struct upid);
	struct pid_namespace *ns = 0;

	bpf_core_read(&ns, sizeof(ns), &((const struct upid *)number)->ns);
	c->ns_own = (__u64)ns;
	c->ns_level = level;
}

/* A row for a thread, in the storage of the task; NULL: it has one, or there is none. */
static __always_inline struct evidence_row *watch(struct task_struct *task,
						  struct evidence_control *c)
{
	struct evidence_row *r;
	__u32 index = 0;

	if (bpf_map_pop_elem(&spare, &index))
		index = __sync_fetch_and_add(&c->next_row, 1);
	r = index < EVIDENCE_ROWS ? bpf_map_lookup_elem(&rows, &index) : 0;
	if (!r) {
		__sync_fetch_and_add(&c->threads_lost, 1);
		return 0;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->tid = number_of(task, c);
	r->tgid = number_of(task->group_leader, c);
	r->cpu = ~0u;
	r->began = bpf_ktime_get_ns();
	if (!bpf_task_storage_get(&tasks, task, &index, BPF_LOCAL_STORAGE_GET_F_CREATE)) {
		__sync_fetch_and_add(&c->threads_lost, 1);
		bpf_map_push_elem(&spare, &index, 0);
		return 0;
	}
	return r;
}

/* (parent, child): before the child's first wakeup */
SEC("tp_btf/sched_process_fork")
int on_fork(__u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	struct evidence_control *c = bpf_map_lookup_elem(&control, &first);
	struct evidence_row *r;

	if (!c || !row_of(parent) || (!c->children && parent->tgid != child->tgid))
		return 0;
	r = watch(child, c);
	if (r) {
		r->state = EVIDENCE_STATE_OTHER;
		r->since = r->began;
	}
	return 0;
}

#define FOLD(member) __sync_fetch_and_add(&sum->member, r->member)

static __always_inline void fold(struct evidence_row *sum, struct evidence_row *r)
{
	for (int i = 0; i < EVIDENCE_STATES; i++) {
		FOLD(ns[i]);
		FOLD(entered[i]);
	}
	FOLD(voluntary);
	FOLD(involuntary);
	FOLD(wakeups);
	FOLD(migrations);
	__sync_fetch_and_add(&sum->minor, r->minor - r->minor_first);
	__sync_fetch_and_add(&sum->major, r->major - r->major_first);
}

SEC("tp_btf/sched_process_exit")
int on_exit(__u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct evidence_control *c = bpf_map_lookup_elem(&control, &first);
	struct evidence_row *sum = bpf_map_lookup_elem(&rows, &first), *r;
	__u32 *index, mine;

	index = bpf_task_storage_get(&tasks, task, 0, 0);
	if (!index || !c || !sum)
		return 0;
	mine = *index;
	r = bpf_map_lookup_elem(&rows, &mine);
	if (!r)
		return 0;
	/* No switch may touch the row of the next thread. */
	bpf_task_storage_delete(&tasks, task);
	__sync_fetch_and_add(&c->folds_begun, 1);
	enter(r, EVIDENCE_STATE_OTHER, bpf_ktime_get_ns());
	r->entered[EVIDENCE_STATE_OTHER]--;
	r->minor = task->min_flt;
	r->major = task->maj_flt;
	fold(sum, r);
	r->tid = 0;
	__sync_fetch_and_add(&c->folds_done, 1);
	bpf_map_push_elem(&spare, &mine, 0);
	return 0;
}

/* ---- the iterator over tasks ---- */

static __always_inline __u32 state_of(struct task_struct *task)
{
	if (task->on_cpu)
		return EVIDENCE_STATE_ON_CPU;
	return task->__state ? reason_of(task) : EVIDENCE_STATE_RUN_QUEUE;
}

/* The first state of a thread that already lives. An event that comes first knows better. */
static __always_inline void guess(struct evidence_row *r, struct task_struct *task)
{
	__u32 state = state_of(task);

	if (*(volatile __u64 *)&r->since)
		return;
	r->state = state;
	r->since = r->began;
}

static __always_inline void add(struct task_struct *task, struct evidence_control *c)
{
	struct evidence_row *r = row_of(task) ? 0 : watch(task, c);

	if (!r)
		return;
	r->minor = r->minor_first = task->min_flt;
	r->major = r->major_first = task->maj_flt;
	guess(r, task);
}

SEC("iter/task")
int each_task(struct bpf_iter__task *ctx)
{
	struct evidence_control *c = bpf_map_lookup_elem(&control, &first);
	struct task_struct *task = ctx->task;
	struct evidence_row *r;

	if (!task || !c)
		return 0;
	if (c->mode == EVIDENCE_MODE_NS) {
		learn_namespace(task, c);
	} else if (c->mode == EVIDENCE_MODE_ADD) {
		add(task, c);
	} else if (c->mode == EVIDENCE_MODE_NOW) {
		r = row_of(task);
		if (r) {
			r->minor = task->min_flt;
			r->major = task->maj_flt;
		}
	}
	return 0;
}

/* GPL-compatible, as some of the helpers require. */
char _license[] SEC("license") = "Dual MIT/GPL";
