// SPDX-License-Identifier: MIT
/*
 * survey-plan [-a] [-v] LIBRARY...: how many functions of a library can be hooked by a jump, and
 * why not the others. Functions are those of the symbol tables, aliases once; -a: also those that
 * only .eh_frame knows; -v: every refused function. Exit status 0 unless a file cannot be read.
 *
 * Reads ELF through libelf alone, so that a fault in elf/ cannot hide one here.
 */
#include <err.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../../inject/landing.h"
#include "../../inject/plan.h"

enum { MAX_TEXTS = 8, NAMES_SHOWN = 5 };

struct function {
	uint64_t start, end;
	const char *name; /* NULL: from .eh_frame */
	enum plan_refusal why;
	char detail[48];
};

struct text {
	uint64_t addr;
	const uint8_t *bytes;
	size_t len;
};

struct library {
	Elf *elf;
	struct function *func;
	size_t count, cap;
	struct text text[MAX_TEXTS];
	size_t texts;
};

static bool opt_all, opt_verbose;

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void add_function(struct library *lib, uint64_t start, uint64_t size, const char *name)
{
	if (lib->count == lib->cap) {
		lib->cap = lib->cap ? lib->cap * 2 : 1024;
		lib->func = realloc(lib->func, lib->cap * sizeof(*lib->func));
		if (!lib->func)
			err(1, "functions");
	}
	lib->func[lib->count++] =
		(struct function){ .start = start, .end = start + size, .name = name };
}

static const struct text *text_of(const struct library *lib, uint64_t addr)
{
	for (size_t i = 0; i < lib->texts; i++)
		if (addr - lib->text[i].addr < lib->text[i].len)
			return &lib->text[i];
	return NULL;
}

static void read_texts(struct library *lib)
{
	size_t n, size;
	const uint8_t *image = (const uint8_t *)elf_rawfile(lib->elf, &size);

	if (!image || elf_getphdrnum(lib->elf, &n))
		errx(1, "%s", elf_errmsg(-1));
	for (size_t i = 0; i < n && lib->texts < MAX_TEXTS; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(lib->elf, (int)i, &ph) || ph.p_type != PT_LOAD ||
		    !(ph.p_flags & PF_X) || ph.p_offset + ph.p_filesz > size)
			continue;
		lib->text[lib->texts++] = (struct text){ ph.p_vaddr, image + ph.p_offset,
							 ph.p_filesz };
	}
}

static void read_symbols(struct library *lib, Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);

	for (size_t i = 0; data && i < sh->sh_size / sh->sh_entsize; i++) {
		GElf_Sym sym;
		int type;

		if (!gelf_getsym(data, (int)i, &sym))
			break;
		type = GELF_ST_TYPE(sym.st_info);
		if ((type == STT_FUNC || type == STT_GNU_IFUNC) && sym.st_shndx != SHN_UNDEF &&
		    text_of(lib, sym.st_value))
			add_function(lib, sym.st_value, sym.st_size,
				     elf_strptr(lib->elf, sh->sh_link, sym.st_name));
	}
}

