/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The part of the evidence that runs in the kernel: what each watched thread does, at each switch
 * and each wakeup. Built by clang for BPF, with relocations against the running kernel's types
 * (CO-RE), and embedded in sbinject.
 *
 * Nothing runs at a system call: the registers that the kernel saved at its entry tell at the
 * switch which call the thread is in.
 *
 * Where the kernel returns from functions by way of a thunk, as on processors that mispredict
 * returns, a helper costs 10 to 40 ns. So what runs at each switch reads plain memory: a thread's
 * row is found by a table of its own, and the clock is the scheduler's.
 *
 * Changes of one row never overlap: the scheduler orders the switches and wakeups of a thread.
 */
#include "rows.bpf.h"
#include "call.bpf.h"
#include <bpf/bpf_core_read.h>

#define FILE_TYPE 0170000
#define SOCKET	  0140000

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
struct rq {
	__u64 clock;
	int cpu;
};
struct cfs_rq {
	struct rq *rq;
};
struct sched_entity {
	struct cfs_rq *cfs_rq;
};
struct task_io_accounting {
	__u64 rchar, wchar, syscr, syscw, read_bytes, write_bytes;
};
struct task_struct {
	struct restart_block restart_block;
	int pid, tgid, on_cpu;
	__u64 self_exec_id;
	unsigned int __state;
	unsigned int in_iowait : 1;
	unsigned long min_flt, maj_flt;
	struct sched_entity se;
	struct task_io_accounting ioac;
	char comm[16];
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct files_struct *files;
};
struct bpf_iter_meta;
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
#pragma clang attribute pop

/*
 * The index of a row by the task, without a helper. A slot has the address of the task and the row.
 * (A thread's number would not do: exec() changes it.) Of two threads with one slot only the first
 * is here; CROWDED says that others are found by their storage.
 */
#define SLOTS	  65536
#define SLOT_ROW  (EVIDENCE_ROWS - 1)
#define CROWDED	  0x8000ull
#define SLOT_BITS 16

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} slots SEC(".maps");

/* The addresses that threads wait for; entry 0 is that of all others. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, EVIDENCE_FUTEXES);
	__type(key, __u32);
	__type(value, struct evidence_entry);
} futexes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, EVIDENCE_FUTEXES);
	__type(key, __u32);
	__type(value, struct evidence_stack);
} stacks SEC(".maps");

/* After an exec the addresses of a process are others. */
struct place {
	__u64 addr, exec_id;
	__u32 tgid, unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVIDENCE_FUTEXES);
	__type(key, struct place);
	__type(value, __u32);
} places SEC(".maps");

/* Of each processor: see now_of(). */
struct clock {
	__u64 at, offset, last, unused[5]; /* a cache line */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct clock);
} clocks SEC(".maps");

/* Rows of threads that have ended. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, EVIDENCE_ROWS);
	__type(value, __u32);
} spare SEC(".maps");

/* Does the program record each pause of a thread? Set before it is loaded: if not, none of it runs.
 */
const volatile __u32 records SEC(".rodata.records") = 0;

/* Their sizes are set before the program is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct evidence_ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct evidence_event);
} events SEC(".maps");

#define ORDERED() __asm__ volatile("" : : : "memory")

/* The verifier lets nothing be done with an address but this: the distance to another one. Tasks
 * are aligned to 64 bytes. */
static char origin;

static __always_inline __u64 slot_key(const struct task_struct *task)
{
	return (__u64)((const char *)task - &origin) >> 6 << SLOT_BITS;
}

static __always_inline __u64 *slot_of(__u64 key)
{
	__u32 at = (__u32)(key >> SLOT_BITS) * 0x9e3779b1u >> 16;

	return bpf_map_lookup_elem(&slots, &at);
}

static __always_inline void slot_take(struct task_struct *task, __u32 row)
{
	__u64 key = slot_key(task), *slot = slot_of(key), old;

	if (!slot)
		return;
	old = *(volatile __u64 *)slot;
	if (old >> SLOT_BITS ||
	    __sync_val_compare_and_swap(slot, old, key | (old & CROWDED) | row) != old)
		__sync_fetch_and_or(slot, CROWDED);
}

