/* SPDX-License-Identifier: MIT */
#ifndef SB_UPROBE_KERNEL_H
#define SB_UPROBE_KERNEL_H

#include "kernel-abi.h"
#include "uprobe.h"

/*
 * Functions and tracepoints of the kernel as places of a struct uprobes: they count for its
 * targets, in its processes, and never delay. A program is attached to each; the descriptors are
 * sbinject's, so the kernel removes them when sbinject ends, however it ends.
 */
enum kernel_mechanism {
	KERNEL_FENTRY,
	KERNEL_KPROBE,
	KERNEL_TRACEPOINT,
	/* Calls of ioctl() on devices (setting.device): at the function of the system call, or,
	 * with any name, at the tracepoints of all system calls. */
	KERNEL_IOCTL_FENTRY,
	KERNEL_IOCTL_KPROBE,
	KERNEL_IOCTL_TRACEPOINT,
	/* Runs of interrupt handlers of a name (setting.device), and times without a processor of
	 * threads of a name: at the kernel's tracepoints for them, with any name. */
	KERNEL_INTERRUPT_TRACEPOINT,
	KERNEL_OFFCPU_TRACEPOINT,
};

/* "fentry", "kprobe", "raw_tracepoint". */
const char *kernel_mechanism_name(enum kernel_mechanism how);

/* address: 0, or that of a function which shares its name, for a kprobe.
 * Attaches; setting.place is filled here and returned in *place. Counting begins once the target is
 * not UPROBE_OFF. SB_EREFUSED: the kernel takes no program there, with its reason. */
int uprobes_kernel(struct uprobes *u, const char *name, uint64_t address, enum kernel_mechanism how,
		   const struct kernel_setting *setting, uint32_t *place, struct sb_err *err);
/* Removes all places of a target. Their times can be read until the end. */
void uprobes_kernel_remove(struct uprobes *u, uint32_t target);

/* The times of a place, of all processors. missed: hits that the kernel did not hand to the program
 * since it ran already. */
void uprobes_kernel_read(const struct uprobes *u, uint32_t place, struct kernel_times *sum,
			 uint64_t *missed);

/* Before the first place: a ring of so many bytes for calls that are recorded. Returns its
 * descriptor, which u owns. */
int uprobes_spans(struct uprobes *u, size_t bytes, struct sb_err *err);

/* Reading that ring: each call of it, struct kernel_span with `size` bytes, in order. The reader
 * may be another thread than the user of u. */
struct kernel_reader;
typedef void kernel_span_fn(void *ctx, const struct kernel_span *span);
struct kernel_reader *kernel_reader_open(int ring, kernel_span_fn *each, void *ctx);
/* Waits until the ring is a quarter full, so long at most. */
void kernel_reader_wait(const struct kernel_reader *r, int timeout_ms);
void kernel_reader_take(struct kernel_reader *r);  /* what is there */
void kernel_reader_close(struct kernel_reader *r); /* NULL is harmless */

#endif
