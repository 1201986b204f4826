/* SPDX-License-Identifier: MIT */
#ifndef SB_PAGE_TRACE_H
#define SB_PAGE_TRACE_H

#include "page.h"

/*
 * sbinject's side of the chunks of one page, in which its processes record calls (struct
 * sb_page_trace): reads what is complete, and offers chunks again. Nothing here stops a thread. A
 * target that writes nonsense into its chunks gets nonsense as its own calls, and never more of
 * them than the chunks hold.
 *
 * One thread at a time uses a struct page_trace.
 */
struct page_trace;

/*
 * min_ticks: calls and delays below it are not recorded. per_second: events at most, in the long
 * run, by offering chunks no faster; 0: no limit.
 */
struct page_trace *page_trace_open(struct page *page, uint64_t min_ticks, double per_second);
void page_trace_free(struct page_trace *t);

/* An event with what is in the places behind it, raw: values, and then a text. */
struct page_event {
	struct sb_page_event event;
	const uint64_t *value;		   /* event.more * 2 of them */
	const struct sb_page_stack *stack; /* NULL: none, or it is lost */
};

/*
 * What the reader does with events, all of one thread and in the order in which they began to be
 * written: proc is the index of its process, which is in use; owner its ~FS base. ready() decides
 * whether events of this thread can be taken now; those of the others stay. first: the start of one
 * of them, TSC.
 */
struct page_trace_ops {
	bool (*ready)(void *ctx, uint32_t proc, uint64_t owner, uint64_t first);
	void (*events)(void *ctx, uint32_t proc, uint64_t owner, const struct page_event *event,
		       size_t n);
	/* No thread of this FS base is alive. */
	bool (*dead)(void *ctx, uint32_t proc, uint64_t owner);
};

/* Takes what is complete; at most about `most` events. Returns their number. */
size_t page_trace_drain(struct page_trace *t, const struct page_trace_ops *ops, void *ctx,
			size_t most);

/* Takes back the chunks of threads that have ended, which no thread writes to any more. Rarely. */
void page_trace_reclaim(struct page_trace *t, const struct page_trace_ops *ops, void *ctx);

/*
 * The process runs no more, or its hooks are gone: takes all that it has recorded, without asking
 * ready(), and its chunks back. Its index must still be in use. proc UINT32_MAX: every process.
 */
void page_trace_end(struct page_trace *t, uint32_t proc, const struct page_trace_ops *ops,
		    void *ctx);

/* So far. lost: since no chunk was free, or a thread was ended in the middle of a record. */
struct page_trace_sums {
	uint64_t events, lost, unseen, shorter;
	uint64_t stacks_lost; /* of events */
};
struct page_trace_sums page_trace_sums(const struct page_trace *t);

#endif