static __always_inline void slot_leave(struct task_struct *task)
{
	__u64 key = slot_key(task), *slot = slot_of(key);

	if (slot && *slot >> SLOT_BITS == key >> SLOT_BITS)
		__sync_fetch_and_and(slot, CROWDED);
}

/* By its storage: for a thread that has no slot of its own. */
static __always_inline __u32 row_stored(struct task_struct *task)
{
	__u32 *index = bpf_task_storage_get(&tasks, task, 0, 0);

	return index ? *index : 0;
}

static __always_inline struct evidence_row *row_of(struct task_struct *task)
{
	__u64 key = slot_key(task), *slot = slot_of(key), found;
	__u32 index = 0;

	if (!slot)
		return 0;
	found = *(volatile __u64 *)slot;
	if (found >> SLOT_BITS == key >> SLOT_BITS)
		index = found & SLOT_ROW;
	else if (found & CROWDED)
		index = row_stored(task);
	return index ? bpf_map_lookup_elem(&rows, &index) : 0;
}

/* ---- the clock ---- */

#define LOOK_NS (1u << 20)

/*
 * The distance of CLOCK_MONOTONIC to the clock of a run queue. A sample is late by what has passed
 * since that clock was read, so a smaller one is better; a larger one counts as far as the two
 * clocks can have gone apart since the last look (NTP: 500 millionths).
 */
static __always_inline void clock_look(struct clock *c, __u64 at)
{
	__u64 offset = bpf_ktime_get_ns() - at, most = (at - c->at) >> 10;
	__s64 more = (__s64)(offset - c->offset);

	c->offset = !c->at || more < 0 || (__u64)more < most ? offset : c->offset + most;
	c->at = at;
}

/*
 * CLOCK_MONOTONIC at an event of a thread in a run queue. A helper that reads the clock takes some
 * 90 ns on a virtual machine. The scheduler has just read its own, once for all that it does here;
 * it holds the queue's lock.
 */
static __always_inline __u64 now_of(const struct task_struct *task, __u32 *cpu)
{
	const struct rq *rq = 0;
	struct clock *c;
	__u64 at;

	if (!bpf_core_field_exists(task->se.cfs_rq) || !bpf_core_field_exists(rq->cpu)) {
		*cpu = bpf_get_smp_processor_id();
		return bpf_ktime_get_ns();
	}
	rq = task->se.cfs_rq->rq;
	at = rq->clock;
	*cpu = (__u32)rq->cpu;
	c = bpf_map_lookup_elem(&clocks, cpu);
	if (!c)
		return bpf_ktime_get_ns();
	if (at - c->at >= LOOK_NS)
		clock_look(c, at);
	at += c->offset;
	if (at > c->last) /* it stands still where a better distance would set it back */
		c->last = at;
	return c->last;
}

static __always_inline void spend(struct evidence_row *r, __u64 ns)
{
	__u32 was = r->state & (EVIDENCE_STATES - 1);

	r->ns[was] += ns;
	if (was == EVIDENCE_STATE_FUTEX)
		r->futex[r->slot & (EVIDENCE_SLOTS - 1)].ns += ns;
	if (!records || was == EVIDENCE_STATE_ON_CPU)
		return;
	if (was == EVIDENCE_STATE_RUN_QUEUE)
		r->pause.queue_ns += ns;
	else
		r->pause.ns += ns;
}

