/* SPDX-License-Identifier: MIT */
/* The functions of a library, from its symbol tables and .eh_frame, through libelf alone. */
#include <err.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "prove.h"
#include "inject/arch/x86_64/x86.h"
#include "inject/landing.h"

static void add_function(struct library *lib, uint64_t value, uint64_t size, const char *name)
{
	uint64_t start = PROVE_BASE + value;

	if (lib->count == lib->cap) {
		lib->cap = lib->cap ? lib->cap * 2 : 1024;
		lib->func = realloc(lib->func, lib->cap * sizeof(*lib->func));
		if (!lib->func)
			err(1, "functions");
	}
	lib->func[lib->count++] =
		(struct function){ .start = start, .end = start + size, .name = name };
}

static const struct segment *text_of(const struct library *lib, uint64_t addr)
{
	for (size_t i = 0; i < lib->texts; i++)
		if (addr - lib->text[i].addr < lib->text[i].len)
			return &lib->text[i];
	return NULL;
}

static void add_segment(struct library *lib, const GElf_Phdr *ph, const uint8_t *image)
{
	struct segment s = {
		.addr = PROVE_BASE + ph->p_vaddr,
		.bytes = image + ph->p_offset,
		.len = ph->p_filesz,
		.mem_len = ph->p_memsz,
		.exec = ph->p_flags & PF_X,
		.write = ph->p_flags & PF_W,
	};

	if (lib->low > s.addr)
		lib->low = s.addr;
	if (lib->high < s.addr + s.mem_len)
		lib->high = s.addr + s.mem_len;
	if (s.exec && lib->texts < PROVE_TEXTS)
		lib->text[lib->texts++] = s;
	if (!s.exec && lib->datas < PROVE_DATA)
		lib->data[lib->datas++] = s;
}

static void read_segments(struct library *lib)
{
	size_t n, size;
	const uint8_t *image = (const uint8_t *)elf_rawfile(lib->elf, &size);

	if (!image || elf_getphdrnum(lib->elf, &n))
		errx(1, "%s: %s", lib->path, elf_errmsg(-1));
	lib->low = ~0ull;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(lib->elf, (int)i, &ph) && ph.p_type == PT_LOAD &&
		    ph.p_offset + ph.p_filesz <= size)
			add_segment(lib, &ph, image);
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
		    text_of(lib, PROVE_BASE + sym.st_value))
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

		if (off + 16 <= fde->d_size && text_of(lib, PROVE_BASE + start))
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

	read_segments(lib);
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

/* One of the first instructions behind the entry, another in each function. */
static uint64_t middle_of(const struct segment *t, const struct function *f)
{
	unsigned int steps = 1 + (unsigned int)(f->start >> 4) % 13;
	uint64_t pc = f->start;

	for (unsigned int i = 0; i < steps; i++) {
		size_t off = pc - t->addr;
		struct x86_form form;
		unsigned int len = x86_length(t->bytes + off, t->len - off, &form);

		if (!len || pc + len >= f->end)
			break;
		pc += len;
	}
	return pc;
}

void library_request(const struct library *lib, size_t i, struct plan_request *req)
{
	const struct function *f = &lib->func[i];
	const struct segment *t = text_of(lib, f->start);

	*req = (struct plan_request){
		.addr = lib->site == SITE_MIDDLE ? middle_of(t, f) : f->start,
		.func = f->start,
		.entry = lib->site != SITE_MIDDLE,
		.int3 = lib->site == SITE_INT3,
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

struct landing_set *library_scan(struct library *lib)
{
	struct landing_set *set = landing_new();

	for (size_t i = 0; i < lib->count; i++) {
		struct plan_request req;
		uint64_t addr;
		unsigned int len;

		library_request(lib, i, &req);
		plan_landing_range(&req, &addr, &len);
		if (!set || landing_add_window(set, addr, len))
			errx(1, "out of memory");
	}
	for (size_t i = 0; i < lib->texts; i++)
		if (landing_scan(set, lib->text[i].bytes, lib->text[i].addr, lib->text[i].len,
				 bounds, lib))
			errx(1, "out of memory");
	return set;
}

int library_open(struct library *lib, const char *path, bool all, enum prove_site site)
{
	memset(lib, 0, sizeof(*lib));
	elf_version(EV_CURRENT);
	lib->path = path;
	lib->all = all;
	lib->site = site;
	lib->fd = open(path, O_RDONLY | O_CLOEXEC);
	lib->elf = lib->fd < 0 ? NULL : elf_begin(lib->fd, ELF_C_READ_MMAP, NULL);
	if (!lib->elf || elf_kind(lib->elf) != ELF_K_ELF) {
		warnx("%s: cannot be read as an ELF file", path);
		return -1;
	}
	read_library(lib);
	for (size_t i = 0; i < lib->count; i++)
		lib->func[i].chosen = all || lib->func[i].name;
	return 0;
}

void library_close(struct library *lib)
{
	free(lib->func);
	elf_end(lib->elf);
	close(lib->fd);
}

/* ---- where libraries are ---- */

static char *largest;
static off_t largest_size;

static int look(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *name = path + ftw->base;

	if (type != FTW_F || st->st_size <= largest_size ||
	    (!strstr(name, ".so.") &&
	     !(strlen(name) > 3 && !strcmp(name + strlen(name) - 3, ".so"))))
		return 0;
	free(largest);
	largest = strdup(path);
	largest_size = st->st_size;
	return 0;
}

static bool find_largest(char *path, size_t size)
{
	static const char *const roots[] = { "/usr/lib", "/usr/lib64", "/usr/local", "/opt" };

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		nftw(roots[i], look, 64, FTW_PHYS);
	if (largest)
		snprintf(path, size, "%s", largest);
	return largest;
}

bool library_find(const char *name, char *path, size_t size)
{
	static const char *const dirs[] = { "/usr/lib/*-linux-gnu",
					    "/lib/*-linux-gnu",
					    "/usr/lib64",
					    "/lib64",
					    "/usr/lib",
					    "/usr/local/lib",
					    "~/.pyenv/versions/*/lib" };
	bool found = false;

	if (!strcmp(name, "largest"))
		return find_largest(path, size);
	snprintf(path, size, "%s", name);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && !found && !strchr(name, '/');
	     i++) {
		char pattern[256];
		glob_t g;

		snprintf(pattern, sizeof(pattern), "%s/%s", dirs[i], name);
		found = glob(pattern, GLOB_TILDE, NULL, &g) == 0;
		if (found)
			snprintf(path, size, "%s", g.gl_pathv[0]);
		globfree(&g);
	}
	return found || strchr(name, '/');
}
