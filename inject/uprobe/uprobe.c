/* SPDX-License-Identifier: MIT */
/* The loader of uprobe.bpf.c: its maps and links, and reading them. */
#include "uprobe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "uprobe-priv.h"
#include "inject/arch/arch.h"
#include "src/base/caps.h"
#include "src/base/libbpf-log.h"

/* the inode of /proc/self/ns/pid in the first namespace: include/linux/proc_ns.h */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

_Static_assert(UPROBE_CLASSES == ARCH_PROBE_KINDS, "a cost for each kind");

enum { DESCRIPTORS = 1 << 16 };

extern const char sb_uprobe_image[], sb_uprobe_image_end[];

/* ---- checks before loading ---- */

static int not_permitted(struct sb_err *err)
{
	err_set(err, SB_EPERM, "uprobes need root (CAP_SYS_ADMIN)");
	err_hint(err, "run it with sudo; in a container: --privileged");
	return -SB_EPERM;
}

/* The check of perf_uprobe_event_init(); CAP_BPF and CAP_PERFMON are not enough. */
static bool permitted(void)
{
	return caps_has(CAPS_SYS_ADMIN);
}

/* A map of the smallest kind: does bpf(2) work at all? */
static int try_map(struct sb_err *err)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sb_probe", 4, 8, 1, NULL);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno == EPERM || errno == EACCES)
		return not_permitted(err);
	err_sys(err, SB_ECONFINED, "this kernel has no BPF");
	err_hint(err, "it takes one with CONFIG_BPF_SYSCALL; --backend inject needs none");
	return -SB_ECONFINED;
}

/*
 * Under lockdown=confidentiality the helper that reads the kernel's memory is missing. The kernel
 * itself is tried: /sys/kernel/security, which shows the lockdown, is often not mounted, and
 * libbpf_probe_bpf_helper() parses the verifier's messages, which changed in 6.12.
 */
static int try_reading(struct sb_err *err)
{
	static const struct bpf_insn reads[] = {
		{ BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_10, 0, 0 },
		/* NOLINTNEXTLINE(misc-redundant-expression): BPF_ADD and BPF_K are both 0 */
		{ BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_1, 0, 0, -8 },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, 8 },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, 0 },
		{ BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_probe_read_kernel },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0 },
		{ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "sb_probe", "GPL", reads,
			       sizeof(reads) / sizeof(*reads), NULL);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno != EINVAL) { /* the verifier's error for a missing helper */
		err_sys(err, SB_ECONFINED, "this kernel takes no BPF program");
		err_hint(err, "--backend inject needs none");
		return -SB_ECONFINED;
	}
	err_set(err, SB_EPERM,
		"BPF may not read the kernel's memory: it is locked down (confidentiality)");
	err_hint(err, "--backend inject needs no BPF; a kernel booted without "
		      "lockdown=confidentiality allows it");
	return -SB_EPERM;
}

int uprobes_probe(struct sb_err *err)
{
	int ret;

	libbpf_set_print(libbpf_log);
	if (!permitted())
		return not_permitted(err);
	if (access("/sys/bus/event_source/devices/uprobe/type", F_OK) < 0) {
		err_set(err, SB_ECONFINED, "this kernel has no uprobes, or /sys is not mounted");
		err_hint(err, "it takes one with CONFIG_UPROBE_EVENTS");
		return -SB_ECONFINED;
	}
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0) {
		err_set(err, SB_ECONFINED, "this kernel does not describe its types (BTF)");
		err_hint(err, "it takes one with CONFIG_DEBUG_INFO_BTF, as distributions have it");
		return -SB_ECONFINED;
	}
	ret = try_map(err);
	return ret < 0 ? ret : try_reading(err);
}

/* ---- open ---- */

static int load_failed(struct sb_err *err)
{
	if (errno == EPERM || errno == EACCES)
		return not_permitted(err);
	err_sys(err, SB_ECONFINED, "the kernel does not load the program for uprobes");
	err_hint(err, "it takes Linux 5.17 or later; -v shows what it says");
	return -SB_ECONFINED;
}

static int load(struct uprobes *u, struct sb_err *err)
{
	/* cppcheck-suppress comparePointers ; the linker's bounds of one file */
	size_t size = (size_t)(sb_uprobe_image_end - sb_uprobe_image);

	u->obj = bpf_object__open_mem(sb_uprobe_image, size, NULL);
	if (!u->obj)
		return load_failed(err);
	bpf_map__set_max_entries(bpf_object__find_map_by_name(u->obj, "targets"), u->n_targets);
	bpf_program__set_expected_attach_type(bpf_object__find_program_by_name(u->obj, "on_hits"),
					      UPROBE_MULTI);
	if (bpf_object__load(u->obj) < 0)
		return load_failed(err);
	u->on_hit = bpf_object__find_program_by_name(u->obj, "on_hit");
	u->on_hits = bpf_object__find_program_by_name(u->obj, "on_hits");
	u->on_doorbell = bpf_object__find_program_by_name(u->obj, "on_doorbell");
	u->procs = bpf_map__fd(bpf_object__find_map_by_name(u->obj, "procs"));
	u->counts = bpf_map__fd(bpf_object__find_map_by_name(u->obj, "counts"));
	return 0;
}

