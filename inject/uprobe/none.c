/* SPDX-License-Identifier: MIT */
/* Built where clang or libbpf is missing: the backend exists, and reports why it does nothing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "kernel.h"
#include "uprobe.h"

int uprobes_probe(struct sb_err *err)
{
	err_set(err, SB_EUSAGE, "this sbinject was built without the uprobe backend");
	err_hint(err, "it needs clang and libbpf where it is built (scripts/deps.sh uprobe), then "
		      "make again");
	return -SB_EUSAGE;
}

struct uprobes *uprobes_open(uint32_t targets, bool children, struct sb_err *err)
{
	(void)targets;
	(void)children;
	uprobes_probe(err);
	return NULL;
}

void uprobes_close(struct uprobes *u)
{
	(void)u;
}

struct uprobe_target *uprobes_target(struct uprobes *u, uint32_t target)
{
	(void)u;
	(void)target;
	return NULL;
}

void uprobes_arm(struct uprobes *u, const char *path, uint32_t target, struct uprobe_place *place,
		 size_t n)
{
	(void)u;
	(void)path;
	(void)target;
	for (size_t i = 0; i < n; i++)
		place[i].refused = ENOSYS;
}

const char *uprobes_refusal(int refused, char *buf, size_t size)
{
	(void)refused;
	snprintf(buf, size, "built without the uprobe backend");
	return buf;
}

int uprobes_doorbell(struct uprobes *u, const char *path, uint64_t offset, pid_t pid, size_t *id)
{
	(void)pid;
	(void)u;
	(void)path;
	(void)offset;
	(void)id;
	return ENOSYS;
}

void uprobes_disarm(struct uprobes *u, size_t id)
{
	(void)u;
	(void)id;
}

int uprobes_watch(struct uprobes *u, pid_t pid, uint64_t roots, uint32_t generation, uint32_t *row,
		  struct sb_err *err)
{
	(void)u;
	(void)pid;
	(void)roots;
	(void)generation;
	(void)row;
	return uprobes_probe(err);
}

int uprobes_fd(const struct uprobes *u)
{
	(void)u;
	return -1;
}

void uprobes_events(struct uprobes *u, uprobes_event_fn *each, void *ctx)
{
	(void)u;
	(void)each;
	(void)ctx;
}

bool uprobes_read(const struct uprobes *u, uint32_t row, uint32_t target, struct uprobe_sum *sum)
{
	(void)u;
	(void)row;
	(void)target;
	(void)sum;
	return false;
}

void uprobes_forget(struct uprobes *u, uint32_t row, uint32_t target)
{
	(void)u;
	(void)row;
	(void)target;
}

void uprobes_prepare(struct uprobes *u, uint32_t row, uint32_t target)
{
	(void)u;
	(void)row;
	(void)target;
}

uint64_t uprobes_lost_hits(const struct uprobes *u)
{
	(void)u;
	return 0;
}

uint64_t uprobes_hits_apart(const struct uprobes *u)
{
	(void)u;
	return 0;
}

uint64_t uprobes_lost_events(const struct uprobes *u)
{
	(void)u;
	return 0;
}

const char *kernel_mechanism_name(enum kernel_mechanism how)
{
	(void)how;
	return "none";
}

int uprobes_kernel(struct uprobes *u, const char *name, uint64_t address, enum kernel_mechanism how,
		   const struct kernel_setting *setting, uint32_t *place, struct sb_err *err)
{
	(void)u;
	(void)name;
	(void)address;
	(void)how;
	(void)setting;
	(void)place;
	return uprobes_probe(err);
}

void uprobes_kernel_remove(struct uprobes *u, uint32_t target)
{
	(void)u;
	(void)target;
}

void uprobes_kernel_read(const struct uprobes *u, uint32_t place, struct kernel_times *sum,
			 uint64_t *missed)
{
	(void)u;
	(void)place;
	memset(sum, 0, sizeof(*sum));
	*missed = 0;
}

int uprobes_spans(struct uprobes *u, size_t bytes, struct sb_err *err)
{
	(void)u;
	(void)bytes;
	return uprobes_probe(err);
}

struct kernel_reader *kernel_reader_open(int ring, kernel_span_fn *each, void *ctx)
{
	(void)ring;
	(void)each;
	(void)ctx;
	return NULL;
}

void kernel_reader_wait(const struct kernel_reader *r, int timeout_ms)
{
	(void)r;
	(void)timeout_ms;
}

void kernel_reader_take(struct kernel_reader *r)
{
	(void)r;
}

void kernel_reader_close(struct kernel_reader *r)
{
	(void)r;
}
