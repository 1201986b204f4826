/* SPDX-License-Identifier: MIT */
#ifndef SB_PAGE_H
#define SB_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include "page-abi.h"
#include "src/base/err.h"

/*
 * sbinject's side of a control page (page-abi.h): its layout, its settings, its counters. One page
 * serves one program image and all its forks; an exec starts a new one.
 *
 * page_layout() computes how large the memfds must be; the target makes them; page_map() maps them
 * here, both in one piece as the target does, and seals the one with the settings. Reading counters
 * leaves the files' holes in place, so it uses no memory.
 */
enum { PAGE_PROCS = 256, PAGE_SPAN_BLOCKS = 4096, PAGE_TABLE_PAIRS = SB_PAGE_TABLES / 2 };

/*
 * settings: as large as the page up to counters_off; counts: as large as the page, and empty up to
 * counters_off. -1: none.
 */
struct page_files {
	int settings, counts;
};

/* Two tables of the thread filter that serve one cell in turn. */
struct page_tables {
	uint32_t proc, target;
	bool used, second; /* the second table is the one in use */
};

struct page {
	struct sb_page_header *hdr;
	struct sb_page_header lay; /* its layout, in sbinject's own copy */
	bool sealed;		   /* the target cannot write the settings: Linux 5.1 and later */
	struct page_files files;
	size_t size;
	uint64_t target_addr;	    /* its address in the targets */
	bool proc_used[PAGE_PROCS]; /* allocated entries; recorded here, not read from the page */
	struct page_tables tables[PAGE_TABLE_PAIRS];
	bool span_used[PAGE_SPAN_BLOCKS];
	bool spans_full; /* there was none for a target of a process: its calls are not timed */
	uint64_t span_cost[2];	/* of a timed call's measurement: in its own time, in its caller's;
				   ticks. Stubs have a copy */
	uint64_t value_cost[2]; /* ... and what its values add to these */
	uint32_t targets_used;	/* set cells: the memory of the others is not allocated yet */
	/* Contents of new records: the longest delay so far, the mappings announced last. */
	struct sb_page_record record;
};

/* The setting of one target; times in ticks. */
struct page_setting {
	bool enabled;
	bool delay;	 /* false: count only */
	bool filter;	 /* by thread; see page_set_threads() */
	bool delay_exit; /* at the exits, where the entry is hooked, too */
	bool spans; /* calls are timed, where the function's exits are hooked or an agent does it */
	uint8_t span_bit; /* its own among the timed targets, see SB_PAGE_SPAN_TARGETS */
	uint16_t value[SB_PAGE_VALUES]; /* as in its cell */
	uint64_t delay_ticks, every, overrun_limit, residual_max, pause_above;
};

/* Sums over the slots of one cell. */
struct page_sums {
	uint64_t hits, delayed, cuts;
	uint64_t injected_ticks, cut_ticks, overrun_ticks, lapsed, max_ticks;
	uint64_t bucket[SB_PAGE_BUCKETS];
	uint64_t busiest_hits; /* of the one slot with the most hits */
};

/* Sums over the threads of one timed cell: see struct sb_page_span. */
struct page_spans {
	uint64_t begun, calls, ticks, own_ticks, outer_ticks, apart;
	uint64_t least, most;	      /* of calls > 0 */
	uint64_t sum[SB_PAGE_VALUES]; /* UINT64_MAX: too large */
	uint64_t summed[SB_PAGE_VALUES];
	uint64_t bucket[SB_PAGE_SPAN_BUCKETS];
};

/*
 * Fills a header; the size is in hdr->size. The number of slots is by the number of CPUs.
 */
struct page_want {
	uint32_t targets, more; /* this number of targets, and of later ones */
	bool spans;		/* calls can be timed */
	bool functions;		/* ... also by function */
	uint32_t chunks;	/* ... and recorded in this number of chunks, a power of two */
	uint32_t stack_bytes;	/* ... with so much of their stacks, a multiple of 8; 0: none */
	/*
	 * The address space of the processes that map it is limited, so there are fewer spare
	 * targets and fewer processes.
	 */
	bool little;
};
void page_layout(struct sb_page_header *hdr, const struct page_want *want);

/*
 * Sizes the files (it owns them from the call on, also on failure), maps them and writes the
 * header. Then it seals the settings, so that no other mapping of them can be written: the target
 * must not have had the time to map them.
 */
int page_map(struct page *page, struct page_files files, const struct sb_page_header *layout,
	     struct sb_err *err);
void page_unmap(struct page *page);

/*
 * Copies to a page of the same layout all that the other one has of a process and the settings of
 * process 0, its index included. Functions' own counters start at 0 in the new page. No thread of
 * the process may run.
 */
void page_take_over(struct page *page, const struct page *from, uint32_t proc);

/* Ticks per second, for the code in the target. */
void page_set_clock(struct page *page, uint64_t tsc_hz);
/* The layout for the code in the target, to be kept in memory of its own. */
struct sb_page_layout page_layout_of(const struct page *page);
/* The upper bound of a delay or a doorbell's wait, where no other is known; ticks. */
uint64_t page_most_ticks(const struct page *page);

