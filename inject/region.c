/* SPDX-License-Identifier: MIT */
#include "region.h"

#include <stdlib.h>
#include <string.h>
#include "fault.h"

enum { PAGE = 4096 };

struct region *region_get(struct region *region)
{
	region->refs++;
	return region;
}

void region_put(struct region *region)
{
	if (!region || --region->refs)
		return;
	free(region->journal);
	free(region);
}

static struct region *region_alloc(uint64_t addr, size_t head)
{
	struct region *region = calloc(1, sizeof(*region));

	if (!region)
		abort();
	region->journal = calloc(1, head);
	if (!region->journal)
		abort();
	region->refs = 1;
	region->addr = addr;
	return region;
}

static void region_point(struct region *region)
{
	char *base = (char *)region->journal;

	region->size = region->journal->region_size;
	region->sites = (void *)(base + region->journal->sites_off);
	region->patches = (void *)(base + region->journal->patches_off);
}

struct region *region_new(uint64_t addr, size_t n_sites, size_t n_patches, size_t common_size)
{
	size_t sites = sizeof(struct journal_header);
	size_t patches = sites + n_sites * sizeof(struct journal_site);
	size_t common = (patches + n_patches * sizeof(struct journal_patch) + 63) & ~63ul;
	struct region *region = region_alloc(addr, common);
	struct journal_header *h = region->journal;

	h->magic = JOURNAL_MAGIC;
	h->version = JOURNAL_VERSION;
	h->header_size = sizeof(*h);
	h->n_sites = (uint32_t)n_sites;
	h->n_patches = (uint32_t)n_patches;
	h->sites_off = (uint32_t)sites;
	h->patches_off = (uint32_t)patches;
	h->common_off = (uint32_t)common;
	h->code_off = (uint32_t)((common + common_size + 63) & ~63ul);
	region_point(region);
	return region;
}

static bool header_sane(const struct journal_header *h, size_t len)
{
	return len >= sizeof(*h) && h->magic == JOURNAL_MAGIC && h->version == JOURNAL_VERSION &&
	       h->header_size == sizeof(*h) && h->n_sites <= 1u << 24 && h->n_patches <= 1u << 24 &&
	       h->sites_off == sizeof(*h) &&
	       h->patches_off ==
		       h->sites_off + (uint64_t)h->n_sites * sizeof(struct journal_site) &&
	       h->common_off >=
		       h->patches_off + (uint64_t)h->n_patches * sizeof(struct journal_patch) &&
	       h->common_off <= h->code_off && h->code_off <= h->region_size &&
	       !(h->region_size % PAGE) && h->region_size && h->common_off <= len;
}

static bool entries_sane(const struct region *region)
{
	const struct journal_header *h = region->journal;

	for (uint32_t i = 0; i < h->n_sites; i++) {
		const struct journal_site *s = &region->sites[i];

		if (s->n_pcs > PLAN_MAX_INSNS + 1 || s->stub < h->code_off ||
		    s->stub > region->size || s->stub_size > region->size - s->stub ||
		    s->len > PLAN_MAX_WINDOW || (i && s->addr < s[-1].addr))
			return false;
	}
	for (uint32_t i = 0; i < h->n_patches; i++) {
		const struct journal_patch *p = &region->patches[i];

		if (!p->len || p->len > PLAN_MAX_WINDOW || p->site >= h->n_sites ||
		    (p->addr % PAGE) + p->len > PAGE ||
		    (i && (p->addr < p[-1].addr || p->addr - p[-1].addr < p[-1].len)))
			return false;
	}
	return true;
}

struct region *region_check(uint64_t addr, const void *head, size_t len)
{
	struct journal_header h;
	struct region *region;

	if (len < sizeof(h))
		return NULL;
	memcpy(&h, head, sizeof(h));
	if (!header_sane(&h, len))
		return NULL;
	region = region_alloc(addr, h.common_off);
	memcpy(region->journal, head, h.common_off);
	region_point(region);
	if (entries_sane(region))
		return region;
	region_put(region);
	return NULL;
}

/* The last site at or below addr that replaces bytes. */
static struct journal_site *site_below(const struct region *region, uint64_t addr)
{
	size_t lo = 0, hi = region->journal->n_sites;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (region->sites[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo && !region->sites[lo - 1].len)
		lo--;
	return lo ? &region->sites[lo - 1] : NULL;
}

struct journal_site *region_site_at(const struct region *region, uint64_t addr)
{
	struct journal_site *site = site_below(region, addr);

