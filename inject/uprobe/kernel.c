/* SPDX-License-Identifier: MIT */
/* The loader of kernel.bpf.c: one object for each place. */
#include "kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "uprobe-priv.h"
#include "src/base/must.h"

extern const char sb_kernel_image[], sb_kernel_image_end[];

/* The maps of the main object that those of the places are. */
static const char *const shared[] = { "targets", "procs", "counts", "numbers", "events" };

enum attached { BY_FENTRY, BY_KPROBE, BY_TRACEPOINT, BY_TYPED };

static const struct mechanism {
	const char *name;
	enum attached by;
	const char *enter, *leave; /* programs; leave NULL: it has no end */
	const char *at[2];	   /* where, whatever the name; NULL: the name says it */
} mechanisms[] = {
	[KERNEL_FENTRY] = { "fentry", BY_FENTRY, "fenter", "fleave", { NULL } },
	[KERNEL_KPROBE] = { "kprobe", BY_KPROBE, "kenter", "kleave", { NULL } },
	[KERNEL_TRACEPOINT] = { "raw_tracepoint", BY_TRACEPOINT, "point", NULL, { NULL } },
	[KERNEL_IOCTL_FENTRY] = { "fentry", BY_FENTRY, "ifenter", "ifleave", { NULL } },
	[KERNEL_IOCTL_KPROBE] = { "kprobe", BY_KPROBE, "ikenter", "ikleave", { NULL } },
	[KERNEL_IOCTL_TRACEPOINT] = { "raw_tracepoint",
				      BY_TRACEPOINT,
				      "ipenter",
				      "ipleave",
				      { "sys_enter", "sys_exit" } },
	[KERNEL_INTERRUPT_TRACEPOINT] = { "raw_tracepoint",
					  BY_TRACEPOINT,
					  "iqenter",
					  "iqleave",
					  { "irq_handler_entry", "irq_handler_exit" } },
	[KERNEL_OFFCPU_TRACEPOINT] = { "raw_tracepoint",
				       BY_TYPED,
				       "switched",
				       NULL,
				       { "sched_switch" } },
};

/* Maps that only the programs of one mechanism have. */
static const struct {
	const char *map;
	enum kernel_mechanism how;
} own_maps[] = {
	{ "handlers", KERNEL_INTERRUPT_TRACEPOINT },
	{ "away", KERNEL_OFFCPU_TRACEPOINT },
};

struct kernel_place {
	struct bpf_object *obj;
	struct bpf_link *enter, *leave;
	struct bpf_program *program[2];
	uint32_t target;
	int times; /* descriptor of the map */
};

const char *kernel_mechanism_name(enum kernel_mechanism how)
{
	return mechanisms[how].name;
}

/* ---- one object ---- */

static bool share(const struct uprobes *u, struct bpf_object *obj)
{
	bool fine = true;

	for (size_t i = 0; i < sizeof(shared) / sizeof(*shared) && fine; i++) {
		struct bpf_map *from = bpf_object__find_map_by_name(u->obj, shared[i]),
			       *to = bpf_object__find_map_by_name(obj, shared[i]);

		fine = from && to && bpf_map__reuse_fd(to, bpf_map__fd(from)) == 0;
	}
	if (fine && u->spans)
		fine = bpf_map__reuse_fd(bpf_object__find_map_by_name(obj, "spans"), u->spans) == 0;
	return fine;
}

/* The constants of its programs. */
static bool set(struct bpf_object *obj, const struct kernel_setting *setting)
{
	struct bpf_map *map;
	const char *section;
	const void *data;
	uint32_t offset;
	size_t size;
	char *own;
	bool fine;

	if (!uprobes_variable(bpf_object__btf(obj), "setting", &section, &offset))
		return false;
	map = bpf_object__find_map_by_name(obj, section);
	data = map ? bpf_map__initial_value(map, &size) : NULL;
	if (!data || offset + sizeof(*setting) > size)
		return false;
	own = must_calloc(1, size);
	memcpy(own, data, size);
	memcpy(own + offset, setting, sizeof(*setting));
	fine = bpf_map__set_initial_value(map, own, size) == 0;
	free(own);
	return fine;
}