static void *map_shared(const struct uprobes *u, const char *name, size_t size)
{
	int fd = bpf_map__fd(bpf_object__find_map_by_name(u->obj, name));
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static size_t round_page(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/* The section that holds a global variable, mapped once for all of it. */
static char *section(struct uprobes *u, const char *name)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(u->obj, name);
	int i = 0;

	while (i < SECTIONS && u->section[i].name && strcmp(u->section[i].name, name) != 0)
		i++;
	if (!map || i == SECTIONS)
		return NULL;
	if (!u->section[i].name) {
		u->section[i].size = round_page(bpf_map__value_size(map));
		u->section[i].at = map_shared(u, name, u->section[i].size);
		u->section[i].name = name;
	}
	return u->section[i].at;
}

/* A global variable of the program, by name. */
static void *global(struct uprobes *u, const char *name)
{
	const char *where;
	uint32_t offset;
	char *at;

	if (!uprobes_variable(bpf_object__btf(u->obj), name, &where, &offset))
		return NULL;
	at = section(u, where);
	return at ? at + offset : NULL;
}

static int find_globals(struct uprobes *u, struct sb_err *err)
{
	u->inherit = global(u, "inherit");
	u->cost_ns = global(u, "cost_ns");
	if (u->inherit && u->cost_ns)
		return 0;
	return err_set(err, SB_EINTERNAL, "the program for uprobes lacks a variable");
}

static int find_namespace(struct uprobes *u, struct sb_err *err)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(u->obj, "find_namespace");
	__u64 args[2] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST_PID_NAMESPACE)
		return 0;
	if (bpf_prog_test_run_opts(bpf_program__fd(prog), &opts) < 0)
		return err_sys(err, SB_ESYS, "the pid namespace is not known");
	return 0;
}

static int follow(struct uprobes *u, struct sb_err *err)
{
	static const char *const names[TREE_PROGRAMS] = { "on_fork", "on_exec", "on_exit" };

	for (int i = 0; i < TREE_PROGRAMS; i++) {
		u->tree[i] =
			bpf_program__attach(bpf_object__find_program_by_name(u->obj, names[i]));
		if (!u->tree[i])
			return err_sys(err, SB_ECONFINED,
				       "the kernel does not attach a program to its scheduler's "
				       "events");
	}
	return 0;
}

static int on_event(void *ctx, void *data, size_t size)
{
	struct uprobes *u = ctx;

	if (size >= sizeof(struct uprobe_event) && u->each)
		u->each(u->each_ctx, data);
	return 0;
}

static int open_maps(struct uprobes *u, struct sb_err *err)
{
	struct bpf_map *ring = bpf_object__find_map_by_name(u->obj, "events");

	u->targets_size = round_page(u->n_targets * sizeof(struct uprobe_target));
	u->targets = map_shared(u, "targets", u->targets_size);
	u->numbers_size = round_page(sizeof(*u->numbers));
	u->numbers = map_shared(u, "numbers", u->numbers_size);
	u->ring = ring_buffer__new(bpf_map__fd(ring), on_event, u, NULL);
	u->cpus = libbpf_num_possible_cpus();
	u->percpu = u->cpus > 0 ? calloc((size_t)u->cpus, sizeof(*u->percpu)) : NULL;
	if (u->numbers)
		u->numbers->next_row = 1;
	if (u->targets && u->numbers && u->ring && u->percpu)
		return 0;
	return err_sys(err, SB_ENOMEM, "no room for what the kernel and sbinject share");
}

/* One descriptor per site. */
static void more_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= DESCRIPTORS)
		return;
	if (limit.rlim_max < DESCRIPTORS)
		limit.rlim_max = DESCRIPTORS;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

struct uprobes *uprobes_open(uint32_t targets, bool children, struct sb_err *err)
{
	struct uprobes *u = calloc(1, sizeof(*u));

	if (!u)
		abort();
	libbpf_set_print(libbpf_log);
	more_descriptors();
	u->n_targets = targets + 1; /* the last one is for the measurement */
	if (load(u, err) < 0 || open_maps(u, err) < 0 || find_globals(u, err) < 0 ||
	    find_namespace(u, err) < 0 || follow(u, err) < 0) {
		uprobes_close(u);
		return NULL;
	}
	*u->inherit = children;
	return u;
}