	return site && site->addr == addr ? site : NULL;
}

struct journal_site *region_window_at(const struct region *region, uint64_t pc)
{
	struct journal_site *site = site_below(region, pc);

	return site && pc > site->addr && pc < site->addr + site->len ? site : NULL;
}

struct journal_patch *region_patch_at(const struct region *region, uint64_t addr)
{
	size_t lo = 0, hi = region->journal->n_patches;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (region->patches[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < region->journal->n_patches && region->patches[lo].addr == addr ?
		       &region->patches[lo] :
		       NULL;
}

struct journal_site *region_stub_at(const struct region *region, uint64_t pc)
{
	uint64_t off = pc - region->addr;

	if (off >= region->size)
		return NULL;
	/* Stubs are in the order of their sites. */
	for (size_t lo = 0, hi = region->journal->n_sites; lo < hi;) {
		size_t mid = (lo + hi) / 2;
		struct journal_site *s = &region->sites[mid];

		if (off < s->stub)
			hi = mid;
		else if (off >= (uint64_t)s->stub + s->stub_size)
			lo = mid + 1;
		else
			return s;
	}
	return NULL;
}

/*
 * Another tool's breakpoint (a uprobe's, say) over the first bytes of sbinject's hook, or the
 * file's own bytes where that breakpoint was removed: the bytes behind it are still sbinject's, and
 * are restored.
 */
static bool breakpoint_over(const struct journal_patch *p, uint8_t *at)
{
	size_t len = arch->trap_len;

	if (p->len <= len || !memcmp(at, p->now, len) ||
	    (memcmp(at, arch->trap_insn, len) && memcmp(at, p->orig, len)) ||
	    memcmp(at + len, p->now + len, p->len - len))
		return false;
	memcpy(at + len, p->orig + len, p->len - len);
	return true;
}

/* Patches first..last lie on one page, whose bytes are in buf. True if anything changes. */
static bool apply(const struct region *region, size_t first, size_t last, bool undo, uint8_t *buf,
		  uint64_t page, struct space_restored *out, bool *foreign)
{
	bool change = false;

	for (size_t i = first; i < last; i++) {
		const struct journal_patch *p = &region->patches[i];
		uint8_t *at = buf + (p->addr - page);

		if (undo && breakpoint_over(p, at)) {
			change = true;
			out->patches++;
			continue;
		}
		if (memcmp(at, undo ? p->now : p->orig, p->len)) {
			*foreign = true;
			if (undo && memcmp(at, p->orig, p->len))
				out->changed_by_others++;
			continue;
		}
		memcpy(at, undo ? p->orig : p->now, p->len);
		change = true;
		out->patches++;
	}
	return change;
}

static int write_page(const struct region *region, const struct memory *mem, size_t first,
		      size_t last, bool undo, struct space_restored *out, struct sb_err *err)
{
	const struct journal_patch *patch = region->patches;
	uint64_t page = patch[first].addr & ~(uint64_t)(PAGE - 1);
	uint64_t from = patch[first].addr, to = patch[last - 1].addr + patch[last - 1].len;
	bool foreign = false;
	uint8_t buf[PAGE];

	if (memory_peek(mem, from, buf + (from - page), to - from) != to - from)
		return undo ? 0 :
			      err_set(err, SB_ENOMODULE, "the text at 0x%llx is gone",
				      (unsigned long long)from);
	if (fault_point(undo ? "restore-page" : "plant-page", mem->pid))
		return err_set(err, SB_ETARGET, "fault: text page");
	if (!apply(region, first, last, undo, buf, page, out, &foreign))
		return 0;
	if (foreign && !undo)
		return err_set(err, SB_ENOMODULE, "the text at 0x%llx changed meanwhile",
			       (unsigned long long)from);
	return memory_write(mem, from, buf + (from - page), to - from, err);
}

/*
 * Ascending when hooking, descending when undoing: padding before an entry is written before the
 * entry that jumps into it, and restored after it.
 */
int region_write_text(const struct region *region, const struct memory *mem, bool undo,
		      struct space_restored *out, struct sb_err *err)
{
	size_t n = region->journal->n_patches, first, last, done = 0;
	const struct journal_patch *patch = region->patches;
	int ret = 0;

	while (done < n && ret >= 0) {
		first = undo ? n - done - 1 : done;
		last = first + 1;
		while (undo && first && patch[first - 1].addr / PAGE == patch[first].addr / PAGE)
			first--;
		while (!undo && last < n && patch[last].addr / PAGE == patch[first].addr / PAGE)
			last++;
		ret = write_page(region, mem, first, last, undo, out, err);
		done += last - first;
	}
	return ret;
}