/* A free process index (never 0) marked with pid, or 0 when the table is full. */
uint32_t page_proc_new(struct page *page, pid_t pid);
void page_proc_free(struct page *page, uint32_t proc); /* releases the memory of its counters */
struct sb_page_proc *page_proc(const struct page *page, uint32_t proc);
/* Written by the target: any number is possible. */
struct sb_page_notice *page_notice(const struct page *page);
struct sb_page_ring *page_ring(const struct page *page, uint32_t proc);
struct sb_page_counts *page_counts(const struct page *page, uint32_t proc, uint32_t target);
/*
 * page_quiet() silences the doorbell of an interpreter's start while that many interpreters of the
 * process have ended, and no longer. The number is taken by page_ended() before the interpreter is
 * asked for anything: a later one may count its own end, and the next start would go unseen.
 */
uint32_t page_ended(const struct page *page, uint32_t proc);
void page_quiet(struct page *page, uint32_t proc, uint32_t ended);
struct sb_page_record page_record(const struct page *page, uint32_t proc);

/* The cell of a target in process 0, as an offset from the header (what stubs are given). */
uint64_t page_cell_offset(const struct page *page, uint32_t target);

/* The bound that a record must allow before this setting is stored: see most_shift. */
uint8_t page_most_shift(const struct page_setting *set);

/*
 * The offset of a function's own counter from the header; 0: no counter has this number.
 * page_each_add() adds what the first n have counted, in all processes of the page, to sums.
 */
uint64_t page_each_offset(const struct page *page, uint32_t each);
void page_each_add(const struct page *page, uint64_t *sums, size_t n);

/*
 * The notes of agents, one after another. Begin with `at` 0, or where an earlier call ended. False:
 * no further note is complete yet. The strings are a copy, valid until the next call;
 * page_note_done() frees it.
 */
struct page_note {
	uint64_t at; /* where the next one begins */
	uint32_t cell, pid, line;
	const char *module, *symbol, *file;
	uint64_t hits;
	void *copy;
};
bool page_next_note(const struct page *page, struct page_note *note);
void page_note_done(struct page_note *note);

/* The shape of a cell with these values. */
uint8_t page_value_shape(const uint16_t value[SB_PAGE_VALUES]);

/* Stores a setting: the state last, so that a hit sees all of it or none. */
void page_set(struct page *page, uint32_t proc, uint32_t target, const struct page_setting *set);

/* Replaces the thread filter's table; count may be 0. SB_ENOMEM when there are too many. */
int page_set_threads(struct page *page, uint32_t proc, uint32_t target, const uint64_t *fsbase,
		     size_t count, struct sb_err *err);

void page_lease(struct page *page, uint64_t until_ticks);
/* Doorbells that gave up waiting: sbinject missed the program's work until they were answered. */
uint32_t page_doorbells_lost(const struct page *page);
void page_kick(struct page *page); /* ends every spin in progress */
/*
 * Records a delay that was ended from outside: `ticks` of it were given, `overrun` ticks passed
 * beyond the delay that was set; cell: its offset, from the target.
 */
void page_note_cut(struct page *page, uint64_t cell, uint64_t ticks, uint64_t overrun);
/* Answers doorbells that need no action: those of unregistered processes (0), or of one process. */
void page_answer(struct page *page, uint32_t proc);
void page_close_all(struct page *page); /* switches all off, answers doorbells, ends spins */

/* Adds the counters of one cell to *sums. Safe against any contents. */
void page_read(const struct page *page, uint32_t proc, uint32_t target, struct page_sums *sums);
/*
 * How long each slot of one cell was delayed and interrupted in all, ticks; page_slots() entries.
 * Entries of unused slots are not written.
 */
struct page_spent {
	uint64_t injected, overrun;
};
size_t page_slots(const struct page *page);

/*
 * Adds the times of one cell's calls to *spans. Safe against any contents. page_spans_add() adds
 * two sums. page_span_quantile(): ticks, exact within the width of a bucket (3 %), and never
 * outside of the shortest and the longest call; 0 where there are none.
 */
void page_read_spans(const struct page *page, uint32_t proc, uint32_t target,
		     struct page_spans *spans);
void page_spans_add(struct page_spans *to, const struct page_spans *from);
double page_span_quantile(const struct page_spans *spans, double quantile);
/*
 * The sums of function number `each`, from 0, in all processes of the page. page_function_add()
 * adds two of them; page_function_quantile(): ticks, exact within the width of a bucket (19 %).
 */
bool page_read_function(const struct page *page, uint32_t each, struct sb_page_function *sums);
void page_function_add(struct sb_page_function *to, const struct sb_page_function *from);
double page_function_quantile(const struct sb_page_function *sums, double quantile);
/* Where its bucket i begins, ticks. */
uint64_t page_function_bucket(unsigned int i);
/* Where bucket i begins, ticks; i may be SB_PAGE_SPAN_BUCKETS. */
uint64_t page_span_bucket(unsigned int i);
void page_read_spent(const struct page *page, uint32_t proc, uint32_t target,
		     struct page_spent *spent);
/* Every slot that has counted: each is one thread's, except the shared ones at the end. */
typedef void page_slot_fn(void *ctx, size_t index, const struct sb_page_slot *slot);
void page_each_slot(const struct page *page, uint32_t proc, uint32_t target, page_slot_fn *each,
		    void *ctx);

void page_sums_add(struct page_sums *to, const struct page_sums *from);

/* Excess over the delay at a quantile of all delayed hits, ticks; 0 where there are none. */
double page_excess_quantile(const struct page_sums *sums, double quantile);

#endif