/* Of all programs only those of this mechanism; without times, only the first. */
static void choose(struct kernel_place *p, enum kernel_mechanism how, const char *name, bool timed)
{
	const struct mechanism *m = &mechanisms[how];
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, p->obj)
	{
		const char *own = bpf_program__name(prog);
		bool enter = !strcmp(own, m->enter);
		bool leave = timed && m->leave && !strcmp(own, m->leave);

		bpf_program__set_autoload(prog, enter || leave);
		if (!enter && !leave)
			continue;
		p->program[leave] = prog;
		if (m->by == BY_FENTRY || m->by == BY_TYPED)
			bpf_program__set_attach_target(prog, 0, m->at[0] ? m->at[0] : name);
	}
	for (size_t i = 0; i < sizeof(own_maps) / sizeof(*own_maps); i++)
		if (own_maps[i].how != how)
			bpf_map__set_autocreate(
				bpf_object__find_map_by_name(p->obj, own_maps[i].map), false);
}

/* Where a place is: a name, and the address where several functions have it. */
struct where {
	const char *name;
	uint64_t address;
};

static struct bpf_link *attach(struct bpf_program *prog, enum kernel_mechanism how,
			       const struct where *at, bool leaves)
{
	const struct mechanism *m = &mechanisms[how];
	LIBBPF_OPTS(bpf_kprobe_opts, opts, .retprobe = leaves, .offset = at->address);

	if (m->by == BY_FENTRY || m->by == BY_TYPED)
		return bpf_program__attach(prog);
	if (m->by == BY_KPROBE)
		return bpf_program__attach_kprobe_opts(prog, at->address ? NULL : at->name, &opts);
	return bpf_program__attach_raw_tracepoint(prog, m->at[leaves] ? m->at[leaves] : at->name);
}

/* The end first: a return whose begin was not seen is nothing. */
static bool attach_all(struct kernel_place *p, enum kernel_mechanism how, const struct where *at)
{
	if (p->program[1]) {
		p->leave = attach(p->program[1], how, at, true);
		if (!p->leave)
			return false;
	}
	p->enter = attach(p->program[0], how, at, false);
	return p->enter;
}

static void detach(struct kernel_place *p)
{
	bpf_link__destroy(p->enter);
	bpf_link__destroy(p->leave);
	p->enter = p->leave = NULL;
}

static int refused(struct sb_err *err, const char *what)
{
	if (errno == EPERM || errno == EACCES)
		return err_set(err, SB_EREFUSED, "%s (not permitted)", what);
	return err_set(err, SB_EREFUSED, "%s: %s", what, strerror(errno));
}

static int place_open(const struct uprobes *u, struct kernel_place *p, const struct where *at,
		      enum kernel_mechanism how, const struct kernel_setting *setting,
		      struct sb_err *err)
{
	/* cppcheck-suppress comparePointers ; the linker's bounds of one file */
	size_t size = (size_t)(sb_kernel_image_end - sb_kernel_image);

	p->obj = bpf_object__open_mem(sb_kernel_image, size, NULL);
	if (!p->obj)
		return refused(err, "the program for the kernel's functions cannot be read");
	choose(p, how, at->name, setting->timed);
	if (!set(p->obj, setting) || !share(u, p->obj))
		return err_set(err, SB_EINTERNAL, "the program for the kernel lacks a part");
	if (bpf_object__load(p->obj) < 0)
		return refused(err, "the kernel loads no program for it");
	if (!attach_all(p, how, at))
		return refused(err, "the kernel attaches no program to it");
	p->times = bpf_map__fd(bpf_object__find_map_by_name(p->obj, "times"));
	return 0;
}

int uprobes_kernel(struct uprobes *u, const char *name, uint64_t address, enum kernel_mechanism how,
		   const struct kernel_setting *setting, uint32_t *place, struct sb_err *err)
{
	struct kernel_place p = { .target = setting->target };
	struct kernel_setting own = *setting;
	struct where at = { name, address };
	int ret;

	own.place = *place = (uint32_t)u->n_kernel;
	own.record &= u->spans != 0;
	ret = place_open(u, &p, &at, how, &own, err);
	if (ret < 0) {
		detach(&p);
		bpf_object__close(p.obj);
		return ret;
	}
	u->kernel = must_realloc(u->kernel, (u->n_kernel + 1) * sizeof(*u->kernel));
	u->kernel[u->n_kernel++] = p;
	return 0;
}

