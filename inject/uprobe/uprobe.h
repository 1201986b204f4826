/* SPDX-License-Identifier: MIT */
#ifndef SB_UPROBE_H
#define SB_UPROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "uprobe-abi.h"
#include "src/base/err.h"

/*
 * Functions slowed by the kernel: a uprobe on a place in a file, which every process that maps the
 * file passes, and a BPF program behind it that counts and spins in the selected processes.
 * sbinject stops, traces and writes to no process. Everything belongs to descriptors of sbinject,
 * so the kernel removes it when sbinject ends, however it ends.
 *
 * One object per session, single-threaded. Without clang and libbpf at build time only
 * uprobes_probe() works, and reports that.
 */
struct uprobes;

/*
 * Does this kernel support it, and is it permitted? SB_EPERM, SB_ECONFINED, SB_EUSAGE (not built
 * in).
 */
int uprobes_probe(struct sb_err *err);

/* targets: the largest number of them. children: forks belong to their parent's roots. */
struct uprobes *uprobes_open(uint32_t targets, bool children, struct sb_err *err);
void uprobes_close(struct uprobes *u); /* NULL is harmless */

/* The settings of one target, shared with the kernel; see uprobe-abi.h. */
struct uprobe_target *uprobes_target(struct uprobes *u, uint32_t target);

/*
 * Arms places in one file for a target. path is opened now: image_own_path(), which a target cannot
 * change. code: the bytes at the place, as many as are available; they determine the cost of a hit.
 * Many places at once are one registration where the kernel supports it (Linux 6.6), else each is
 * one, at some 100 ms.
 */
struct uprobe_place {
	uint64_t offset; /* in the file */
	const uint8_t *code;
	size_t len;
	/* Out: */
	int refused;	  /* errno; 0: it is armed */
	size_t id;	  /* for uprobes_disarm(); places may share one */
	uint64_t cost_ns; /* the least cost of a hit there, 0 unknown */
};
void uprobes_arm(struct uprobes *u, const char *path, uint32_t target, struct uprobe_place *place,
		 size_t n);
/* The reason as text. */
const char *uprobes_refusal(int refused, char *buf, size_t size);
/*
 * Arms a place that makes an event, for processes of a tree; pid: the kernel arms it in that
 * process only, and not in its forks; 0: wherever the file is mapped. Returns 0 or errno.
 */
int uprobes_doorbell(struct uprobes *u, const char *path, uint64_t offset, pid_t pid, size_t *id);
void uprobes_disarm(struct uprobes *u, size_t id); /* a second call does nothing */

/* Adds roots to a process, which gets a row (generation as given) if it has none. */
int uprobes_watch(struct uprobes *u, pid_t pid, uint64_t roots, uint32_t generation, uint32_t *row,
		  struct sb_err *err);

/* Readable when there are events; uprobes_events() hands them out. */
int uprobes_fd(const struct uprobes *u);
typedef void uprobes_event_fn(void *ctx, const struct uprobe_event *event);
void uprobes_events(struct uprobes *u, uprobes_event_fn *each, void *ctx);

/* The counts of one row for one target. busiest: the processor with the most hits. */
struct uprobe_sum {
	struct uprobe_counts all;
	uint64_t busiest_hits, busiest_ns;
};
bool uprobes_read(const struct uprobes *u, uint32_t row, uint32_t target, struct uprobe_sum *sum);
void uprobes_forget(struct uprobes *u, uint32_t row, uint32_t target);
/* Makes the counts of one row for one target, which a hit would make otherwise: where that is in an
 * interrupt or a switch, there may be no memory at hand, and the hit is lost. */
void uprobes_prepare(struct uprobes *u, uint32_t row, uint32_t target);

/* Hits that could not be counted, and events for which there was no space. */
uint64_t uprobes_lost_hits(const struct uprobes *u);
/* Hits that are counted in row 0 instead of their process's, for want of memory. */
uint64_t uprobes_hits_apart(const struct uprobes *u);
uint64_t uprobes_lost_events(const struct uprobes *u);

#endif