static __always_inline void enter(struct evidence_row *r, __u32 state, __u64 now)
{
	if (r->since && now > r->since)
		spend(r, now - r->since);
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

struct reason {
	__u32 state;
	__u64 futex; /* its address; 0: none, or several */
};

/* By probe reads: the cast of an address to a type is a function of Linux 6.2 and later, and libbpf
 * 1.1 ends the process where the kernel has none. */
static __always_inline unsigned short mode_at(struct file **at)
{
	struct file *file = 0;

	bpf_probe_read_kernel(&file, sizeof(file), at);
	return file ? BPF_CORE_READ(file, f_inode, i_mode) : 0;
}

static __always_inline int is_socket(struct task_struct *task, __u64 fd)
{
	struct files_struct *files = task->files;
	struct fdtable *fdt;

	if (!files)
		return 0;
	fdt = files->fdt;
	if (fd >= fdt->max_fds)
		return 0;
	return (mode_at(fdt->fd + fd) & FILE_TYPE) == SOCKET;
}

/* What goes on after a signal, or a stop by a tracer. 0 where the kernel hides the addresses. */
static __always_inline __u32 restarted(struct task_struct *task, const struct evidence_control *c)
{
	__u64 fn = (__u64)task->restart_block.fn;

	if (fn == c->restart.futex)
		return EVIDENCE_STATE_FUTEX;
	if (fn == c->restart.poll)
		return EVIDENCE_STATE_NETWORK;
	return fn == c->restart.nanosleep ? EVIDENCE_STATE_SLEEP : EVIDENCE_STATE_OTHER;
}

static __always_inline __u32 state_in(struct task_struct *task, struct call call)
{
	const struct evidence_control *c = bpf_map_lookup_elem(&control, &first);
	__u32 class;

	if (call.number < 0)
		return EVIDENCE_STATE_PAGE_FAULT;
	if (!c || call.number >= EVIDENCE_CALLS)
		return EVIDENCE_STATE_OTHER;
	class = c->class_of[call.number & (EVIDENCE_CALLS - 1)];
	if (class == EVIDENCE_BY_FILE)
		return is_socket(task, call.arg) ? EVIDENCE_STATE_NETWORK : EVIDENCE_STATE_IO;
	if (class == EVIDENCE_RESTARTED)
		return restarted(task, c);
	/* in_iowait: it waits for a device, whatever the call. */
	if (class == EVIDENCE_STATE_OTHER && BPF_CORE_READ_BITFIELD(task, in_iowait))
		return EVIDENCE_STATE_IO;
	return class;
}

static __always_inline struct reason reason_of(struct task_struct *task)
{
	struct call call = call_of(task);
	struct reason why = { .state = state_in(task, call), .futex = call.arg };

	if (why.state == EVIDENCE_SEVERAL)
		return (struct reason){ EVIDENCE_STATE_FUTEX, 0 };
	return why;
}

/* ---- futexes ---- */

/* The number of an address; 0: there are too many. */
static __always_inline __u32 entry_of(const struct evidence_row *r, struct place *place)
{
	struct evidence_control *c = bpf_map_lookup_elem(&control, &first);
	__u32 *found = bpf_map_lookup_elem(&places, place), index;
	struct evidence_entry *e;

	if (found || !c || c->next_futex >= EVIDENCE_FUTEXES)
		return found ? *found : 0;
	index = __sync_fetch_and_add(&c->next_futex, 1);
	e = index < EVIDENCE_FUTEXES ? bpf_map_lookup_elem(&futexes, &index) : 0;
	if (!e)
		return 0;
	e->addr = place->addr;
	e->tgid = r->tgid;
	if (!bpf_map_update_elem(&places, place, &index, BPF_NOEXIST))
		return index;
	found = bpf_map_lookup_elem(&places, place); /* another thread was faster */
	return found ? *found : 0;
}

/* Frees a slot. */
static __always_inline void give(struct evidence_slot *slot)
{
	struct evidence_control *c = bpf_map_lookup_elem(&control, &first);
	__u32 index = slot->entry;
	struct evidence_entry *e = bpf_map_lookup_elem(&futexes, &index);

	if (!e || !c || (!slot->addr && !slot->ns && !slot->waits))
		return;
	__sync_fetch_and_add(&c->moves_begun, 1);
	__sync_fetch_and_add(&e->ns, slot->ns);
	__sync_fetch_and_add(&e->waits, slot->waits);
	slot->addr = slot->ns = 0;
	slot->entry = slot->waits = 0;
	__sync_fetch_and_add(&c->moves_done, 1);
}

static __always_inline void give_all(struct evidence_row *r)
{
	for (int i = 0; i < EVIDENCE_SLOTS; i++)
		give(&r->futex[i]);
}

/* An address has two slots where it may be; of these the one that was not used last is given. */
static __always_inline __u32 slot_for(struct evidence_row *r, __u64 addr)
{
	__u32 a = (__u32)(addr * 0x9e3779b97f4a7c15ull >> 61), b = a ^ 1;

	if (r->futex[a & (EVIDENCE_SLOTS - 1)].addr == addr)
		return a;
	if (r->futex[b & (EVIDENCE_SLOTS - 1)].addr == addr)
		return b;
	if (!r->futex[a & (EVIDENCE_SLOTS - 1)].addr)
		return a;
	return r->slot == a ? b : a;
}

/* The slot of an address, as r->slot. */
static __always_inline struct evidence_slot *choose(struct evidence_row *r,
						    const struct task_struct *task, __u64 addr)
{
	struct place place = { .addr = addr, .exec_id = task->self_exec_id, .tgid = task->tgid };
	struct evidence_slot *slot;

	if (r->exec_id != place.exec_id) {
		give_all(r);
		r->exec_id = place.exec_id;
	}
	r->slot = slot_for(r, addr);
	slot = &r->futex[r->slot & (EVIDENCE_SLOTS - 1)];
	if (slot->addr == addr)
		return slot;
	give(slot);
	slot->addr = addr;
	slot->entry = addr ? entry_of(r, &place) : 0;
	return slot;
}

static __always_inline int copy_regs(struct evidence_stack *to, struct task_struct *task)
{
	const struct pt_regs___x86 *regs = (const void *)bpf_task_pt_regs(task);

	if (!bpf_core_field_exists(regs->orig_ax))
		return 0;
	to->ip = regs->ip;
	to->sp = regs->sp;
	to->bp = regs->bp;
	to->bx = regs->bx;
	to->r12 = regs->r12;
	to->r13 = regs->r13;
	to->r14 = regs->r14;
	to->r15 = regs->r15;
	return 1;
}

/* Of the current thread: its memory is the one that is mapped. */
static __always_inline void keep_stack(__u32 entry, struct task_struct *task)
{
	struct evidence_stack *s = entry ? bpf_map_lookup_elem(&stacks, &entry) : 0;
	__u32 seq;

	if (!s)
		return;
	seq = *(volatile __u32 *)&s->seq;
	if ((seq & 1) || __sync_val_compare_and_swap(&s->seq, seq, seq + 1) != seq)
		return;
	s->size = 0;
	if (copy_regs(s, task)) {
		for (int at = 0; at < EVIDENCE_STACK; at += EVIDENCE_CHUNK) {
			if (bpf_probe_read_user(s->bytes + at, EVIDENCE_CHUNK,
						(const void *)(s->sp + at)))
				break;
			s->size = at + EVIDENCE_CHUNK;
		}
	}
	__sync_fetch_and_add(&s->seq, 1);
}

/* A wait of the current thread begins. Its stack is kept at the first one of an address, the
 * second, fourth, eighth. */
static __always_inline void await(struct evidence_row *r, struct task_struct *task, __u64 addr)
{
	struct evidence_slot *slot = choose(r, task, addr);

	slot->waits++;
	if (!(slot->waits & (slot->waits - 1)))
		keep_stack(slot->entry, task);
}

/* ---- pauses ---- */

static __always_inline void pause(struct evidence_row *r, struct reason why, __u32 flags)
{
	if (records)
		r->pause = (struct evidence_off){
			.state = why.state,
			.futex = why.state == EVIDENCE_STATE_FUTEX ? why.futex : 0,
			.flags = flags,
		};
}

/* False: there is no room. */
static __always_inline int put(const struct evidence_row *r, const struct task_struct *task,
			       __u32 cpu, __u64 now)
{
	const struct evidence_control *c = bpf_map_lookup_elem(&control, &first);
	struct evidence_ring *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct evidence_event *e;
	__u32 at;

	if (!c || !ring || ring->head - *(volatile __u64 *)&ring->tail >= c->ring_size)
		return 0;
	at = cpu * c->ring_size + ((__u32)ring->head & (c->ring_size - 1));
	e = bpf_map_lookup_elem(&events, &at);
	if (!e)
		return 0;
	e->at = now;
	e->began = r->began;
	e->number = r->pauses;
	e->tid = r->tid;
	e->tgid = r->tgid;
	e->waker = r->pause.state == EVIDENCE_STATE_FUTEX ? r->waker : 0;
	e->pause = r->pause;
	e->name[0] = *(const __u64 *)&task->comm[0];
	e->name[1] = *(const __u64 *)&task->comm[8];
	__sync_fetch_and_add(&ring->head, 1); /* behind the event, for all processors */
	return 1;
}

/* A pause is over. */
static __always_inline void record_pause(struct evidence_row *r, const struct task_struct *task,
					 __u32 cpu, __u64 now)
{
	__u32 state = r->pause.state & (EVIDENCE_STATES - 1);
	int chosen = weight_of_event() != 0;

	if (!chosen || !put(r, task, cpu, now)) {
		r->unrecorded.lost += chosen;
		r->unrecorded.pauses[state] += !r->pause.flags;
		r->unrecorded.ns[state] += r->pause.ns;
		r->unrecorded.ns[EVIDENCE_STATE_RUN_QUEUE] += r->pause.queue_ns;
	}
	r->pauses++;
}

/* ---- the scheduler ---- */

/* As the kernel counts its own nvcsw and nivcsw: a thread that sleeps has a state other than 0. */
static __always_inline void leave(struct evidence_row *r, struct task_struct *task, int wants,
				  __u32 cpu, __u64 now)
{
	struct reason why = { EVIDENCE_STATE_RUN_QUEUE, 0 };
	__u32 was = r->state;

	if (wants)
		why = reason_of(task);
	begin(r);
	if (why.state == EVIDENCE_STATE_FUTEX)
		await(r, task, why.futex);
	enter(r, why.state, now);
	if (records && was != EVIDENCE_STATE_ON_CPU) /* its first state was guessed wrong */
		record_pause(r, task, cpu, now);
	pause(r, why, 0);
	if (wants)
		r->voluntary++;
	else
		r->involuntary++;
	end(r);
}

static __always_inline void arrive(struct evidence_row *r, const struct task_struct *task,
				   __u32 cpu, __u64 now)
{
	__u32 was = r->state;

	begin(r);
	enter(r, EVIDENCE_STATE_ON_CPU, now);
	if (records && was != EVIDENCE_STATE_ON_CPU)
		record_pause(r, task, cpu, now);
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
	__u32 cpu = 0;

	/* next is in this processor's queue; prev may be in another one by now. */
	if (out) {
		now = now_of(next, &cpu);
		leave(out, prev, !(__u8)ctx[0] && (__u32)ctx[3], cpu, now);
	}
	if (in) {
		if (!now)
			now = now_of(next, &cpu);
		arrive(in, next, cpu, now);
	}
	return 0;
}

static __always_inline int wake(struct task_struct *task)
{
	struct evidence_row *r = row_of(task);
	__u32 cpu;

	if (!r)
		return 0;
	begin(r);
	r->wakeups++;
	if (r->state > EVIDENCE_STATE_RUN_QUEUE)
		enter(r, EVIDENCE_STATE_RUN_QUEUE, now_of(task, &cpu));
	end(r);
	return 0;
}

/*
 * In the thread that wakes. Loaded only with the recording of pauses. An interrupt runs in any
 * thread, and no helper distinguishes the two; a timer's seldom falls into futex(2) of a watched
 * thread, so wakers are those that are there.
 */
SEC("tp_btf/sched_waking")
int on_waking(__u64 *ctx)
{
	struct evidence_row *r = row_of((void *)ctx[0]), *by;
	struct task_struct *task;

	if (!r)
		return 0;
	task = (void *)bpf_get_current_task_btf();
	by = row_of(task);
	r->waker = by && state_in(task, call_of(task)) == EVIDENCE_STATE_FUTEX ? by->tid : 0;
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

static __always_inline int has_io(void)
{
	const struct task_struct *task = 0;

	return bpf_core_field_exists(task->ioac.rchar) &&
	       bpf_core_field_exists(task->ioac.read_bytes);
}

/* What the kernel counts of a task by itself. */
static __always_inline void look(struct evidence_row *r, const struct task_struct *task)
{
	r->minor = task->min_flt;
	r->major = task->maj_flt;
	if (!has_io())
		return;
	r->io[EVIDENCE_IO_READ_CALLS] = task->ioac.syscr;
	r->io[EVIDENCE_IO_WRITE_CALLS] = task->ioac.syscw;
	r->io[EVIDENCE_IO_READ] = task->ioac.rchar;
	r->io[EVIDENCE_IO_WRITE] = task->ioac.wchar;
	r->io[EVIDENCE_IO_DISK_READ] = task->ioac.read_bytes;
	r->io[EVIDENCE_IO_DISK_WRITE] = task->ioac.write_bytes;
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
	r->exec_id = task->self_exec_id;
	r->began = bpf_ktime_get_ns();
	if (!bpf_task_storage_get(&tasks, task, &index, BPF_LOCAL_STORAGE_GET_F_CREATE)) {
		__sync_fetch_and_add(&c->threads_lost, 1);
		bpf_map_push_elem(&spare, &index, 0);
		return 0;
	}
	slot_take(task, index);
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
		pause(r, (struct reason){ EVIDENCE_STATE_OTHER, 0 }, EVIDENCE_OFF_BIRTH);
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
		FOLD(unrecorded.pauses[i]);
		FOLD(unrecorded.ns[i]);
	}
	FOLD(unrecorded.lost);
	FOLD(voluntary);
	FOLD(involuntary);
	FOLD(wakeups);
	FOLD(migrations);
	__sync_fetch_and_add(&sum->minor, r->minor - r->minor_first);
	__sync_fetch_and_add(&sum->major, r->major - r->major_first);
	for (int i = 0; i < EVIDENCE_IO_FIELDS; i++)
		__sync_fetch_and_add(&sum->io[i], r->io[i] - r->io_first[i]);
	for (int i = 0; i < EVIDENCE_NET_FIELDS; i++)
		FOLD(net[i]);
	for (int i = 0; i < EVIDENCE_WITHIN_FIELDS; i++)
		FOLD(within[i]);
	for (int i = 0; i < EVIDENCE_CACHE_FIELDS; i++)
		FOLD(cache[i]);
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
	slot_leave(task);
	bpf_task_storage_delete(&tasks, task);
	__sync_fetch_and_add(&c->folds_begun, 1);
	enter(r, EVIDENCE_STATE_OTHER, bpf_ktime_get_ns());
	r->entered[EVIDENCE_STATE_OTHER]--;
	look(r, task);
	fold(sum, r);
	give_all(r);
	r->tid = 0;
	__sync_fetch_and_add(&c->folds_done, 1);
	bpf_map_push_elem(&spare, &mine, 0);
	return 0;
}

/* ---- the iterator over tasks ---- */

static __always_inline struct reason doing_of(struct task_struct *task)
{
	if (task->on_cpu)
		return (struct reason){ EVIDENCE_STATE_ON_CPU, 0 };
	return task->__state ? reason_of(task) : (struct reason){ EVIDENCE_STATE_RUN_QUEUE, 0 };
}

/* The first state of a thread that already lives. An event that comes first knows better. */
static __always_inline void guess(struct evidence_row *r, struct task_struct *task)
{
	struct reason why = doing_of(task);

	if (*(volatile __u64 *)&r->since)
		return;
	if (why.state == EVIDENCE_STATE_FUTEX)
		choose(r, task, why.futex);
	pause(r, why, EVIDENCE_OFF_CUT);
	r->state = why.state;
	r->since = r->began;
}

static __always_inline void add(struct task_struct *task, struct evidence_control *c)
{
	struct evidence_row *r = row_of(task) ? 0 : watch(task, c);

	if (!r)
		return;
	look(r, task);
	r->minor_first = r->minor;
	r->major_first = r->major;
	for (int i = 0; i < EVIDENCE_IO_FIELDS; i++)
		r->io_first[i] = r->io[i];
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
		c->has_io = has_io();
	} else if (c->mode == EVIDENCE_MODE_ADD) {
		add(task, c);
	} else if (c->mode == EVIDENCE_MODE_NOW) {
		r = row_of(task);
		if (r)
			look(r, task);
	}
	return 0;
}

/* GPL-compatible, as some of the helpers require. */
char _license[] SEC("license") = "Dual MIT/GPL";
