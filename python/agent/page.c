/* SPDX-License-Identifier: MIT */
#include "page.h"

#include <string.h>
#include <unistd.h>

#define NOTE_TEXT_MAX 1000 /* of each of a note's texts */

static bool inside(uint64_t size, uint64_t off, uint64_t len)
{
	return off <= size && len <= size - off;
}

/* In the front, and so in the rear, which is as long. */
static bool blocks_fit(const struct sb_page_layout *p)
{
	const uint64_t front = p->counters_off ? p->threads_off : p->size;
	uint64_t cell = 1024 + (p->slots + SB_PAGE_SHARED_SLOTS) * (uint64_t)SB_PAGE_SLOT_SIZE;

	return !(p->counters_off & 7) && inside(p->size, p->counters_off, front) && p->slots &&
	       p->slots <= 1 << 16 && !(p->slots & (p->slots - 1)) && p->targets_max &&
	       p->targets_max <= 1 << 20 && p->procs_max && p->procs_max <= 1 << 24 &&
	       p->cell_size >= cell && !(p->cell_size & 1023) && !(p->block_size & 1023) &&
	       p->block_size >= (uint64_t)p->targets_max * p->cell_size &&
	       p->block_size <= p->size / p->procs_max && !(p->blocks_off & 7) &&
	       inside(front, p->blocks_off, p->block_size * p->procs_max) && !(p->procs_off & 7) &&
	       inside(front, p->procs_off, p->procs_max * sizeof(struct sb_page_proc));
}

static uint64_t span_size(const struct sb_page_layout *p)
{
	return (p->slots + SB_PAGE_SHARED_SLOTS) * sizeof(struct sb_page_span);
}

static bool spans_fit(const struct sb_page_layout *p)
{
	return !p->span_blocks ||
	       (p->span_blocks <= 1 << 16 && !(p->span_blocks & (p->span_blocks - 1)) &&
		!(p->spans_off & 7) &&
		inside(p->size, p->spans_off, p->span_blocks * span_size(p)));
}

static bool chunks_fit(const struct sb_page_layout *p)
{
	return !p->chunks ||
	       (p->span_blocks && p->chunks <= 1 << 24 && !(p->chunks & (p->chunks - 1)) &&
		!((p->calls_off | p->trace_off | p->chunks_off) & 7) &&
		inside(p->size, p->calls_off, p->procs_max * sizeof(struct sb_page_calls)) &&
		inside(p->counters_off, p->trace_off,
		       sizeof(struct sb_page_trace) + p->chunks * sizeof(uint32_t)) &&
		inside(p->size, p->chunks_off,
		       sizeof(struct sb_page_taken) + p->chunks * sizeof(struct sb_page_chunk)));
}

static bool stacks_fit(const struct sb_page_layout *p)
{
	const uint64_t least = sizeof(struct sb_page_stack) + SB_PAGE_FRAMES;

	return !p->stacks ||
	       (p->chunks && p->stacks <= 1 << 20 && !(p->stacks & (p->stacks - 1)) &&
		p->stack_size >= least && p->stack_size <= 1 << 20 &&
		!((p->stack_size | p->stack_list_off | p->stacks_off) & 7) &&
		inside(p->counters_off, p->stack_list_off,
		       sizeof(struct sb_page_stacks) + p->stacks * sizeof(uint32_t)) &&
		inside(p->size, p->stacks_off,
		       sizeof(struct sb_page_stacks_taken) + p->stacks * p->stack_size));
}

static bool rest_fits(const struct sb_page_layout *p)
{
	return spans_fit(p) && chunks_fit(p) && stacks_fit(p) &&
	       inside(p->size, p->threads_off, SB_PAGE_TABLES * sizeof(struct sb_page_threads)) &&
	       !(p->threads_off & 7) && inside(p->size, p->notes_off, p->notes_size) &&
	       !(p->notes_off & 7);
}

int page_open(struct page *page, const struct sb_mailbox *mailbox)
{
	const struct sb_page_layout *p = &mailbox->page;

	if (!mailbox->page_addr || mailbox->page_addr & 4095 || !mailbox->record_addr ||
	    mailbox->record_addr & 7)
		return SB_AGENT_DAMAGED;
	if (p->size > INT64_MAX || p->size < sizeof(struct sb_page_header) || !blocks_fit(p) ||
	    !rest_fits(p))
		return SB_AGENT_DAMAGED;
	*page = (struct page){
		.base = (char *)(uintptr_t)mailbox->page_addr,
		.size = p->size,
		.blocks_off = p->blocks_off,
		.block_size = p->block_size,
		.last_block = p->block_size * (p->procs_max - 1),
		.cell_size = p->cell_size,
		.threads_off = p->threads_off,
		.procs_off = p->procs_off,
		.last_proc = (p->procs_max - 1) * sizeof(struct sb_page_proc),
		.notes_off = p->notes_off,
		.notes_size = p->notes_size,
		.spans_off = p->spans_off,
		.span_size = span_size(p),
		.span_blocks = (uint32_t)p->span_blocks,
		.calls_off = p->calls_off,
		.last_calls = (p->procs_max - 1) * sizeof(struct sb_page_calls),
		.trace_off = p->trace_off,
		.chunks_off = p->chunks_off,
		.chunks = (uint32_t)p->chunks,
		.stacks = (uint32_t)p->stacks,
		.stack_size = p->stack_size,
		.stack_list_off = p->stack_list_off,
		.stacks_off = p->stacks_off,
		.targets_max = p->targets_max,
		.slots = p->slots,
		.slot_mask = (p->slots - 1) << 10,
		.record = (const void *)(uintptr_t)mailbox->record_addr,
		.counters_off = p->counters_off,
		.session = p->session,
		.tsc_hz = p->tsc_hz,
	};
	return 0;
}

static size_t put_text(char *at, const char *text)
{
	size_t len = strlen(text);

	if (len > NOTE_TEXT_MAX)
		len = NOTE_TEXT_MAX;
	memcpy(at, text, len);
	at[len] = '\0';
	return len + 1;
}

static size_t text_size(const char *text)
{
	size_t len = strlen(text);

	return (len > NOTE_TEXT_MAX ? NOTE_TEXT_MAX : len) + 1;
}

uint64_t *page_note(const struct page *page, uint32_t cell, uint32_t line, const char *module,
		    const char *qualname, const char *file)
{
	uint64_t *used = &page_notice(page)->notes_used, at;
	size_t size = sizeof(struct sb_page_note) + text_size(module) + text_size(qualname) +
		      text_size(file);
	struct sb_page_note *note;
	char *text;

	size = ((size + 7) & ~(size_t)7) + sizeof(uint64_t);
	/* Checked first, so that the counter of a full area does not grow without end. */
	if (!inside(page->notes_size, __atomic_load_n(used, __ATOMIC_RELAXED), size))
		return NULL;
	at = __atomic_fetch_add(used, size, __ATOMIC_RELAXED);
	if (!inside(page->notes_size, at, size) || at & 7)
		return NULL;
	note = (struct sb_page_note *)(page->base + page->notes_off + at);
	note->cell = cell;
	note->pid = (uint32_t)getpid();
	note->line = line;
	text = note->text;
	text += put_text(text, module);
	text += put_text(text, qualname);
	put_text(text, file);
	__atomic_store_n(&note->size, (uint32_t)size, __ATOMIC_RELEASE);
	return (uint64_t *)((char *)note + size) - 1;
}