static int32_t read32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The table of .eh_frame_hdr in the form that every linker writes (datarel sdata4). */
static void read_frames(struct library *lib, Elf_Scn *scn, const GElf_Shdr *sh, Elf_Scn *frames)
{
	Elf_Data *hdr = elf_rawdata(scn, NULL), *fde = frames ? elf_rawdata(frames, NULL) : NULL;
	const uint8_t *p = hdr ? hdr->d_buf : NULL;
	GElf_Shdr fsh;

	if (!p || !fde || !gelf_getshdr(frames, &fsh) || hdr->d_size < 12 || p[3] != 0x3b)
		return;
	for (uint32_t i = 0; i < (uint32_t)read32(p + 8) && 12 + i * 8 + 8 <= hdr->d_size; i++) {
		uint64_t start = sh->sh_addr + (int64_t)read32(p + 12 + i * 8);
		uint64_t off = sh->sh_addr + (int64_t)read32(p + 16 + i * 8) - fsh.sh_addr;

		if (off + 16 <= fde->d_size && text_of(lib, start))
			add_function(lib, start,
				     (uint32_t)read32((const uint8_t *)fde->d_buf + off + 12),
				     NULL);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return !x->name - !y->name;
}

/* One entry an address: the first name, the longest extent. */
static void merge_aliases(struct library *lib)
{
	size_t n = 0;

	qsort(lib->func, lib->count, sizeof(*lib->func), by_start);
	for (size_t i = 0; i < lib->count; i++) {
		struct function *f = &lib->func[i];

		if (n && lib->func[n - 1].start == f->start) {
			if (f->end > lib->func[n - 1].end)
				lib->func[n - 1].end = f->end;
			continue;
		}
		lib->func[n++] = *f;
	}
	lib->count = n;
}

static void read_library(struct library *lib)
{
	Elf_Scn *scn = NULL, *hdr = NULL, *frames = NULL;
	GElf_Shdr sh, hdr_sh = { 0 };
	size_t strings;

	read_texts(lib);
	elf_getshdrstrndx(lib->elf, &strings);
	while ((scn = elf_nextscn(lib->elf, scn)) && gelf_getshdr(scn, &sh)) {
		const char *name = elf_strptr(lib->elf, strings, sh.sh_name);

		if (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM)
			read_symbols(lib, scn, &sh);
		if (name && !strcmp(name, ".eh_frame_hdr"))
			hdr = scn, hdr_sh = sh;
		if (name && !strcmp(name, ".eh_frame"))
			frames = scn;
	}
	if (hdr)
		read_frames(lib, hdr, &hdr_sh, frames);
	merge_aliases(lib);
}

static size_t last_not_above(const struct library *lib, uint64_t addr)
{
	size_t lo = 0, hi = lib->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (lib->func[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo; /* one more than the index */
}

static bool bounds(void *ctx, uint64_t addr, uint64_t *start, uint64_t *end)
{
	const struct library *lib = ctx;
	size_t i = last_not_above(lib, addr);

	for (size_t back = 0; i-- > 0 && back < 8; back++)
		if (addr < lib->func[i].end) {
			*start = lib->func[i].start;
			*end = lib->func[i].end;
			return true;
		}
	return false;
}

static void make_request(const struct library *lib, size_t i, struct plan_request *req)
{
	const struct function *f = &lib->func[i];
	const struct text *t = text_of(lib, f->start);

	*req = (struct plan_request){
		.addr = f->start,
		.func = f->start,
		.entry = true,
		.func_end = f->end > f->start ? f->end : 0,
		.prev_end = t->addr,
		.next = t->addr + t->len,
		.text = t->bytes,
		.text_addr = t->addr,
		.text_len = t->len,
	};
	if (i + 1 < lib->count && lib->func[i + 1].start < req->next)
		req->next = lib->func[i + 1].start;
	/* a function that reaches over this one's start leaves no room before it */
	for (size_t k = i, back = 0; k-- > 0 && back < 8; back++)
		if (lib->func[k].end > req->prev_end)
			req->prev_end = lib->func[k].end;
	if (req->prev_end > f->start)
		req->prev_end = f->start;
}

static void report(const struct library *lib, const size_t *shape, size_t total, size_t hooked)
{
	printf("  %zu functions, %.3f %% by jump (body %zu, tail %zu, pre %zu)\n", total,
	       total ? 100.0 * (double)hooked / (double)total : 0.0, shape[PLAN_BODY],
	       shape[PLAN_TAIL], shape[PLAN_PRE]);
	for (int why = 1; why < PLAN_REFUSAL_COUNT; why++) {
		size_t n = 0;

		for (size_t i = 0; i < lib->count; i++) {
			const struct function *f = &lib->func[i];

			if ((int)f->why != why || (!opt_all && !f->name))
				continue;
			if (!n++)
				printf("  refused: %s\n", plan_refusal_text(f->why));
			if (n <= NAMES_SHOWN || opt_verbose)
				printf("    %llx %s (%s)\n", (unsigned long long)f->start,
				       f->name ? f->name : "-", f->detail);
		}
		if (n)
			printf("    %zu in all\n", n);
	}
}

static struct landing_set *scan(struct library *lib)
{
	struct landing_set *set = landing_new();
	double t0 = now_s(), t1, bytes = 0;

	for (size_t i = 0; i < lib->count; i++) {
		struct plan_request req;
		uint64_t addr;
		unsigned int len;

		if (!lib->func[i].name && !opt_all)
			continue;
		make_request(lib, i, &req);
		plan_landing_range(&req, &addr, &len);
		if (landing_add_window(set, addr, len))
			errx(1, "out of memory");
	}
	t1 = now_s();
	for (size_t i = 0; i < lib->texts; i++) {
		bytes += (double)lib->text[i].len;
		if (landing_scan(set, lib->text[i].bytes, lib->text[i].addr, lib->text[i].len,
				 bounds, lib))
			errx(1, "out of memory");
	}
	printf("  windows %.1f ms; scan of %.1f MB %.1f ms, %.2f GB/s\n", (t1 - t0) * 1e3,
	       bytes / 1e6, (now_s() - t1) * 1e3, bytes / 1e9 / (now_s() - t1));
	return set;
}

static void survey(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct library lib = { .elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL) };
	size_t shape[4] = { 0 }, total = 0, hooked = 0;
	struct landing_set *set;
	double t0;

	if (!lib.elf)
		err(1, "%s", path);
	printf("%s\n", path);
	read_library(&lib);
	set = scan(&lib);
	t0 = now_s();
	for (size_t i = 0; i < lib.count; i++) {
		struct function *f = &lib.func[i];
		struct plan_request req;
		struct plan plan;

		if (!f->name && !opt_all)
			continue;
		total++;
		make_request(&lib, i, &req);
		f->why = plan_make(&req, set, &plan, f->detail, sizeof(f->detail));
		if (f->why == PLAN_OK)
			hooked++, shape[plan.shape]++;
	}
	printf("  plans %.1f us each\n", total ? (now_s() - t0) * 1e6 / (double)total : 0.0);
	report(&lib, shape, total, hooked);
	landing_free(set);
	free(lib.func);
	elf_end(lib.elf);
	close(fd);
}

int main(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "av")) != -1) {
		opt_all |= opt == 'a';
		opt_verbose |= opt == 'v';
		if (opt == '?')
			return 2;
	}
	elf_version(EV_CURRENT);
	for (int i = optind; i < argc; i++)
		survey(argv[i]);
	return 0;
}