void uprobes_close(struct uprobes *u)
{
	if (!u)
		return;
	for (uint32_t i = 0; u->targets && i < u->n_targets; i++)
		__atomic_store_n(&u->targets[i].state, UPROBE_OFF, __ATOMIC_RELEASE);
	uprobes_kernel_close(u);
	for (size_t i = 0; i < u->n_links; i++)
		uprobes_disarm(u, i);
	for (int i = 0; i < TREE_PROGRAMS; i++)
		bpf_link__destroy(u->tree[i]);
	ring_buffer__free(u->ring);
	if (u->targets)
		munmap(u->targets, u->targets_size);
	if (u->numbers)
		munmap(u->numbers, u->numbers_size);
	for (int i = 0; i < SECTIONS; i++)
		if (u->section[i].at)
			munmap(u->section[i].at, u->section[i].size);
	bpf_object__close(u->obj);
	free(u->percpu);
	free(u->link);
	free(u);
}

struct uprobe_target *uprobes_target(struct uprobes *u, uint32_t target)
{
	return &u->targets[target];
}

/* ---- processes ---- */

int uprobes_watch(struct uprobes *u, pid_t pid, uint64_t roots, uint32_t generation, uint32_t *row,
		  struct sb_err *err)
{
	struct uprobe_proc p = { 0 };
	uint32_t key = (uint32_t)pid;

	if (bpf_map_lookup_elem(u->procs, &key, &p) < 0)
		p = (struct uprobe_proc){ .row = __atomic_fetch_add(&u->numbers->next_row, 1,
								    __ATOMIC_RELAXED),
					  .generation = generation };
	p.roots |= roots;
	*row = p.row;
	if (bpf_map_update_elem(u->procs, &key, &p, BPF_ANY) < 0)
		return err_sys(err, SB_ENOMEM, "process %d cannot be entered", pid);
	return 0;
}

void uprobes_unwatch(struct uprobes *u, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	bpf_map_delete_elem(u->procs, &key);
}

int uprobes_fd(const struct uprobes *u)
{
	return ring_buffer__epoll_fd(u->ring);
}

void uprobes_events(struct uprobes *u, uprobes_event_fn *each, void *ctx)
{
	u->each = each;
	u->each_ctx = ctx;
	ring_buffer__consume(u->ring);
	u->each = NULL;
}

/* ---- counters ---- */

static void sum_add(struct uprobe_sum *sum, const struct uprobe_counts *c)
{
	uint64_t ns = c->injected_ns + c->overrun_ns;

	sum->all.hits += c->hits;
	sum->all.cuts += c->cuts;
	sum->all.cut_ns += c->cut_ns;
	sum->all.injected_ns += c->injected_ns;
	sum->all.overrun_ns += c->overrun_ns;
	if (c->max_ns > sum->all.max_ns)
		sum->all.max_ns = c->max_ns;
	for (int i = 0; i < UPROBE_BUCKETS; i++)
		sum->all.bucket[i] += c->bucket[i];
	if (c->hits > sum->busiest_hits)
		sum->busiest_hits = c->hits;
	if (ns > sum->busiest_ns)
		sum->busiest_ns = ns;
}

bool uprobes_read(const struct uprobes *u, uint32_t row, uint32_t target, struct uprobe_sum *sum)
{
	struct uprobe_key key = { row, target };

	memset(sum, 0, sizeof(*sum));
	if (bpf_map_lookup_elem(u->counts, &key, u->percpu) < 0)
		return false;
	for (int i = 0; i < u->cpus; i++)
		sum_add(sum, &u->percpu[i]);
	return true;
}

void uprobes_forget(struct uprobes *u, uint32_t row, uint32_t target)
{
	struct uprobe_key key = { row, target };

	bpf_map_delete_elem(u->counts, &key);
}

void uprobes_prepare(struct uprobes *u, uint32_t row, uint32_t target)
{
	struct uprobe_key key = { row, target };

	memset(u->percpu, 0, (size_t)u->cpus * sizeof(*u->percpu));
	bpf_map_update_elem(u->counts, &key, u->percpu, BPF_NOEXIST);
}

uint64_t uprobes_lost_hits(const struct uprobes *u)
{
	return __atomic_load_n(&u->numbers->hits_lost, __ATOMIC_RELAXED);
}

uint64_t uprobes_hits_apart(const struct uprobes *u)
{
	return __atomic_load_n(&u->numbers->hits_apart, __ATOMIC_RELAXED);
}

uint64_t uprobes_lost_events(const struct uprobes *u)
{
	return __atomic_load_n(&u->numbers->events_lost, __ATOMIC_RELAXED);
}
