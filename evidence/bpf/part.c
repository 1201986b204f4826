/* SPDX-License-Identifier: MIT */
#include "part.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

struct evidence_part {
	const struct part_image *image;
	struct bpf_object *obj;
	struct bpf_link *link[PART_PROGRAMS];
	char why[PART_PROGRAMS][128]; /* "": none */
};

void part_leave(struct evidence_part *p, unsigned int i, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->why[i], sizeof(p->why[i]), fmt, ap);
	va_end(ap);
}

const char *part_why(const struct evidence_part *p, unsigned int i)
{
	return p->why[i][0] ? p->why[i] : NULL;
}

static bool is_tracepoint(const struct part_program *program)
{
	return !program->most;
}

/* ---- what the kernel has ---- */

static const struct btf_type *function_of(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;

	return t ? btf__type_by_id(btf, t->type) : NULL;
}

static bool has_tracepoint(const struct btf *btf, const char *name)
{
	char type[64];

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	return btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0;
}

static void probe(struct evidence_part *p, const struct btf *btf, unsigned int i)
{
	const struct part_program *program = &p->image->program[i];
	const struct btf_type *t;

	if (is_tracepoint(program)) {
		if (!has_tracepoint(btf, program->at))
			part_leave(p, i, "the kernel has no tracepoint %s", program->at);
		return;
	}
	t = function_of(btf, program->at);
	if (!t)
		part_leave(p, i, "the kernel does not describe %s()", program->at);
	else if (btf_vlen(t) < program->least || btf_vlen(t) > program->most)
		part_leave(p, i, "%s() has other parameters in this kernel", program->at);
}

struct evidence_part *part_open(const struct part_image *image)
{
	struct evidence_part *p = must_calloc(1, sizeof(*p));
	struct btf *btf = btf__load_vmlinux_btf();

	p->image = image;
	for (unsigned int i = 0; i < image->n; i++) {
		if (btf)
			probe(p, btf, i);
		else
			part_leave(p, i, "the kernel does not describe its types (BTF)");
	}
	btf__free(btf);
	return p;
}

void part_close(struct evidence_part *p)
{
	if (!p)
		return;
	for (unsigned int i = 0; i < p->image->n; i++)
		bpf_link__destroy(p->link[i]);
	bpf_object__close(p->obj);
	free(p);
}

/* ---- load and attach ---- */

static struct bpf_program *program_of(const struct evidence_part *p, unsigned int i)
{
	return bpf_object__find_program_by_name(p->obj, p->image->program[i].name);
}

static bool share(const struct evidence_part *p, const struct bpf_object *main, const char *name)
{
	struct bpf_map *from = bpf_object__find_map_by_name(main, name),
		       *to = bpf_object__find_map_by_name(p->obj, name);

	return from && to && bpf_map__reuse_fd(to, bpf_map__fd(from)) == 0;
}

static bool load(struct evidence_part *p, const struct bpf_object *main, const char *const *shared)
{
	/* cppcheck-suppress comparePointers ; the linker's bounds of one file */
	size_t size = (size_t)(p->image->end - p->image->start);

	p->obj = bpf_object__open_mem(p->image->start, size, NULL);
	if (!p->obj)
		return false;
	for (unsigned int i = 0; i < p->image->n; i++)
		bpf_program__set_autoload(program_of(p, i), !p->why[i][0]);
	for (; *shared; shared++)
		if (!share(p, main, *shared))
			return false;
	return bpf_object__load(p->obj) == 0;
}

/* tracepoints: these, too, and not only the functions. */
static void give_up(struct evidence_part *p, bool tracepoints, const char *what)
{
	int why = errno;

	for (unsigned int i = 0; i < p->image->n; i++)
		if (!p->why[i][0] && (tracepoints || !is_tracepoint(&p->image->program[i])))
			part_leave(p, i, "%s: %s", what, strerror(why));
	bpf_object__close(p->obj);
	p->obj = NULL;
}

static void attach(struct evidence_part *p, unsigned int i)
{
	p->link[i] = bpf_program__attach(program_of(p, i));
	if (!p->link[i])
		part_leave(p, i, "the kernel attaches no program to %s: %s",
			   p->image->program[i].at, strerror(errno));
}

void part_attach(struct evidence_part *p, const struct bpf_object *main, const char *const *shared)
{
	if (!load(p, main, shared)) {
		give_up(p, false, "the kernel loads no program for its functions");
		if (!load(p, main, shared))
			give_up(p, true, "the kernel does not load the program");
	}
	for (unsigned int i = 0; i < p->image->n && p->obj; i++)
		if (!p->why[i][0])
			attach(p, i);
}