void uprobes_kernel_remove(struct uprobes *u, uint32_t target)
{
	for (size_t i = 0; i < u->n_kernel; i++)
		if (u->kernel[i].target == target)
			detach(&u->kernel[i]);
}

void uprobes_kernel_close(struct uprobes *u)
{
	for (size_t i = 0; i < u->n_kernel; i++) {
		detach(&u->kernel[i]);
		bpf_object__close(u->kernel[i].obj);
	}
	free(u->kernel);
	u->kernel = NULL;
	u->n_kernel = 0;
	if (u->spans)
		close(u->spans);
	u->spans = 0;
}

/* ---- times ---- */

static void add_sum(struct kernel_times *sum, const struct kernel_times *t, size_t i)
{
	sum->summed[i] += t->summed[i];
	if (sum->sum[i] == UINT64_MAX || t->sum[i] == UINT64_MAX ||
	    __builtin_add_overflow(sum->sum[i], t->sum[i], &sum->sum[i]))
		sum->sum[i] = UINT64_MAX;
}

static void add_times(struct kernel_times *sum, const struct kernel_times *t)
{
	sum->calls += t->calls;
	sum->ns += t->ns;
	sum->recorded += t->recorded;
	sum->lost += t->lost;
	sum->filtered += t->filtered;
	if (t->most > sum->most)
		sum->most = t->most;
	if (t->inv_least > sum->inv_least)
		sum->inv_least = t->inv_least;
	for (size_t i = 0; i < KERNEL_VALUES; i++)
		add_sum(sum, t, i);
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		sum->bucket[i] += t->bucket[i];
}

static uint64_t missed_by(const struct bpf_program *prog)
{
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);

	if (!prog || bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size) < 0)
		return 0;
	return info.recursion_misses;
}

void uprobes_kernel_read(const struct uprobes *u, uint32_t place, struct kernel_times *sum,
			 uint64_t *missed)
{
	const struct kernel_place *p = &u->kernel[place];
	struct kernel_times *each = must_calloc((size_t)u->cpus, sizeof(*each));
	__u32 at = 0;

	memset(sum, 0, sizeof(*sum));
	if (bpf_map_lookup_elem(p->times, &at, each) == 0)
		for (int i = 0; i < u->cpus; i++)
			add_times(sum, &each[i]);
	free(each);
	*missed = missed_by(p->program[0]);
}

/* ---- recorded calls ---- */

int uprobes_spans(struct uprobes *u, size_t bytes, struct sb_err *err)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);

	while (size < bytes)
		size *= 2;
	u->spans = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "sb_spans", 0, 0, (__u32)size, NULL);
	if (u->spans > 0)
		return u->spans;
	u->spans = 0;
	return err_sys(err, SB_ENOMEM, "no room for the calls of the kernel's functions");
}

struct kernel_reader {
	struct ring_buffer *ring;
	kernel_span_fn *each;
	void *ctx;
};

static int on_span(void *ctx, void *data, size_t size)
{
	const struct kernel_reader *r = ctx;

	if (size >= KERNEL_SPAN_SIZE(0))
		r->each(r->ctx, data);
	return 0;
}

struct kernel_reader *kernel_reader_open(int ring, kernel_span_fn *each, void *ctx)
{
	struct kernel_reader *r = must_calloc(1, sizeof(*r));

	*r = (struct kernel_reader){ .each = each, .ctx = ctx };
	r->ring = ring_buffer__new(ring, on_span, r, NULL);
	if (r->ring)
		return r;
	free(r);
	return NULL;
}

/* Few calls do not wake the reader: it looks again by itself. */
void kernel_reader_wait(const struct kernel_reader *r, int timeout_ms)
{
	struct pollfd fd = { .fd = ring_buffer__epoll_fd(r->ring), .events = POLLIN };

	poll(&fd, 1, timeout_ms);
}

void kernel_reader_take(struct kernel_reader *r)
{
	ring_buffer__consume(r->ring);
}

void kernel_reader_close(struct kernel_reader *r)
{
	if (!r)
		return;
	ring_buffer__free(r->ring);
	free(r);
}
