/* SPDX-License-Identifier: MIT */
/*
 * Many places at once: by perf a descriptor each (place.c), or one for many by a link of
 * "uprobe_multi" (Linux 6.6). libbpf supports that link since 1.3. It is one call of bpf(2), made
 * here, so that an older libbpf is sufficient.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "uprobe-priv.h"
#include "inject/arch/arch.h"

/* bpf_attr of BPF_LINK_CREATE with BPF_TRACE_UPROBE_MULTI, as in include/uapi/linux/bpf.h. */
struct multi_attr {
	__u32 prog_fd, target_fd, attach_type, flags;
	__u64 path, offsets, ref_ctr_offsets, cookies;
	__u32 count, multi_flags, pid, unused;
};

enum { UNSAFE = -1 };

static int place_many(struct uprobes *u, const char *path, uint32_t target,
		      struct uprobe_place *place, size_t n)
{
	uint64_t *offsets = calloc(n, sizeof(*offsets)), *cookies = calloc(n, sizeof(*cookies));
	struct multi_attr attr = {
		.prog_fd = (__u32)bpf_program__fd(u->on_hits),
		.attach_type = UPROBE_MULTI,
		.path = (__u64)(uintptr_t)path,
		.offsets = (__u64)(uintptr_t)offsets,
		.cookies = (__u64)(uintptr_t)cookies,
		.count = (__u32)n,
	};
	size_t id;
	int fd;

	if (!offsets || !cookies)
		abort();
	for (size_t i = 0; i < n; i++) {
		offsets[i] = place[i].offset;
		cookies[i] = target | (uint64_t)arch_probe_kind(place[i].code, place[i].len)
					      << UPROBE_COOKIE_BITS;
	}
	fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	free(offsets);
	free(cookies);
	if (fd < 0)
		return errno;
	id = uprobes_link(u);
	u->link[id].multi = fd;
	for (size_t i = 0; i < n; i++)
		place[i].id = id;
	return 0;
}

/*
 * One place that the kernel refuses makes it refuse all of them: it is found by halving the range.
 */
static void arm_range(struct uprobes *u, const char *path, uint32_t target,
		      struct uprobe_place *place, size_t n)
{
	uint64_t kind;

	if (n > 1 && place_many(u, path, target, place, n) == 0)
		return;
	if (n > 1) {
		arm_range(u, path, target, place, n / 2);
		arm_range(u, path, target, place + n / 2, n - n / 2);
		return;
	}
	kind = arch_probe_kind(place->code, place->len);
	place->refused = uprobes_place(u, u->on_hit, path, place->offset,
				       target | kind << UPROBE_COOKIE_BITS, &place->id);
}

/* Leaves out places where no probe may be put; the others stay together. */
static size_t keep_safe(struct uprobes *u, struct uprobe_place *place, size_t n, size_t *index)
{
	size_t safe = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned int kind = arch_probe_kind(place[i].code, place[i].len);

		place[i].refused = arch_probe_safe(place[i].code, place[i].len) ? 0 : UNSAFE;
		if (place[i].refused)
			continue;
		if (!u->measured[kind]) {
			u->measured[kind] = true;
			probe_cost(u, kind, &u->cost_ns[kind]);
		}
		place[i].cost_ns = u->cost_ns[kind];
		index[safe++] = i;
	}
	return safe;
}

void uprobes_arm(struct uprobes *u, const char *path, uint32_t target, struct uprobe_place *place,
		 size_t n)
{
	struct uprobe_place *some = calloc(n + 1, sizeof(*some));
	size_t *index = calloc(n + 1, sizeof(*index)), safe;

	if (!some || !index)
		abort();
	safe = keep_safe(u, place, n, index);
	for (size_t i = 0; i < safe; i++)
		some[i] = place[index[i]];
	if (safe)
		arm_range(u, path, target, some, safe);
	for (size_t i = 0; i < safe; i++)
		place[index[i]] = some[i];
	free(index);
	free(some);
}

const char *uprobes_refusal(int refused, char *buf, size_t size)
{
	enum { KERNEL_ENOTSUPP = 524 }; /* kernel-internal, but it does reach programs */

	if (refused == UNSAFE)
		snprintf(buf, size,
			 "the kernel would run its first instruction wrongly (a vector one "
			 "that it takes for a push or a branch)");
	else if (refused == KERNEL_ENOTSUPP || refused == EOPNOTSUPP || refused == EINVAL)
		snprintf(buf, size, "its first instruction is one that uprobes cannot take");
	else if (refused == EMFILE)
		snprintf(buf, size, "the limit on open files is reached (ulimit -n)");
	else
		snprintf(buf, size, "the kernel puts no uprobe there: %s", strerror(refused));
	return buf;
}
