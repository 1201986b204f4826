/* SPDX-License-Identifier: MIT */
/* The peer: a kernel uprobe whose BPF program counts, by libbpf. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

#ifdef BENCH_BPF
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

struct uprobe {
	struct bpf_object *obj;
	struct bpf_link *link, *exit; /* exit: NULL, or of a uretprobe */
};

static int silent(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

/* The offset in the file of a run-time address, from the subject's map. */
static uint64_t file_offset(const struct subject *s, char *path, size_t size)
{
	unsigned long long start, end, offset, found = 0;
	char name[64], line[1024], file[512];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)s->pid);
	f = fopen(name, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %511s", &start, &end, &offset, file) !=
			    4 ||
		    s->fn < start || s->fn >= end)
			continue;
		found = s->fn - start + offset;
		snprintf(path, size, "%s", file);
	}
	if (f)
		fclose(f);
	return found;
}

static struct bpf_link *attach(struct uprobe *u, const struct subject *s, const char *name,
			       bool exit)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(u->obj, name);
	char path[512];
	uint64_t offset = file_offset(s, path, sizeof(path));

	return prog && offset ? bpf_program__attach_uprobe(prog, exit, s->pid, path, offset) : NULL;
}

struct uprobe *uprobe_open(const struct subject *s, bool pair, const char **why)
{
	struct uprobe *u = calloc(1, sizeof(*u));
	char path[512];

	libbpf_set_print(silent);
	snprintf(path, sizeof(path), "%s/test/bench/count.bpf.o", bench.build);
	u->obj = bpf_object__open_file(path, NULL);
	*why = "the BPF object cannot be opened";
	if (!u->obj)
		goto fail;
	*why = geteuid() ? "loading BPF needs root" : "the kernel does not load the BPF program";
	if (bpf_object__load(u->obj))
		goto fail;
	*why = "the kernel does not attach the uprobe";
	u->link = attach(u, s, pair ? "call_begins" : "count_hit", false);
	if (u->link && pair)
		u->exit = attach(u, s, "call_ends", true);
	if (u->link && (u->exit || !pair))
		return u;
	bpf_link__destroy(u->link);
fail:
	bpf_object__close(u->obj);
	free(u);
	return NULL;
}

uint64_t uprobe_close(struct uprobe *u)
{
	struct bpf_map *map = bpf_object__find_map_by_name(u->obj, "hits");
	int cpus = libbpf_num_possible_cpus();
	uint64_t values[512] = { 0 }, sum = 0;
	uint32_t key = 0;

	if (cpus > 0 && cpus <= 512 && !bpf_map_lookup_elem(bpf_map__fd(map), &key, values))
		for (int i = 0; i < cpus; i++)
			sum += values[i];
	bpf_link__destroy(u->exit);
	bpf_link__destroy(u->link);
	bpf_object__close(u->obj);
	free(u);
	return sum;
}

#else

struct uprobe *uprobe_open(const struct subject *s, bool pair, const char **why)
{
	(void)s;
	(void)pair;
	*why = "built without libbpf and clang (scripts/deps.sh bench)";
	return NULL;
}

uint64_t uprobe_close(struct uprobe *u)
{
	free(u);
	return 0;
}

#endif
