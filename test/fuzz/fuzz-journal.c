/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: any bytes as what recover finds at the start of a region in a target. What does not
 * hold together is refused; what is taken changes only bytes that hold what a patch says it put
 * there, into what the patch says was there.
 *
 * Input: 0 and the raw head, or sites, patches and what they hold, in a head that fits.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "check.h"
#include "inject/arch/arch.h"
#include "inject/region.h"

enum { MEMORY = 16384 }; /* of the target, from address 0 on */

#define REGION 0x7f1234560000ull

static struct memory target = { .fd = -1 };
static uint8_t before[MEMORY], after[MEMORY];

/* Most entries are nearly right; `reserved` says which are not. */
static void tame_site(const struct journal_header *h, struct journal_site *s)
{
	if (s->reserved % 8 == 7)
		return;
	s->n_pcs %= PLAN_MAX_INSNS + 3;
	s->len %= PLAN_MAX_WINDOW + 2;
	s->stub = h->code_off + s->stub % 4096;
	s->stub_size %= 4096;
	if ((const char *)s == (const char *)h + h->sites_off)
		s->addr %= MEMORY;
	else
		s->addr = s[-1].addr + s->addr % 64;
}

static void tame_patch(const struct journal_header *h, struct journal_patch *p)
{
	if (p->reserved[0] % 8 == 7)
		return;
	p->len %= PLAN_MAX_WINDOW + 2;
	p->site = h->n_sites ? p->site % h->n_sites : 0;
	if ((const char *)p == (const char *)h + h->patches_off)
		p->addr %= MEMORY / 4;
	else
		p->addr = p[-1].addr + p->addr % (p->reserved[1] % 2 ? 64 : 3000);
}

/* A head whose counts and offsets are right, with entries of any content. */
static struct region *build(const uint8_t *data, size_t size)
{
	size_t sites = data[0] % 5, patches = data[1] % 9;
	struct region *r = region_new(REGION, sites, patches, 64), *checked;
	struct journal_header *h = r->journal;
	size_t room = h->patches_off - h->sites_off + patches * sizeof(struct journal_patch);

	h->region_size = 8192;
	memcpy(h + 1, data + 2, size - 2 < room ? size - 2 : room);
	for (size_t i = 0; i < sites; i++)
		tame_site(h, &r->sites[i]);
	for (size_t i = 0; i < patches; i++)
		tame_patch(h, &r->patches[i]);
	checked = region_check(REGION, h, h->common_off);
	region_put(r);
	return checked;
}

static void ask(const struct region *r, uint64_t pc)
{
	const struct journal_site *s = region_site_at(r, pc);

	CHECK(!s || s->addr == pc);
	s = region_window_at(r, pc);
	CHECK(!s || (pc > s->addr && pc - s->addr < s->len));
	s = region_stub_at(r, pc);
	CHECK(!s || (pc - r->addr >= s->stub && pc - r->addr - s->stub < s->stub_size));
}

/* A breakpoint over the first bytes of what a patch put there, or the original where it was. */
static bool is_broken(const struct journal_patch *p, const uint8_t *at)
{
	size_t len = arch->trap_len;

	return p->len > len && memcmp(at, p->now, len) != 0 &&
	       (!memcmp(at, arch->trap_insn, len) || !memcmp(at, p->orig, len)) &&
	       !memcmp(at + len, p->now + len, p->len - len);
}

/* What must be there: no two patches have a byte in common. A breakpoint is its owner's. */
static void model(const struct region *r, uint8_t *memory)
{
	for (uint32_t i = 0; i < r->journal->n_patches; i++) {
		const struct journal_patch *p = &r->patches[i];

		uint8_t *at;

		if (p->addr > MEMORY || p->len > MEMORY - p->addr)
			continue;
		at = memory + p->addr;
		if (!memcmp(at, p->now, p->len))
			memcpy(at, p->orig, p->len);
		else if (is_broken(p, at))
			memcpy(at + arch->trap_len, p->orig + arch->trap_len,
			       p->len - arch->trap_len);
	}
}

static void undo(const struct region *r)
{
	struct space_restored done = { 0 };
	struct sb_err err = { 0 };

	CHECK(pwrite(target.fd, before, MEMORY, 0) == MEMORY);
	region_write_text(r, &target, true, &done, &err);
	CHECK(pread(target.fd, after, MEMORY, 0) == MEMORY);
	CHECK(lseek(target.fd, 0, SEEK_END) == MEMORY);
	model(r, before);
	CHECK(!memcmp(before, after, MEMORY));
	CHECK(done.patches <= r->journal->n_patches);
}

/* The target's memory holds what the patches put there, but for those that someone else changed. */
static void fill(const struct region *r)
{
	memset(before, 0x90, MEMORY);
	for (uint32_t i = 0; i < r->journal->n_patches; i++) {
		const struct journal_patch *p = &r->patches[i];

		if (p->addr < MEMORY && p->len <= MEMORY - p->addr)
			memcpy(before + p->addr, p->now, p->len);
	}
	for (uint32_t i = 0; i < r->journal->n_patches; i++) {
		const struct journal_patch *p = &r->patches[i];

		if (p->addr < MEMORY && p->reserved[2] % 4 == 3)
			before[p->addr] ^= 1;
		if (p->addr < MEMORY - arch->trap_len && p->reserved[2] % 4 == 2)
			memcpy(before + p->addr, arch->trap_insn, arch->trap_len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct region *r;

	if (size < 4)
		return 0;
	if (target.fd < 0) {
		target.fd = memfd_create("target", 0);
		CHECK(target.fd >= 0 && !ftruncate(target.fd, MEMORY));
	}
	r = data[0] ? build(data + 1, size - 1) : region_check(REGION, data + 1, size - 1);
	if (!r)
		return 0;
	for (uint32_t i = 0; i < r->journal->n_sites; i++) {
		CHECK(r->sites[i].n_pcs <= PLAN_MAX_INSNS + 1);
		CHECK(r->sites[i].stub + r->sites[i].stub_size <= r->size);
		ask(r, r->sites[i].addr);
		ask(r, r->sites[i].addr + r->sites[i].len);
		ask(r, REGION + r->sites[i].stub + r->sites[i].stub_size / 2);
	}
	fill(r);
	undo(r);
	region_put(r);
	return 0;
}
