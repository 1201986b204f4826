/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: a control page that the target has written anything into. Reading it adds up what is
 * there, and no more; working with it touches nothing outside.
 *
 * Input: targets, process, target; then pieces: where (3 bytes), how long (1), the bytes.
 */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "check.h"
#include "inject/page.h"

enum { HEAD = 3, PIECE = 4, FIRST_PROCS = 4, EACH = 600 };

static void open_page(struct page *page, uint32_t targets)
{
	struct page_files files = { memfd_create("fuzz", MFD_ALLOW_SEALING),
				    memfd_create("fuzz-counts", MFD_ALLOW_SEALING) };
	struct sb_page_header lay;
	struct sb_err err = { 0 };

	page_layout(&lay, &(struct page_want){ .targets = targets, .little = true });
	CHECK(!page_map(page, files, &lay, &err));
}

/* A thread table's number near an end of those that there are, or an offset. */
static void misplace_table(struct page *page, const uint8_t *data)
{
	const struct sb_page_header *lay = &page->lay;
	uint64_t ends[] = { SB_PAGE_TABLES, lay->notes_off, lay->size, ~0ull };
	uint64_t at = ends[data[0] % 4] + (uint64_t)(int8_t)data[1] * (data[2] ? 64 * data[2] : 1);

	for (uint32_t proc = 0; proc < FIRST_PROCS; proc++)
		for (uint32_t t = 0; t < lay->targets_max; t++) {
			struct sb_page_cell *cell = (void *)((char *)page->hdr + lay->blocks_off +
							     proc * lay->block_size +
							     (uint64_t)t * lay->cell_size);

			cell->threads = at;
		}
}

/* Pieces go to the rear's first page, the first processes' entries, the first blocks and the notes;
 * and to the same of the front, as a target on an old kernel can write. */
static void scribble(struct page *page, const uint8_t *data, size_t size)
{
	const struct sb_page_header *lay = &page->lay;
	const uint64_t second = lay->blocks_off + lay->block_size, rear = lay->counters_off;
	uint64_t starts[] = {
		rear,
		rear + lay->procs_off,
		rear + lay->blocks_off,
		rear + second,
		lay->notes_off,
		0,
		lay->procs_off,
		lay->blocks_off,
		second,
		lay->threads_off,
	};

	while (size > PIECE) {
		uint64_t at = starts[data[0] % 10] + (data[1] | data[2] << 8);
		size_t len = data[3] < size - PIECE ? data[3] : size - PIECE;

		if (data[0] & 32)
			misplace_table(page, data);
		if (data[0] & 64) /* the slots' own place */
			at = starts[2 + data[0] % 2] + 1024u * (1 + data[1] % 80) + data[2] % 64;
		if (at + len <= lay->size)
			memcpy((char *)page->hdr + at, data + PIECE, len);
		data += PIECE + len;
		size -= PIECE + len;
	}
}

static void check_sums(const struct page *page, uint32_t proc, uint32_t target)
{
	const struct sb_page_header *lay = &page->lay;
	const struct sb_page_counts *cell = page_counts(page, proc, target);
	struct page_sums sums = { 0 }, twice;
	uint64_t hits = 0, injected = 0, most = 0;

	for (uint32_t i = 0; i < lay->slots + SB_PAGE_SHARED_SLOTS; i++) {
		hits += cell->slot[i].hits;
		injected += cell->slot[i].injected_ticks;
		if (cell->slot[i].max_ticks > most)
			most = cell->slot[i].max_ticks;
	}
	page_read(page, proc, target, &sums);
	CHECK(sums.hits == hits && sums.injected_ticks == injected && sums.max_ticks == most);
	CHECK(sums.cuts == cell->cuts && sums.cut_ticks == cell->cut_ticks);
	for (int i = 0; i <= 100; i += 25) {
		double q = page_excess_quantile(&sums, i / 100.0);

		CHECK(isfinite(q) && q >= 0);
	}
	twice = sums;
	page_sums_add(&twice, &sums);
	CHECK(twice.hits == 2 * hits && twice.max_ticks == most);
}

static void see_slot(void *ctx, size_t index, const struct sb_page_slot *slot)
{
	size_t *n = ctx;

	CHECK(slot->hits && index < *n);
}

/* What the tracer reads of the rear, beside the sums. */
static void read_told(const struct page *page, uint32_t proc, uint32_t target)
{
	size_t slots = page_slots(page);
	struct page_spent *spent = calloc(slots, sizeof(*spent));
	struct page_note note = { 0 };
	uint64_t each[EACH] = { 0 };

	CHECK(spent);
	page_bells_lost(page);
	page_each_add(page, each, EACH);
	page_read_spent(page, proc, target, spent);
	page_each_slot(page, proc, target, see_slot, &slots);
	while (page_next_note(page, &note))
		CHECK(strlen(note.module) + strlen(note.symbol) + strlen(note.file) <
		      page->lay.notes_size);
	page_note_done(&note);
	free(spent);
}

static void work(struct page *page, uint32_t target)
{
	static const uint64_t fsbase[] = { 0x7f0000001000, 0x7f0000001040, 0x7f0000081000 };
	struct page_setting set = { .enabled = true, .delay = true, .filter = true };
	struct sb_err err = { 0 };
	uint32_t proc = page_proc_new(page, 4711);

	CHECK(proc < page->lay.procs_max);
	page_set(page, proc, target, &set);
	for (int i = 0; i < 3; i++)
		page_set_threads(page, proc, target, fsbase, 3, &err);
	page_lease(page, 1);
	page_kick(page);
	page_answer(page, proc);
	page_note_cut(page, page_cell_offset(page, target), 1, 1);
	if (proc)
		page_quiet(page, proc, page_ended(page, proc));
	read_told(page, proc, target);
	if (proc)
		page_proc_free(page, proc);
	page_close_all(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct page page;
	uint32_t target;

	if (size < HEAD)
		return 0;
	open_page(&page, 1 + data[0] % 8); /* a page without any is never made */
	target = data[2] % page.lay.targets_max;
	scribble(&page, data + HEAD, size - HEAD);
	check_sums(&page, data[1] % 2, target);
	work(&page, target);
	scribble(&page, data + HEAD, size - HEAD);
	work(&page, target);
	page_unmap(&page);
	return 0;
}
