/* SPDX-License-Identifier: MIT */
#include "btf.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "src/base/libbpf-log.h"
#include "src/base/must.h"

#define TRACEPOINT "btf_trace_"

struct kernel_btf {
	struct btf *vmlinux, *module;
	char name[64]; /* of that module */
};

struct kernel_btf *kernel_btf_open(void)
{
	struct kernel_btf *b = must_calloc(1, sizeof(*b));

	libbpf_set_print(libbpf_log);
	b->vmlinux = btf__load_vmlinux_btf();
	if (b->vmlinux)
		return b;
	free(b);
	return NULL;
}

void kernel_btf_close(struct kernel_btf *b)
{
	if (!b)
		return;
	btf__free(b->module);
	btf__free(b->vmlinux);
	free(b);
}

/* The types of a module; NULL: it has none. */
static const struct btf *of_module(struct kernel_btf *b, const char *module)
{
	if (!strcmp(module, "vmlinux"))
		return b->vmlinux;
	if (!strcmp(module, b->name))
		return b->module;
	btf__free(b->module);
	snprintf(b->name, sizeof(b->name), "%s", module);
	b->module = btf__load_module_btf(module, b->vmlinux);
	return b->module;
}

/* ---- prototypes ---- */

static enum value_type integer(bool is_signed, __u32 size)
{
	static const struct {
		enum value_type of_signed, of_unsigned;
	} types[] = {
		[1] = { VALUE_I8, VALUE_U8 },
		[2] = { VALUE_I16, VALUE_U16 },
		[4] = { VALUE_I32, VALUE_U32 },
		[8] = { VALUE_I64, VALUE_U64 },
	};

	if (size > 8 || !size || (size & (size - 1)))
		return VALUE_TYPES;
	return is_signed ? types[size].of_signed : types[size].of_unsigned;
}

static enum value_type type_of(const struct btf *btf, __u32 id)
{
	int real = btf__resolve_type((struct btf *)btf, id);
	const struct btf_type *t = real > 0 ? btf__type_by_id(btf, (__u32)real) : NULL;

	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = btf__type_by_id(btf, t->type);
	if (!t)
		return VALUE_TYPES;
	if (btf_is_ptr(t))
		return VALUE_PTR;
	if (btf_is_int(t) && btf_int_encoding(t) & BTF_INT_BOOL)
		return VALUE_BOOL;
	if (btf_is_int(t))
		return integer(btf_int_encoding(t) & BTF_INT_SIGNED, t->size);
	return btf_is_any_enum(t) ? integer(false, t->size) : VALUE_TYPES;
}

static void read_proto(const struct btf *btf, const struct btf_type *t, int skip,
		       struct kernel_proto *out)
{
	const struct btf_param *param = btf_params(t);

	*out = (struct kernel_proto){ .known = true, .returned = type_of(btf, t->type) };
	for (int i = skip; i < btf_vlen(t) && out->n < KERNEL_ARGUMENTS; i++)
		out->argument[out->n++] = type_of(btf, param[i].type);
}

/* ---- what there is ---- */

void kernel_btf_functions(struct kernel_btf *b, const char *module, kernel_btf_fn *fn, void *ctx)
{
	const struct btf *btf = b ? of_module(b, module) : NULL;
	bool own = btf && btf != b->vmlinux; /* a module's continue the kernel's */

	for (__u32 id = own ? btf__type_cnt(b->vmlinux) : 1; btf && id < btf__type_cnt(btf); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id), *proto;
		struct kernel_proto p;

		if (!btf_is_func(t))
			continue;
		proto = btf__type_by_id(btf, t->type);
		if (!proto || !btf_is_func_proto(proto))
			continue;
		read_proto(btf, proto, 0, &p);
		if (!fn(ctx, btf__name_by_offset(btf, t->name_off), &p))
			return;
	}
}

/* btf_trace_NAME is a pointer to a function whose first argument is the program's own. */
static bool tracepoints_of(const struct btf *btf, __u32 first, kernel_btf_fn *fn, void *ctx)
{
	for (__u32 id = first; id < btf__type_cnt(btf); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		const char *name = btf__name_by_offset(btf, t->name_off);
		struct kernel_proto p = { 0 };

		if (!btf_is_typedef(t) || strncmp(name, TRACEPOINT, strlen(TRACEPOINT)) != 0)
			continue;
		t = btf__type_by_id(btf, t->type);
		t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
		if (t && btf_is_func_proto(t))
			read_proto(btf, t, 1, &p);
		if (!fn(ctx, name + strlen(TRACEPOINT), &p))
			return false;
	}
	return true;
}

void kernel_btf_tracepoints(struct kernel_btf *b, kernel_btf_fn *fn, void *ctx)
{
	bool more = b && tracepoints_of(b->vmlinux, 1, fn, ctx);
	DIR *dir = more ? opendir("/sys/kernel/btf") : NULL;
	struct dirent *e;

	while (more && dir && (e = readdir(dir))) {
		const struct btf *btf;

		if (e->d_name[0] == '.' || !strcmp(e->d_name, "vmlinux"))
			continue;
		btf = of_module(b, e->d_name);
		more = !btf || tracepoints_of(btf, btf__type_cnt(b->vmlinux), fn, ctx);
	}
	if (dir)
		closedir(dir);
}

/* ---- are programs permitted there? ---- */

static int try_load(int id)
{
	static const struct bpf_insn nothing[] = {
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0 },
		{ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY,
		    .attach_btf_id = (__u32)id);

	return bpf_prog_load(BPF_PROG_TYPE_TRACING, "sb_probe", "GPL", nothing,
			     sizeof(nothing) / sizeof(*nothing), &opts);
}

bool kernel_fentry_works(char *why, size_t size)
{
	int id = libbpf_find_vmlinux_btf_id("bpf_fentry_test1", BPF_TRACE_FENTRY);
	int prog = id > 0 ? try_load(id) : -1;
	int link = prog >= 0 ? bpf_raw_tracepoint_open(NULL, prog) : -1;

	if (link >= 0)
		close(link);
	else
		snprintf(why, size, "this kernel takes no program at its functions (fentry: %s)",
			 id > 0 ? strerror(errno) : "it does not describe them");
	if (prog >= 0)
		close(prog);
	return link >= 0;
}
