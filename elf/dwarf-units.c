/* SPDX-License-Identifier: MIT */
#include "dwarf-units.h"

#include <endian.h>
#include <sys/mman.h>

static bool has_lines(const struct view *v)
{
	Elf64_Shdr sh;

	return view_find_section(v, ".debug_line", &sh) ||
	       view_find_section(v, ".zdebug_line", &sh);
}

/* The unpacked size that the compressed sections announce; libdw allocates that at once. */
static uint64_t unpacked_size(const struct view *v)
{
	uint64_t sum = 0;
	Elf64_Shdr sh;

	for (uint32_t i = 1; view_shdr(v, i, &sh); i++) {
		struct view_range r = view_section(v, &sh);
		uint64_t size = 0;

		if (r.bytes && (sh.sh_flags & SHF_COMPRESSED) && r.size >= sizeof(Elf64_Chdr))
			size = ld64(r.bytes + offsetof(Elf64_Chdr, ch_size));
		else if (r.bytes && r.size >= 12 && !memcmp(r.bytes, "ZLIB", 4))
			size = be64toh(ld64(r.bytes + 4));
		sum = size > UINT64_MAX - sum ? UINT64_MAX : sum + size;
	}
	return sum;
}

static void search_dwarf(Dwarf *dw, struct budget_run *run, dwarf_unit_fn *unit, void *ctx)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;

	while (!budget_over_now(run) && dwarf_get_units(dw, cu, &cu, NULL, NULL, &die, NULL) == 0)
		if (!unit(ctx, &die))
			return;
}

/*
 * False where these bytes, a whole private mapping, hold no DWARF. libelf marks sections that
 * it has unpacked in the section headers, in place: the mapping is made writable for it, and
 * MADV_DONTNEED drops what it wrote.
 */
static bool search_view(struct image *img, const struct view *v, struct budget_run *run,
			dwarf_unit_fn *unit, void *ctx)
{
	void *base = (void *)v->base;
	Elf *elf;
	Dwarf *dw;

	if (!has_lines(v))
		return false;
	if (unpacked_size(v) > BUDGET_UNPACKED) {
		img->flaw = image_flaw_debug;
		return false;
	}
	if (mprotect(base, v->size, PROT_READ | PROT_WRITE))
		return false;
	elf_version(EV_CURRENT);
	elf = elf_memory(base, v->size);
	dw = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	if (dw)
		search_dwarf(dw, run, unit, ctx);
	dwarf_end(dw);
	elf_end(elf);
	madvise(base, v->size, MADV_DONTNEED);
	mprotect(base, v->size, PROT_READ);
	return dw;
}

bool dwarf_units(struct image *img, struct budget_run *run, dwarf_unit_fn *unit, void *ctx)
{
	struct debugfile own = { 0 };
	bool found = search_view(img, &img->view, run, unit, ctx);

	if (!found && debugfile_take(&own, image_debug_fd(img))) {
		found = search_view(img, &own.view, run, unit, ctx);
		debugfile_close(&own);
	}
	return found;
}
