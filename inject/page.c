/* SPDX-License-Identifier: MIT */
#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif

enum {
	PAGE = 4096,
	PROCS_LEAST = 16,
	MORE_LITTLE = 64, /* spare targets, where address space is short */
	NOTES = 1 << 23,
	EACH = 1 << 16,
	SPAN_BLOCKS_LITTLE = 16,
	CHUNKS_LITTLE = 1024,
	STACKS = 1024,
	STACKS_LITTLE = 64,
	MOST_S = 10, /* the longest delay that may be set */
};

/* Of each half: address space only, of which some targets have little (ulimit -v). */
#define HALF_LIMIT  (8ull << 30)
#define HALF_LITTLE (1ull << 29)
#define SPANS_LIMIT (4ull << 30) /* of the times of calls */

static uint64_t round_page(uint64_t n)
{
	return (n + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

static uint64_t span_size(const struct sb_page_header *hdr)
{
	return (hdr->slots + SB_PAGE_SHARED_SLOTS) * sizeof(struct sb_page_span);
}

static uint64_t trace_size(const struct sb_page_header *hdr)
{
	return hdr->chunks ?
		       round_page(sizeof(struct sb_page_trace) + hdr->chunks * sizeof(uint32_t)) :
		       0;
}

static uint64_t stack_list_size(const struct sb_page_header *hdr)
{
	return hdr->stacks ?
		       round_page(sizeof(struct sb_page_stacks) + hdr->stacks * sizeof(uint32_t)) :
		       0;
}

/* Behind all else of the rear. */
static void place_stacks(struct sb_page_header *hdr)
{
	if (!hdr->stacks)
		return;
	hdr->stacks_off = hdr->size;
	hdr->size += sizeof(struct sb_page_stacks_taken) +
		     round_page((uint64_t)hdr->stacks * hdr->stack_size);
}

void page_layout(struct sb_page_header *hdr, const struct page_want *want)
{
	const bool little = want->little;
	const uint32_t more = want->more;
	uint64_t limit = little ? HALF_LITTLE : HALF_LIMIT;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t procs;

	memset(hdr, 0, sizeof(*hdr));
	hdr->magic = SB_PAGE_MAGIC;
	hdr->version = SB_PAGE_VERSION;
	hdr->header_size = sizeof(*hdr);
	hdr->targets_max = want->targets + (little && more > MORE_LITTLE ? MORE_LITTLE : more);
	hdr->slots = cpus > 32 ? 256 : 64;
	hdr->cell_size = round_page((1 + hdr->slots + SB_PAGE_SHARED_SLOTS) * SB_PAGE_SLOT_SIZE);
	hdr->block_size = (uint64_t)hdr->targets_max * hdr->cell_size;
	procs = limit / hdr->block_size;
	hdr->procs_max = procs < PROCS_LEAST ? PROCS_LEAST :
			 procs > PAGE_PROCS  ? PAGE_PROCS :
					       procs;
	hdr->procs_off = PAGE;
	hdr->blocks_off = hdr->procs_off + round_page(hdr->procs_max * sizeof(struct sb_page_proc));
	hdr->threads_off = hdr->blocks_off + hdr->block_size * hdr->procs_max;
	hdr->chunks = want->spans ? want->chunks : 0;
	if (little && hdr->chunks > CHUNKS_LITTLE)
		hdr->chunks = CHUNKS_LITTLE;
	hdr->trace_off = hdr->threads_off + SB_PAGE_TABLES * sizeof(struct sb_page_threads);
	if (hdr->chunks && want->stack_bytes) {
		hdr->stacks = little ? STACKS_LITTLE : STACKS;
		hdr->stack_size = (uint32_t)sizeof(struct sb_page_stack) + want->stack_bytes +
				  SB_PAGE_FRAMES;
		hdr->stack_list_off = hdr->trace_off + trace_size(hdr);
	}
	hdr->counters_off = hdr->trace_off + trace_size(hdr) + stack_list_size(hdr);
	hdr->notes_off = hdr->counters_off + hdr->trace_off;
	hdr->notes_size = NOTES;
	hdr->each_off = hdr->notes_off + hdr->notes_size;
	hdr->each_max = EACH;
	hdr->spans_off = hdr->each_off + EACH * sizeof(uint64_t);
	if (want->spans)
		hdr->span_blocks = little ? SPAN_BLOCKS_LITTLE : PAGE_SPAN_BLOCKS;
	while (hdr->span_blocks * span_size(hdr) > SPANS_LIMIT)
		hdr->span_blocks /= 2;
	hdr->calls_off = round_page(hdr->spans_off + hdr->span_blocks * span_size(hdr));
	hdr->size = hdr->calls_off;
	if (want->spans)
		hdr->size += hdr->procs_max * sizeof(struct sb_page_calls);
	if (want->functions) {
		hdr->functions_off = hdr->size;
		hdr->size += EACH * sizeof(struct sb_page_function);
	}
	hdr->chunks_off = hdr->size;
	if (hdr->chunks)
		hdr->size += sizeof(struct sb_page_taken) +
			     hdr->chunks * sizeof(struct sb_page_chunk);
	place_stacks(hdr);
}

static int map_refused(const struct page *page, struct sb_err *err)
{
	err_sys(err, SB_ENOMEM, "cannot map the control page (%zu MiB)", page->size >> 20);
	err_hint(err,
		 "where address space is limited (ulimit -v) lift the limit of sbinject and of the "
		 "target: the room is not memory used");
	return -SB_ENOMEM;
}

static int map_files(struct page *page, const struct sb_page_header *layout, struct sb_err *err)
{
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_NORESERVE;
	void *map;

	page->size = layout->size;
	map = mmap(NULL, page->size, prot, flags, page->files.counts, 0);
	if (map == MAP_FAILED)
		return map_refused(page, err);
	page->hdr = map;
	if (mmap(map, layout->counters_off, prot, flags | MAP_FIXED, page->files.settings, 0) ==
	    MAP_FAILED)
		return map_refused(page, err);
	/* A reader of names that starts later has no part in it (elf/reader.h). */
	madvise(map, page->size, MADV_DONTFORK);
	page->lay = *page->hdr = *layout;
	return 0;
}

/* If the target could shrink the file, an access here would end sbinject with SIGBUS. */
static int size_file(int fd, uint64_t size, struct sb_err *err)
{
	if (ftruncate(fd, (off_t)size) < 0)
		return err_sys(err, SB_ENOMEM, "cannot size the control page");
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0 ||
	    lseek(fd, 0, SEEK_END) != (off_t)size)
		return err_sys(err, SB_ETARGET, "cannot seal the control page");
	return 0;
}

/* From here on no process can map the settings writable; sbinject's own mapping exists already. */
static int seal_files(struct page *page, struct sb_err *err)
{
	page->sealed = fcntl(page->files.settings, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0;
	if ((!page->sealed && errno != EINVAL) ||
	    fcntl(page->files.settings, F_ADD_SEALS, F_SEAL_SEAL) < 0 ||
	    fcntl(page->files.counts, F_ADD_SEALS, F_SEAL_SEAL) < 0)
		return err_sys(err, SB_ETARGET, "cannot seal the control page");
	return 0;
}

int page_map(struct page *page, struct page_files files, const struct sb_page_header *layout,
	     struct sb_err *err)
{
	int ret;

	memset(page, 0, sizeof(*page));
	page->files = files;
	ret = size_file(files.settings, layout->counters_off, err);
	if (!ret)
		ret = size_file(files.counts, layout->size, err);
	if (!ret)
		ret = map_files(page, layout, err);
	if (!ret)
		ret = seal_files(page, err);
	if (ret)
		page_unmap(page);
	return ret;
}

void page_unmap(struct page *page)
{
	if (page->hdr)
		munmap(page->hdr, page->size);
	if (page->files.settings >= 0)
		close(page->files.settings);
	if (page->files.counts >= 0)
		close(page->files.counts);
	page->hdr = NULL;
	page->files = (struct page_files){ -1, -1 };
}

struct sb_page_proc *page_proc(const struct page *page, uint32_t proc)
{
	return (struct sb_page_proc *)((char *)page->hdr + page->lay.procs_off) + proc;
}

struct sb_page_notice *page_notice(const struct page *page)
{
	return (struct sb_page_notice *)((char *)page->hdr + page->lay.counters_off);
}

struct sb_page_ring *page_ring(const struct page *page, uint32_t proc)
{
	return (struct sb_page_ring *)((char *)page_proc(page, proc) + page->lay.counters_off);
}

static uint64_t cell_offset(const struct page *page, uint32_t proc, uint32_t target)
{
	const struct sb_page_header *h = &page->lay;

	return h->blocks_off + proc * h->block_size + (uint64_t)target * h->cell_size;
}

uint64_t page_cell_offset(const struct page *page, uint32_t target)
{
	return cell_offset(page, 0, target);
}

uint64_t page_each_offset(const struct page *page, uint32_t each)
{
	return each < page->lay.each_max ? page->lay.each_off + each * sizeof(uint64_t) : 0;
}

static struct sb_page_cell *page_cell(const struct page *page, uint32_t proc, uint32_t target)
{
	return (struct sb_page_cell *)((char *)page->hdr + cell_offset(page, proc, target));
}

struct sb_page_counts *page_counts(const struct page *page, uint32_t proc, uint32_t target)
{
	return (struct sb_page_counts *)((char *)page_cell(page, proc, target) +
					 page->lay.counters_off);
}

uint32_t page_proc_new(struct page *page, pid_t pid)
{
	for (uint32_t i = 1; i < page->lay.procs_max; i++) {
		struct sb_page_proc *p = page_proc(page, i);

		if (page->proc_used[i])
			continue;
		page->proc_used[i] = true;
		*page_ring(page, i) = (struct sb_page_ring){ 0 };
		p->done = p->quiet = 0;
		p->pid = (uint32_t)pid;
		return i;
	}
	return 0;
}

static void punch(const struct page *page, uint64_t from, uint64_t size)
{
	fallocate(page->files.counts, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
		  (off_t)size);
}

/* A hole again, and free. */
static void free_span_block(struct page *page, uint32_t block)
{
	uint64_t size = span_size(&page->lay);

	if (!block || block >= page->lay.span_blocks)
		return;
	punch(page, page->lay.spans_off + block * size, size);
	page->span_used[block] = false;
}

/* 0: there is none. Block 0 is none. */
static uint32_t new_span_block(struct page *page)
{
	for (uint32_t i = 1; i < page->lay.span_blocks; i++) {
		if (page->span_used[i])
			continue;
		page->span_used[i] = true;
		return i;
	}
	page->spans_full = page->lay.span_blocks;
	return 0;
}

void page_proc_free(struct page *page, uint32_t proc)
{
	uint64_t from = page->lay.counters_off + cell_offset(page, proc, 0);

	/*
	 * A hole again: the next process with this index starts from zero. The settings' file is
	 * sealed and keeps its contents.
	 */
	punch(page, from, page->lay.block_size);
	if (page->lay.span_blocks)
		punch(page, page->lay.calls_off + proc * sizeof(struct sb_page_calls),
		      sizeof(struct sb_page_calls));
	for (uint32_t t = 0; t < page->targets_used; t++) {
		free_span_block(page, page_cell(page, proc, t)->span_block);
		*page_cell(page, proc, t) = (struct sb_page_cell){ 0 };
	}
	page_proc(page, proc)->pid = 0;
	page->proc_used[proc] = false;
	for (int i = 0; i < PAGE_TABLE_PAIRS; i++)
		if (page->tables[i].proc == proc)
			page->tables[i].used = false;
}

struct sb_page_record page_record(const struct page *page, uint32_t proc)
{
	struct sb_page_record record = page->record;

	record.block_off = proc * page->lay.block_size;
	record.proc_off = proc * sizeof(struct sb_page_proc);
	record.calls_off = proc * sizeof(struct sb_page_calls);
	return record;
}

void page_set_clock(struct page *page, uint64_t tsc_hz)
{
	page->lay.tsc_hz = page->hdr->tsc_hz = tsc_hz;
}

uint64_t page_most_ticks(const struct page *page)
{
	return page->lay.tsc_hz ? MOST_S * page->lay.tsc_hz : 1ull << 35;
}

struct sb_page_layout page_layout_of(const struct page *page)
{
	const struct sb_page_header *h = &page->lay;

	return (struct sb_page_layout){
		.session = h->session,
		.size = h->size,
		.targets_max = h->targets_max,
		.procs_max = h->procs_max,
		.slots = h->slots,
		.cell_size = h->cell_size,
		.block_size = h->block_size,
		.procs_off = h->procs_off,
		.blocks_off = h->blocks_off,
		.threads_off = h->threads_off,
		.notes_off = h->notes_off,
		.notes_size = h->notes_size,
		.tsc_hz = h->tsc_hz,
		.counters_off = h->counters_off,
		.spans_off = h->spans_off,
		.span_blocks = h->span_blocks,
		.calls_off = h->calls_off,
		.trace_off = h->trace_off,
		.chunks_off = h->chunks_off,
		.chunks = h->chunks,
		.stacks = h->stacks,
		.stack_size = h->stack_size,
		.stack_list_off = h->stack_list_off,
		.stacks_off = h->stacks_off,
	};
}

/* A delay, and what the slot may carry over from others. An agent's hook includes its own cost. */
uint8_t page_most_shift(const struct page_setting *set)
{
	uint64_t most = (set->delay || set->delay_exit ? set->delay_ticks + set->residual_max : 0) |
			1;

	return (uint8_t)(64 - __builtin_clzll(most));
}

static uint32_t state_of(const struct page_setting *set)
{
	if (!set->enabled)
		return SB_STATE_OFF;
	return set->delay || set->delay_exit || set->filter || set->spans ? SB_STATE_SLOW :
									    SB_STATE_COUNT;
}

/*
 * A call that began before timing did is never taken for one of now. The agent times calls in state
 * SB_STATE_COUNT, too, which such a cell never has.
 */
static void begin_spans(struct page *page, uint32_t proc, struct sb_page_cell *cell, uint8_t bit)
{
	if (!cell->span_block && proc)
		cell->span_block = (uint16_t)new_span_block(page);
	cell->span_bit = bit;
	__atomic_store_n(&cell->span_epoch, cell->span_epoch + 1, __ATOMIC_RELEASE);
}

uint8_t page_value_shape(const uint16_t value[SB_PAGE_VALUES])
{
	unsigned int n = 0, stacked = 0, text = 0;

	for (; n < SB_PAGE_VALUES && value[n]; n++) {
		text |= value[n] >> SB_VALUE_TEXT;
		if (value[n] % 16 >= SB_VALUE_STACKED + stacked)
			stacked = value[n] % 16 - SB_VALUE_STACKED + 1;
	}
	return (uint8_t)((n + 1) / 2 | stacked << SB_SHAPE_STACKED | text << SB_SHAPE_TEXT);
}

void page_set(struct page *page, uint32_t proc, uint32_t target, const struct page_setting *set)
{
	struct sb_page_cell *cell = page_cell(page, proc, target);

	if (page->targets_used <= target)
		page->targets_used = target + 1;
	cell->delay_ticks = set->delay_ticks;
	cell->every = set->every;
	cell->overrun_limit = set->overrun_limit;
	cell->residual_max = set->residual_max;
	cell->pause_above = set->pause_above;
	memcpy(cell->value, set->value, sizeof(cell->value));
	cell->shape = page_value_shape(cell->value);
	if (set->spans && set->enabled &&
	    (!(cell->flags & SB_CELL_SPANS) || cell->state == SB_STATE_OFF))
		begin_spans(page, proc, cell, set->span_bit);
	cell->flags = (set->filter ? SB_CELL_THREADS : 0) | (set->delay ? SB_CELL_DELAY : 0) |
		      (set->delay_exit ? SB_CELL_DELAY_EXIT : 0) | (set->spans ? SB_CELL_SPANS : 0);
	__atomic_store_n(&cell->state, state_of(set), __ATOMIC_RELEASE);
}

/*
 * Two tables per filtered cell, used in turn, so that no probe ever sees one being rebuilt. Pair 0
 * is for cells without a table.
 */
static struct page_tables *tables_of(struct page *page, uint32_t proc, uint32_t target)
{
	struct page_tables *t, *free = NULL;

	for (int i = PAGE_TABLE_PAIRS - 1; i > 0; i--) {
		t = &page->tables[i];
		if (t->used && t->proc == proc && t->target == target)
			return t;
		if (!t->used)
			free = t;
	}
	if (free)
		*free = (struct page_tables){ .proc = proc, .target = target, .used = true };
	return free;
}

/*
 * Nothing read back from the table is believed: on old kernels the target may write it meanwhile.
 */
static void fill_table(struct sb_page_threads *table, const uint64_t *fsbase, size_t count)
{
	const uint64_t mask = SB_PAGE_TABLE_SLOTS - 1;

	memset(table, 0, sizeof(*table));
	for (size_t i = 0; i < count; i++) {
		uint64_t h = (fsbase[i] >> 6) & mask;

		for (int n = 0; n < SB_PAGE_TABLE_SLOTS; n++, h = (h + 1) & mask)
			if (!table->fsbase[h] || table->fsbase[h] == fsbase[i])
				break;
		table->fsbase[h] = fsbase[i];
	}
}

int page_set_threads(struct page *page, uint32_t proc, uint32_t target, const uint64_t *fsbase,
		     size_t count, struct sb_err *err)
{
	struct sb_page_threads *table = (void *)((char *)page->hdr + page->lay.threads_off);
	struct page_tables *t = tables_of(page, proc, target);
	uint64_t number;

	if (!t || count > SB_PAGE_TABLE_SLOTS / 2)
		return err_set(err, SB_ENOMEM, "too many threads or processes for thread=");
	t->second = !t->second;
	number = 2 * (uint64_t)(t - page->tables) + t->second;
	fill_table(table + number, fsbase, count);
	__atomic_store_n(&page_cell(page, proc, target)->threads, number, __ATOMIC_RELEASE);
	return 0;
}

void page_lease(struct page *page, uint64_t until_ticks)
{
	__atomic_store_n(&page->hdr->lease_until, until_ticks, __ATOMIC_RELEASE);
}

uint32_t page_doorbells_lost(const struct page *page)
{
	return __atomic_load_n(&page_notice(page)->doorbells_lost, __ATOMIC_RELAXED);
}

uint32_t page_ended(const struct page *page, uint32_t proc)
{
	return __atomic_load_n(&page_ring(page, proc)->ended, __ATOMIC_ACQUIRE);
}

void page_quiet(struct page *page, uint32_t proc, uint32_t ended)
{
	__atomic_store_n(&page_proc(page, proc)->quiet, ended + 1, __ATOMIC_RELEASE);
}

void page_kick(struct page *page)
{
	__atomic_add_fetch(&page->hdr->generation, 1, __ATOMIC_ACQ_REL);
}

void page_note_cut(struct page *page, uint64_t cell, uint64_t ticks, uint64_t overrun)
{
	uint64_t off = cell - page->lay.blocks_off;
	struct sb_page_counts *c;

	if (off >= page->lay.threads_off - page->lay.blocks_off || off % page->lay.cell_size)
		return;
	c = (struct sb_page_counts *)((char *)page->hdr + page->lay.counters_off + cell);
	__atomic_add_fetch(&c->cuts, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&c->cut_ticks, ticks, __ATOMIC_RELAXED);
	/* The shared slots are changed by atomic additions only, here too. */
	__atomic_add_fetch(&c->slot[page->lay.slots].overrun_ticks, overrun, __ATOMIC_RELAXED);
}

void page_answer(struct page *page, uint32_t proc)
{
	struct sb_page_proc *p = page_proc(page, proc);
	uint32_t ring = __atomic_load_n(&page_ring(page, proc)->ring, __ATOMIC_ACQUIRE);

	if (p->done == ring)
		return;
	__atomic_store_n(&p->done, ring, __ATOMIC_RELEASE);
	syscall(SYS_futex, &p->done, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void answer_doorbells(struct page *page)
{
	for (uint32_t i = 0; i < page->lay.procs_max; i++)
		page_answer(page, i);
}

void page_close_all(struct page *page)
{
	for (uint32_t p = 0; p < page->lay.procs_max; p++)
		for (uint32_t t = 0; (p == 0 || page->proc_used[p]) && t < page->targets_used; t++)
			__atomic_store_n(&page_cell(page, p, t)->state, SB_STATE_OFF,
					 __ATOMIC_RELEASE);
	page_kick(page);
	answer_doorbells(page);
}
