/* SPDX-License-Identifier: MIT */
#ifndef SB_KERNEL_ABI_H
#define SB_KERNEL_ABI_H

#include <linux/types.h>

/*
 * Shared by the programs at one function or tracepoint of the kernel (kernel.bpf.c) and their
 * loader (kernel.c). Each place has an object of its own, with its own `times` and `calls`; the
 * other maps are those of uprobe.bpf.c, and `spans`, a ring for all places.
 */
#define KERNEL_VALUES  12
#define KERNEL_DEPTH   4    /* calls of one function within each other, of one thread */
#define KERNEL_BUCKETS 1216 /* as SB_PAGE_SPAN_BUCKETS, with the same boundaries, in ns */
#define KERNEL_RETURN  255  /* a value's position: what the function returns */

/*
 * What is written of a call of ioctl() on a device: the request, as it was given; its number, that
 * of a request within it where it has one; what the driver was asked for and its status, of
 * requests that have them; what it returned; the device's name.
 */
enum {
	KERNEL_IOCTL_CMD,
	KERNEL_IOCTL_NUMBER,
	KERNEL_IOCTL_DETAIL,
	KERNEL_IOCTL_STATUS,
	KERNEL_IOCTL_RESULT,
	KERNEL_IOCTL_DEVICE, /* two of them */
	KERNEL_IOCTL_VALUES = KERNEL_IOCTL_DEVICE + 2,
};
#define KERNEL_UNKNOWN (~0ull)
#define KERNEL_DEVICE  16 /* bytes of a name, which may be cut */

/* Of a run of an interrupt handler: its number, its processor, what it returned, its name. */
enum {
	KERNEL_INTERRUPT_NUMBER,
	KERNEL_INTERRUPT_CPU,
	KERNEL_INTERRUPT_RESULT,
	KERNEL_INTERRUPT_NAME, /* two of them */
	KERNEL_INTERRUPT_VALUES = KERNEL_INTERRUPT_NAME + 2,
};

/* Of a thread without a processor: why. */
enum { KERNEL_OFFCPU_REASON, KERNEL_OFFCPU_VALUES };
enum kernel_offcpu {
	KERNEL_OFFCPU_RUNNABLE, /* it could run: another thread took the processor */
	KERNEL_OFFCPU_SLEEPS,	/* it waits, and a signal ends that */
	KERNEL_OFFCPU_WAITS,	/* it waits, and no signal ends that */
	KERNEL_OFFCPU_STOPPED,	/* by a signal or a tracer */
};

/* Of one place, on one processor. Sums: all ones means too large. */
struct kernel_times {
	__u64 calls, ns, inv_least, most;
	__u64 sum[KERNEL_VALUES], summed[KERNEL_VALUES];
	__u64 recorded, lost, filtered;
	__u64 bucket[KERNEL_BUCKETS];
};

/* One call of it. The times are CLOCK_MONOTONIC. */
struct kernel_span {
	__u64 start_ns, dur_ns;
	__u32 pid, tid; /* in the loader's namespace; 0: of no process, an interrupt */
	__u32 place;	/* as the loader numbered it */
	__u32 unused;
	char comm[16];
	__u64 value[KERNEL_VALUES]; /* not more than the place has */
};

/* The size of a call with n values. */
#define KERNEL_SPAN_SIZE(n) (sizeof(struct kernel_span) - (KERNEL_VALUES - (n)) * sizeof(__u64))

/* What the loader sets before it loads an object; constant for its programs. */
struct kernel_setting {
	__u32 target, place;
	__u8 n_values;
	__u8 position[KERNEL_VALUES]; /* of an argument, from 0; or KERNEL_RETURN */
	__u8 shift[KERNEL_VALUES];    /* bits to the left ... */
	__u8 bits[KERNEL_VALUES];     /* ... of the value, which has so many */
	__u8 sign[KERNEL_VALUES], sum[KERNEL_VALUES];
	__u8 timed, record;
	__u8 kthreads; /* threads of the kernel count, too: in row 0 */
	__u64 min_ns;  /* shorter calls are not recorded */
	/* The begin of the names of devices, handlers or threads, or the whole; of calls of
	 * ioctl(), the call's number. */
	__u8 device[KERNEL_DEVICE];
	__u32 device_len, device_whole, call;
};

#endif
