/* SPDX-License-Identifier: MIT */
#ifndef SB_PAGE_ABI_H
#define SB_PAGE_ABI_H

#include <stdint.h>

/*
 * The control page: the memory that sbinject and its code in a target share.
 *
 * It is two memfds, made by the target itself, mapped shared by the target, by every process it
 * forks and by sbinject. Changing a delay, switching a target on or off and reading a counter are
 * plain stores and loads here; the target is never stopped for them.
 *
 *	front, "sbinject": written by sbinject; the target can only read it
 *	+0		struct sb_page_header		one page
 *	+procs_off	struct sb_page_proc[procs_max]	64 bytes each
 *	+blocks_off	block[procs_max]		struct sb_page_cell[targets_max]
 *	+threads_off	tables of the thread filter	(see below)
 *	+trace_off	struct sb_page_trace, a list of free chunks; with chunks only
 *	+stack_list_off	struct sb_page_stacks, a list of places for stacks; with stacks only
 *
 *	rear, "sbinject-counts": written by the target; c = counters_off
 *	+c		struct sb_page_notice		one page
 *	+c+procs_off	struct sb_page_ring[procs_max]	64 bytes each
 *	+c+blocks_off	block[procs_max]		struct sb_page_counts[targets_max]
 *	+notes_off	notes of agents
 *	+each_off	uint64_t[each_max]		functions' own counters
 *	+spans_off	struct sb_page_span[span_blocks][slots + 16]	how long calls took
 *	+calls_off	struct sb_page_calls[procs_max]	calls in progress; with span_blocks only
 *	+functions_off	struct sb_page_function[each_max]	how long calls of a function took
 *	+chunks_off	struct sb_page_taken, struct sb_page_chunk[chunks]	single calls
 *	+stacks_off	struct sb_page_stacks_taken, struct sb_page_stack[stacks]	their stacks
 *			(stack_size bytes each)
 *
 *	block		a process's, block_size bytes
 *	cell		a target's, in a block of either half, cell_size bytes: a setting, or 1 KiB
 *			of sums, `slots` owned slots, 16 shared slots, 1 KiB each
 *
 * Related structures have the same place in both halves, so a stub finds the one from the other by
 * adding counters_off.
 *
 * Process 0 is the entry of unregistered processes: a process whose private record is zero (a fork
 * that sbinject has not seen) uses its block, so that its hits are counted, though not separately.
 * The file is sparse: a cell that was never hit uses no memory.
 *
 * Writers: sbinject writes the front, the target writes the rear. Every number in the rear is data
 * from outside for its reader. The file in front is sealed (F_SEAL_FUTURE_WRITE) once sbinject has
 * mapped it, before the target maps it: no other mapping of it can be written or made writable, and
 * the file cannot be written to.
 *
 * Any process that maps the page can write all of the rear, and a fork may have dropped its
 * privileges since. Before Linux 5.1 there is no such seal, and the same holds for the front. So
 * code in a target takes no address and no bound of a loop from either: the layout is in private
 * memory (the stub's own words, struct sb_page_layout in the mailbox), `threads` counts modulo the
 * number of tables, a probe of such a table ends after its length, a delay after the longest that
 * was ever set (struct sb_page_record), and a doorbell's wait after some seconds.
 *
 * A slot is owned by one thread, identified by its FS base, and its owner counts without a lock
 * prefix: no two threads of one process share an FS base, and a signal handler on the same thread
 * interrupts only between whole instructions. Threads that find their slot taken, and all threads
 * where RDFSBASE may not be used, count in the shared slots with a lock prefix.
 *
 * All times are in TSC ticks. Assembly code (stub-code.S) uses the byte offsets: they are checked
 * below and may never change within one version.
 */
#define SB_PAGE_MAGIC	     0x31656761706a6273ull /* "sbjpage1" */
#define SB_PAGE_VERSION	     10
#define SB_PAGE_SHARED_SLOTS 16 /* a cell, after the owned ones */
#define SB_PAGE_SLOT_SIZE    1024
#define SB_PAGE_BUCKETS	     120
#define SB_PAGE_BUCKET_SHIFT 2	  /* buckets start at 4 ticks */
#define SB_PAGE_TABLES	     128  /* of the thread filter; a power of two */
#define SB_PAGE_TABLE_SLOTS  8192 /* FS bases in each; a power of two */
#define SB_PAGE_SPAN_BUCKETS 1216
#define SB_PAGE_SPAN_STEPS   32 /* buckets for each power of two, from 2 * 32 ticks on */
#define SB_PAGE_SPAN_BITS    63 /* of sb_page_call.within */
/*
 * Targets that can be timed at once. span_bit, the number of one, is below 255 and modulo 64 its
 * bit; 63, 127 and 191 are not used.
 */
#define SB_PAGE_SPAN_TARGETS (4 * SB_PAGE_SPAN_BITS)
#define SB_PAGE_VALUES	     12 /* arguments and return values of a call that are recorded */
#define SB_PAGE_STACKED	     5	/* words of a call that are not in registers */

enum sb_page_state {
	SB_STATE_OFF = 0,   /* not counted */
	SB_STATE_COUNT = 1, /* counted */
	SB_STATE_SLOW = 2,  /* counted, filtered and delayed, according to the cell's settings */
};

enum sb_page_flags {
	SB_CELL_THREADS = 1,	/* only threads whose FS base is in the table at threads */
	SB_CELL_DELAY = 2,	/* delay_ticks is to be spent (0 is legal: the floor) */
	SB_CELL_SPANS = 4,	/* calls are timed: see struct sb_page_span */
	SB_CELL_DELAY_EXIT = 8, /* the same at the exits of a function whose entry is hooked, too */
};

/*
 * One value of each call. Bits 0 to 3: 1 to 6, the argument in that register; 7, what is returned;
 * 9, the address that it returns to, which has no sum; 10 to 14, a word that is not in a register
 * (struct sb_page_stacked); 0, none, and none after it. Bits 8 to 13: 64 less its size in bits.
 */
enum sb_page_value {
	SB_VALUE_SUM = 16,
	SB_VALUE_SIGNED = 32, /* negative ones are not added */
	SB_VALUE_BOOL = 64,   /* 0 or 1, by its lowest byte */
	SB_VALUE_UPPER = 128, /* it is in the upper half of the word */
	SB_VALUE_SHIFT = 8,
	SB_VALUE_TEXT = 14, /* from this bit on: enum sb_page_text */
	SB_VALUE_RETURNED = 7,
	SB_VALUE_CALLER = 9,
	SB_VALUE_STACKED = 10,
};

/*
 * Of a value that is a text, which the function writes: it follows the values, and is known where
 * the words are that are not in registers. Read at the exit, if the function returns (not by a
 * jump) and has succeeded, and only within the stack of its thread above the call.
 */
enum sb_page_text {
	SB_TEXT_ZERO = 1, /* it has returned 0, as an int */
	SB_TEXT_POSITIVE, /* ... 0 or more */
	SB_TEXT_POINTER,  /* ... any pointer but NULL */
};

/*
 * What follows from the values of a cell: bits 0 to 2, the places that they take in a chunk, two
 * values in each; bits 3 to 5, the words that are not in registers; bits 6 and 7, enum
 * sb_page_text.
 */
enum { SB_SHAPE_STACKED = 3, SB_SHAPE_TEXT = 6 };

struct sb_page_slot {
	uint64_t owner; /* ~FS base, 0: free (shared slots: always 0) */
	uint64_t hits;
	uint64_t injected_ticks; /* measured, without the hook's fixed cost and without overrun */
	uint64_t overrun_ticks;	 /* of hits that ended overrun_limit late: the excess */
	int64_t residual_ticks; /* given more (+) or less (-) than set so far; evens out rounding */
	uint64_t lapsed;	/* hits not delayed because the lease had run out */
	uint64_t max_ticks;	/* longest time one hit took, overrun included */
	uint64_t exits;		/* of SB_CELL_DELAY_EXIT: as hits, for `every` */
	/*
	 * Delayed hits by excess over delay_ticks: v = excess >> SB_PAGE_BUCKET_SHIFT (below 0: 0);
	 * bucket v for v < 4, else 4 per power of two: (e - 1) * 4 + next two bits, e = log2 v.
	 */
	uint64_t bucket[SB_PAGE_BUCKETS];
};

struct sb_page_cell {
	uint32_t state;		/* enum sb_page_state; read by every hit */
	uint32_t flags;		/* enum sb_page_flags */
	uint64_t delay_ticks;	/* to spin; the hook's own cost is already subtracted */
	uint64_t every;		/* delay each Nth hit of a slot; 0 and 1: every hit */
	uint64_t overrun_limit; /* a spin that ends later by more than this was interrupted */
	uint64_t residual_max;	/* bound of residual_ticks, both signs */
	uint64_t pause_above;	/* PAUSE while more than this remains */
	uint64_t threads;	/* number of a table, modulo SB_PAGE_TABLES; SB_CELL_THREADS */
	/*
	 * Of SB_CELL_SPANS. block: modulo span_blocks; 0: none. bit: modulo 64 its bit in
	 * `within`, a different one for each target. epoch: changes whenever timing begins, so that
	 * no call from before is taken for one of after it.
	 */
	uint16_t span_block;
	uint8_t span_bit, shape; /* of its values: SB_SHAPE_STACKED */
	uint32_t span_epoch;
	uint16_t value[SB_PAGE_VALUES]; /* enum sb_page_value, of native functions */
};

/*
 * How long calls took, of one thread or of all threads that count in a shared slot: at the same
 * index as their struct sb_page_slot. Times are from entry to return, in ticks, without the time of
 * the measurement itself, and without the delays that these calls were given themselves. Of a
 * function that was called and did not return through one of its exits (an exception, longjmp(), a
 * thread that ended) there is no time: begun - calls is the number of those, and of the calls in
 * progress.
 *
 * Python (agent): a call within a call of the same target is part of the outer one; for a generator
 * or a coroutine, the time of the stretches in which it ran.
 */
struct sb_page_span {
	uint64_t begun; /* agent: calls that began while timing was on. Of native functions, hits
			   are */
	uint64_t calls; /* ... and returned: the number of calls in all that follows */
	uint64_t ticks;
	uint64_t own_ticks;   /* without timed calls that they made; see apart */
	uint64_t outer_ticks; /* of calls that were not made within a call of a target with the
				 same bit: of the same target, where it is alone with it */
	uint64_t inv_least;   /* ~ticks of the shortest one */
	uint64_t most;	      /* ticks of the longest one */
	uint64_t apart; /* calls in these sums of which it is not known in which call they were made
			 */
	uint64_t last;	/* ticks + 1 of a call that is not in its bucket yet; 0: none */
	/* By the cell's values; all ones: too large. And the number of calls that are in them. */
	uint64_t sum[SB_PAGE_VALUES], summed[SB_PAGE_VALUES];
	uint64_t reserved[31];
	/*
	 * Calls by ticks. v: bucket v for v < 32, else 32 for each power of two:
	 * (e - 4) * 32 + next five bits, e = log2 v; at most the last one.
	 */
	uint64_t bucket[SB_PAGE_SPAN_BUCKETS];
};

/*
 * The same sums of one function, of all processes and threads of the page, in less detail: buckets
 * as in struct sb_page_slot, but of ticks, from 1 tick on.
 */
struct sb_page_function {
	uint64_t calls, ticks, own_ticks, most, inv_least, apart;
	uint64_t reserved[2];
	uint64_t bucket[SB_PAGE_BUCKETS];
};

/*
 * The calls in progress of a process. A call is found by the address of its return address, which
 * is its own as long as it runs, whichever thread resumes it. Each set has two ways. Older calls
 * give way to new ones; they are not timed then.
 *
 * A reader takes an entry as a call's only if `check` agrees with all that it consists of: threads
 * and signal handlers may use the same set at the same time, without a lock.
 */
enum { SB_PAGE_CALL_SETS = 4096, SB_PAGE_CALL_THREADS = 4096 };

struct sb_page_call {
	uint64_t at; /* address of the return address; 0: free */
	/*
	 * ((start ^ at) * a constant ^ the cell's three span fields ^ within) + parent; where the
	 * cell has values, + the hash of its arguments
	 */
	uint64_t check;
	uint64_t start;
	uint64_t parent;    /* at of the timed call in which it was made; 0: none */
	uint32_t parent_at; /* offset of its entry */
	/*
	 * Low half of the address of the record of the thread that began it; 0: it has none. On a
	 * stack that threads hand to one another, the parent may be over, and another call in its
	 * place: one that another thread began, or that began later.
	 */
	uint32_t thread;
	uint64_t within;   /* bits of the targets in whose calls it was made; 1 << 63: unknown */
	uint64_t children; /* ticks of the timed calls that it made */
	uint64_t cost;	   /* ticks of their measurement */
};

/*
 * At the same index as the call: its arguments in integer registers. Their hash begins with the
 * first one, and for each further one is rotated left by 11 and gets that by exclusive or; it is
 * multiplied by the constant in the end.
 */
struct sb_page_arguments {
	uint64_t argument[6], reserved[2];
};

/*
 * At the same index: words of a call that are not in registers, as many as the cell's shape has.
 * The arguments on the stack from the 7th on, or the memory that an argument points to, if that is
 * part of the thread's own stack. They and `known` go into the same hash, behind the arguments.
 */
struct sb_page_stacked {
	uint64_t word[SB_PAGE_STACKED];
	uint64_t known; /* 0: it was not sure that they can be read, and they are 0 */
	uint64_t reserved[2];
};

/*
 * In one of the four places of the group at a hash of its FS base. Another thread may take it over
 * while its owner is in no timed call.
 */
struct sb_page_thread {
	uint64_t owner; /* ~FS base */
	uint64_t call, call_at,
		within; /* of its innermost timed call, as parent, for the next one */
	/*
	 * Of the process, in the first record. gave_way: not 0 where an entry gave way, of a call
	 * in progress or of one that left in another way. lost: not 0 where a call returned since
	 * and had no entry (the call in which it was made does not know of it), or where a call was
	 * left in another way, and what the thread called next may have counted as made in it. No
	 * exclusive time is known then.
	 */
	uint64_t gave_way, lost;
	uint64_t chunk; /* its chunk's number plus 1; 0: none. It may be another owner's: see there
			 */
	uint64_t reserved;
};

struct sb_page_calls {
	struct sb_page_call set[SB_PAGE_CALL_SETS][2];
	struct sb_page_thread thread[SB_PAGE_CALL_THREADS];
	struct sb_page_arguments arguments[SB_PAGE_CALL_SETS][2];
	struct sb_page_stacked stacked[SB_PAGE_CALL_SETS][2];
};

/*
 * Recording single calls.
 *
 * Records are written into chunks, each of which belongs to one thread. sbinject offers free chunks
 * in the front: the Nth is in chunk[N % chunks]. A thread that needs a chunk takes the next one by
 * an atomic increment of `taken`, as long as that is below `offered`; there is none otherwise, and
 * the call is lost. It writes itself into the chunk as its owner, and the chunk into its struct
 * sb_page_thread. Only a chunk's owner and its signal handlers write into it, so a place in it is
 * reserved without a lock prefix, by one exchange-and-add of `used`. A thread that finds a chunk of
 * another owner in its struct takes a new one.
 *
 * `ticks` of an event is written last: the event is complete then. A chunk whose places are all
 * complete is sbinject's again. It fills it with zeros and offers it. So a thread takes the chunk
 * out of its struct before it writes the last event. If a signal handler does that between the
 * thread's look at its struct and its reservation, the place is another owner's: the thread
 * completes it as none, and takes a new chunk.
 */
struct sb_page_trace {
	uint64_t offered;   /* number of chunks offered so far */
	uint64_t min_ticks; /* what took less is not recorded; plus 1 */
	uint64_t reserved[6];
	uint32_t chunk[];
};

/* A page at chunks_off. */
struct sb_page_taken {
	uint64_t taken;	  /* number of chunks taken so far */
	uint64_t lost;	  /* calls and delays without a record, since no chunk was free */
	uint64_t unseen;  /* ... since the process is not registered */
	uint64_t shorter; /* calls and delays below min_ticks, of threads without a chunk */
	uint64_t reserved[508];
};

enum sb_page_event_kind {
	SB_EVENT_CALL = 1,
	SB_EVENT_DELAY, /* of the call that follows, or has ended */
	/* A call; function: the offset of the counter in its note from notes_off, in 8 bytes. */
	SB_EVENT_PYTHON,
};

/*
 * Behind the values of a call whose target has a text are places with that, 16 bytes in each,
 * filled up with zeros.
 *
 * A call whose cell has values takes further places, directly behind its own, with two values each
 * (struct sb_page_more): raw, as the registers or the memory held them. They are complete before
 * the call's `ticks` is written.
 */
struct sb_page_event {
	/* That it took, as in struct sb_page_span, plus 1. 0: not complete; all ones: none. */
	uint64_t ticks;
	uint64_t start;	   /* TSC */
	uint32_t function; /* its number among those that are counted by themselves; 0: none */
	uint8_t span_bit;  /* of the target, as in its cell */
	uint8_t kind;	   /* enum sb_page_event_kind */
	uint8_t more;	   /* places of values behind it */
	uint8_t known;	   /* with values: enum sb_page_known */
};

enum sb_page_known {
	SB_KNOWN_RETURNED = 1, /* it ended with a return, not with a jump to another function */
	SB_KNOWN_STACKED = 2,  /* words that are not in registers */
	SB_KNOWN_STACK = 4,    /* its last place is that of a stack: see struct sb_page_stack */
};

#define SB_EVENT_MORE (UINT64_MAX - 1)

struct sb_page_more {
	uint64_t mark; /* SB_EVENT_MORE; 0: not complete; all ones: none */
	uint64_t value[2];
};

enum { SB_PAGE_EVENTS = 168 };

struct sb_page_chunk {
	uint64_t used;	    /* reserved places; may exceed their number */
	uint64_t owner;	    /* ~FS base of its thread */
	uint64_t calls_off; /* of its process: see struct sb_page_record */
	uint64_t limit;	    /* number of places that will be complete; 0: all of them */
	uint64_t shorter;   /* calls and delays below min_ticks, or left out by `every` */
	uint64_t reserved[3];
	struct sb_page_event event[SB_PAGE_EVENTS];
};

/*
 * The stacks of recorded calls, for their callers: a copy of the stack from the return address on,
 * made at the call's exit, where the registers that a function preserves have their caller's values
 * again.
 *
 * Places are offered and taken as chunks are: the Nth that is offered is slot[N % stacks]. A thread
 * takes one when it has a place for its event, and writes into the event's last place (struct
 * sb_page_more) the place's number plus 1, 0 if there was none, and the check of what it wrote.
 * Another process that writes there at the same time (a fork in the middle of the copy) makes the
 * check fail. sbinject offers the place again once it has read the event, or after some seconds
 * without one.
 *
 * No system call is made and no address is read that may not be mapped: the copy ends where the
 * thread's stack is known to end (as with struct sb_page_stacked), or else with its page.
 *
 * Where the thread runs Python, the frames of its interpreter follow, behind the place's words, in
 * SB_PAGE_FRAMES bytes: struct sb_page_frame, from the innermost one on. Their names are copied at
 * once, since their code may be gone a moment later.
 */
struct sb_page_stacks {
	uint64_t offered; /* number of places offered so far */
	uint64_t reserved[7];
	uint32_t slot[];
};

/* A page at stacks_off. */
struct sb_page_stacks_taken {
	uint64_t taken; /* number of places taken so far */
	uint64_t reserved[511];
};

enum sb_page_stack_end {
	SB_STACK_CUT,	/* the copy is as large as a copy may be */
	SB_STACK_WHOLE, /* it ends where the stack does */
	SB_STACK_PAGE,	/* the end of this stack is unknown: it ends with its page */
};

struct sb_page_stack {
	uint64_t owner;	    /* ~FS base of its thread */
	uint64_t calls_off; /* of its process, and the start of its call, as in the event */
	uint64_t start;
	uint32_t size; /* bytes copied, a multiple of 8 */
	uint32_t end;  /* enum sb_page_stack_end */
	uint64_t sp;   /* the address of the return address, where the copy begins */
	uint64_t bp, bx, r12, r13, r14, r15;
	uint32_t frames;     /* bytes of struct sb_page_frame, a multiple of 8 */
	uint32_t frames_end; /* enum sb_page_frames_end */
	uint64_t reserved[4];
	/* Its check: their sum, and start, sp, frames and frames_end as one word, and the words of
	 * the frames. */
	uint64_t word[];
};

enum { SB_PAGE_FRAMES = 8192, SB_PAGE_FRAME_TEXT = 512 };

enum sb_page_frames_end {
	SB_FRAMES_NONE,	  /* this thread runs no Python that is known */
	SB_FRAMES_ALL,	  /* there are no more */
	SB_FRAMES_FULL,	  /* there are more than find room */
	SB_FRAMES_ENDING, /* the interpreter ends, and its frames may be gone */
	SB_FRAMES_ODD,	  /* what is there is no frame */
	SB_FRAMES_FAULT,  /* it could not be read */
};

/*
 * A Python frame, or the end of those that one call of the function that runs Python has on the
 * thread's stack. Its texts follow, UTF-8, filled up to 8 bytes with zeros: the name, then the
 * file's. A text that was longer than SB_PAGE_FRAME_TEXT ends with "...".
 */
struct sb_page_frame {
	uint64_t at; /* an address in the stack frame of that call; then no more fields; 0: a frame
		      */
	uint32_t line; /* 0: unknown */
	uint16_t name; /* bytes */
	uint16_t file; /* bytes; SB_FRAME_SAME and an eighth of the offset of another frame: its
			  file */
	char text[];
};
#define SB_FRAME_SAME 0x8000

/* At the same place in the rear. Its fields use offsets that are free in struct sb_page_cell. */
struct sb_page_counts {
	uint64_t settings[7]; /* not used */
	uint64_t cuts;	      /* delayed hits that left early because of a change */
	uint64_t cut_ticks;   /* the time that they spent */
	uint64_t reserved[(1024 - 72) / 8];
	struct sb_page_slot slot[]; /* header.slots owned ones, then the shared ones */
};

/* A table of the thread filter: FS bases, open addressing from (fsbase >> 6) % SB_PAGE_TABLE_SLOTS
 * on; 0 ends a probe, and so does the whole table. Table 0 stays empty. */
struct sb_page_threads {
	uint64_t fsbase[SB_PAGE_TABLE_SLOTS];
};

struct sb_page_proc {
	uint32_t pid; /* 0: free */
	uint32_t reserved0;
	uint32_t done; /* doorbells answered; a futex */
	/* Do not ring for an interpreter's start where this is equal to `ended` plus one. */
	uint32_t quiet;
	uint64_t mailbox; /* the address of its mailbox; unseen forks have their copy there, too */
	uint32_t reserved[10];
};

/* At the same place in the rear. */
struct sb_page_ring {
	uint32_t reserved0;
	uint32_t ring; /* doorbells rung */
	uint32_t reserved1[4];
	uint32_t ended; /* interpreters that have ended (agent) */
	uint32_t reserved[9];
};

struct sb_page_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_size;
	uint64_t session; /* random; the same in all pages and stubs of a session */
	uint64_t size;	  /* of the whole mapping, bytes */
	uint32_t targets_max, procs_max;
	uint32_t slots, cell_size;
	uint64_t block_size;
	uint64_t procs_off, blocks_off, threads_off;
	uint64_t tsc_hz;
	uint32_t tracer_pid;
	uint32_t reserved0;
	/* The region that is being made: mapped, but still without its journal. For recover. */
	uint64_t region_addr, region_size;
	uint64_t notes_off, notes_size; /* see struct sb_page_note */
	/* in a cache line of its own: read by delayed hits */
	uint64_t lease_until;	/* TSC; hits after it are not delayed */
	uint32_t generation;	/* a change makes every spin in progress end */
	uint32_t doorbell_spin; /* 1: doorbells wait without a system call (seccomp) */
	uint64_t reserved1[2];
	/* The mailbox made last, or being made; its length includes the code in front of it. */
	uint64_t mailbox_addr, mailbox_size;
	/*
	 * Functions' own counters, each_max of 64 bits, shared by all processes of the page: a hit
	 * of a function that has one also counts there (target).
	 */
	uint64_t each_off;
	uint32_t each_max;
	uint32_t span_blocks;  /* a power of two, 0: no call can be timed */
	uint64_t counters_off; /* where the rear begins */
	uint64_t spans_off, calls_off;
	uint64_t functions_off; /* 0: none */
	uint64_t trace_off, chunks_off;
	uint32_t chunks; /* a power of two; 0: calls are not recorded */
	uint32_t stacks; /* a power of two; 0: without their stacks */
	uint64_t stack_list_off, stacks_off;
	uint32_t stack_size; /* of a struct sb_page_stack with its words and frames, bytes */
	uint32_t reserved2;
};

/*
 * The rear's first page. In versions before 4 these fields were in the header, at the same offsets.
 */
struct sb_page_notice {
	uint64_t reserved0[11];
	uint32_t reserved1;
	/*
	 * Not 0: its session is over and all code is restored. The remaining mappings do nothing,
	 * and do not prevent an attach (sbinject). In the rear, since sbinject writes it into the
	 * target's memory.
	 */
	uint32_t dormant;
	uint64_t reserved2[6];
	uint32_t doorbell;	 /* doorbell: a futex that sbinject sleeps on */
	uint32_t doorbells_lost; /* rings that gave up waiting for their answer */
	uint64_t notes_used;	 /* bytes of notes taken so far; may exceed notes_size */
};

/*
 * What the agent reports about a function that it found (the names are not known outside). All
 * processes of the page append their notes to one area of it. Space is allocated by an atomic add
 * on notes_used, in multiples of 8, and `size` is stored last. A full area takes no more notes.
 */
struct sb_page_note {
	uint32_t size; /* of the whole note, a multiple of 8; 0: not written yet */
	uint32_t cell; /* the target it belongs to */
	uint32_t pid;
	uint32_t line; /* where the function begins; 0: unknown */
	char text[];   /* module NUL qualified name NUL file name NUL; its last 8 bytes: its hits */
};

#define SB_PAGE_CHECK(cond)	      _Static_assert(cond, #cond)
#define SB_PAGE_OFF(type, field, off) SB_PAGE_CHECK(__builtin_offsetof(struct type, field) == (off))
SB_PAGE_OFF(sb_page_slot, owner, 0);
SB_PAGE_OFF(sb_page_slot, hits, 8);
SB_PAGE_OFF(sb_page_slot, injected_ticks, 16);
SB_PAGE_OFF(sb_page_slot, overrun_ticks, 24);
SB_PAGE_OFF(sb_page_slot, residual_ticks, 32);
SB_PAGE_OFF(sb_page_slot, lapsed, 40);
SB_PAGE_OFF(sb_page_slot, max_ticks, 48);
SB_PAGE_OFF(sb_page_slot, exits, 56);
SB_PAGE_OFF(sb_page_slot, bucket, 64);
SB_PAGE_CHECK(sizeof(struct sb_page_slot) == SB_PAGE_SLOT_SIZE);
SB_PAGE_OFF(sb_page_cell, state, 0);
SB_PAGE_OFF(sb_page_cell, flags, 4);
SB_PAGE_OFF(sb_page_cell, delay_ticks, 8);
SB_PAGE_OFF(sb_page_cell, every, 16);
SB_PAGE_OFF(sb_page_cell, overrun_limit, 24);
SB_PAGE_OFF(sb_page_cell, residual_max, 32);
SB_PAGE_OFF(sb_page_cell, pause_above, 40);
SB_PAGE_OFF(sb_page_cell, threads, 48);
SB_PAGE_OFF(sb_page_cell, span_block, 56);
SB_PAGE_OFF(sb_page_cell, span_bit, 58);
SB_PAGE_OFF(sb_page_cell, shape, 59);
SB_PAGE_OFF(sb_page_cell, span_epoch, 60);
SB_PAGE_OFF(sb_page_cell, value, 64);
SB_PAGE_OFF(sb_page_span, begun, 0);
SB_PAGE_OFF(sb_page_span, calls, 8);
SB_PAGE_OFF(sb_page_span, ticks, 16);
SB_PAGE_OFF(sb_page_span, own_ticks, 24);
SB_PAGE_OFF(sb_page_span, outer_ticks, 32);
SB_PAGE_OFF(sb_page_span, inv_least, 40);
SB_PAGE_OFF(sb_page_span, most, 48);
SB_PAGE_OFF(sb_page_span, apart, 56);
SB_PAGE_OFF(sb_page_span, last, 64);
SB_PAGE_OFF(sb_page_span, sum, 72);
SB_PAGE_OFF(sb_page_span, summed, 168);
SB_PAGE_OFF(sb_page_span, bucket, 512);
SB_PAGE_CHECK(sizeof(struct sb_page_span) == 10240);
SB_PAGE_OFF(sb_page_function, ticks, 8);
SB_PAGE_OFF(sb_page_function, own_ticks, 16);
SB_PAGE_OFF(sb_page_function, most, 24);
SB_PAGE_OFF(sb_page_function, inv_least, 32);
SB_PAGE_OFF(sb_page_function, apart, 40);
SB_PAGE_OFF(sb_page_function, bucket, 64);
SB_PAGE_CHECK(sizeof(struct sb_page_function) == 1024);
SB_PAGE_OFF(sb_page_call, check, 8);
SB_PAGE_OFF(sb_page_call, start, 16);
SB_PAGE_OFF(sb_page_call, parent, 24);
SB_PAGE_OFF(sb_page_call, parent_at, 32);
SB_PAGE_OFF(sb_page_call, thread, 36);
SB_PAGE_OFF(sb_page_call, within, 40);
SB_PAGE_OFF(sb_page_call, children, 48);
SB_PAGE_OFF(sb_page_call, cost, 56);
SB_PAGE_CHECK(sizeof(struct sb_page_call) == 64);
SB_PAGE_OFF(sb_page_thread, call, 8);
SB_PAGE_OFF(sb_page_thread, call_at, 16);
SB_PAGE_OFF(sb_page_thread, within, 24);
SB_PAGE_OFF(sb_page_thread, gave_way, 32);
SB_PAGE_OFF(sb_page_thread, lost, 40);
SB_PAGE_OFF(sb_page_thread, chunk, 48);
SB_PAGE_CHECK(sizeof(struct sb_page_thread) == 64);
SB_PAGE_OFF(sb_page_calls, thread, 1 << 19);
SB_PAGE_OFF(sb_page_calls, arguments, 12 << 16);
SB_PAGE_OFF(sb_page_arguments, argument, 0);
SB_PAGE_CHECK(sizeof(struct sb_page_arguments) == 64);
SB_PAGE_OFF(sb_page_calls, stacked, 20 << 16);
SB_PAGE_OFF(sb_page_stacked, known, 40);
SB_PAGE_CHECK(sizeof(struct sb_page_stacked) == 64);
SB_PAGE_CHECK(sizeof(struct sb_page_calls) == 28 << 16);
SB_PAGE_OFF(sb_page_trace, offered, 0);
SB_PAGE_OFF(sb_page_trace, min_ticks, 8);
SB_PAGE_OFF(sb_page_trace, chunk, 64);
SB_PAGE_OFF(sb_page_taken, taken, 0);
SB_PAGE_OFF(sb_page_taken, lost, 8);
SB_PAGE_OFF(sb_page_taken, unseen, 16);
SB_PAGE_OFF(sb_page_taken, shorter, 24);
SB_PAGE_CHECK(sizeof(struct sb_page_taken) == 4096);
SB_PAGE_OFF(sb_page_event, ticks, 0);
SB_PAGE_OFF(sb_page_event, start, 8);
SB_PAGE_OFF(sb_page_event, function, 16);
SB_PAGE_OFF(sb_page_event, span_bit, 20);
SB_PAGE_OFF(sb_page_event, kind, 21);
SB_PAGE_OFF(sb_page_event, more, 22);
SB_PAGE_OFF(sb_page_event, known, 23);
SB_PAGE_CHECK(sizeof(struct sb_page_event) == 24);
SB_PAGE_OFF(sb_page_more, mark, 0);
SB_PAGE_OFF(sb_page_more, value, 8);
SB_PAGE_CHECK(sizeof(struct sb_page_more) == sizeof(struct sb_page_event));
SB_PAGE_OFF(sb_page_chunk, used, 0);
SB_PAGE_OFF(sb_page_chunk, owner, 8);
SB_PAGE_OFF(sb_page_chunk, calls_off, 16);
SB_PAGE_OFF(sb_page_chunk, limit, 24);
SB_PAGE_OFF(sb_page_chunk, shorter, 32);
SB_PAGE_OFF(sb_page_chunk, event, 64);
SB_PAGE_CHECK(sizeof(struct sb_page_chunk) == 4096);
SB_PAGE_OFF(sb_page_stacks, offered, 0);
SB_PAGE_OFF(sb_page_stacks, slot, 64);
SB_PAGE_OFF(sb_page_stacks_taken, taken, 0);
SB_PAGE_CHECK(sizeof(struct sb_page_stacks_taken) == 4096);
SB_PAGE_OFF(sb_page_stack, owner, 0);
SB_PAGE_OFF(sb_page_stack, calls_off, 8);
SB_PAGE_OFF(sb_page_stack, start, 16);
SB_PAGE_OFF(sb_page_stack, size, 24);
SB_PAGE_OFF(sb_page_stack, end, 28);
SB_PAGE_OFF(sb_page_stack, sp, 32);
SB_PAGE_OFF(sb_page_stack, bp, 40);
SB_PAGE_OFF(sb_page_stack, bx, 48);
SB_PAGE_OFF(sb_page_stack, r12, 56);
SB_PAGE_OFF(sb_page_stack, r13, 64);
SB_PAGE_OFF(sb_page_stack, r14, 72);
SB_PAGE_OFF(sb_page_stack, r15, 80);
SB_PAGE_OFF(sb_page_stack, frames, 88);
SB_PAGE_OFF(sb_page_stack, frames_end, 92);
SB_PAGE_OFF(sb_page_stack, word, 128);
SB_PAGE_OFF(sb_page_frame, at, 0);
SB_PAGE_OFF(sb_page_frame, line, 8);
SB_PAGE_OFF(sb_page_frame, name, 12);
SB_PAGE_OFF(sb_page_frame, file, 14);
SB_PAGE_OFF(sb_page_frame, text, 16);
SB_PAGE_OFF(sb_page_counts, cuts, 56);
SB_PAGE_OFF(sb_page_counts, cut_ticks, 64);
SB_PAGE_OFF(sb_page_counts, slot, 1024);
SB_PAGE_CHECK(sizeof(struct sb_page_cell) == 88);
SB_PAGE_OFF(sb_page_proc, pid, 0);
SB_PAGE_OFF(sb_page_proc, done, 8);
SB_PAGE_OFF(sb_page_proc, quiet, 12);
SB_PAGE_OFF(sb_page_proc, mailbox, 16);
SB_PAGE_CHECK(sizeof(struct sb_page_proc) == 64);
SB_PAGE_OFF(sb_page_ring, ring, 4);
SB_PAGE_OFF(sb_page_ring, ended, 24);
SB_PAGE_CHECK(sizeof(struct sb_page_ring) == 64);
SB_PAGE_OFF(sb_page_header, magic, 0);
SB_PAGE_OFF(sb_page_header, version, 8);
SB_PAGE_OFF(sb_page_header, header_size, 12);
SB_PAGE_OFF(sb_page_header, session, 16);
SB_PAGE_OFF(sb_page_header, size, 24);
SB_PAGE_OFF(sb_page_header, targets_max, 32);
SB_PAGE_OFF(sb_page_header, procs_max, 36);
SB_PAGE_OFF(sb_page_header, slots, 40);
SB_PAGE_OFF(sb_page_header, cell_size, 44);
SB_PAGE_OFF(sb_page_header, block_size, 48);
SB_PAGE_OFF(sb_page_header, procs_off, 56);
SB_PAGE_OFF(sb_page_header, blocks_off, 64);
SB_PAGE_OFF(sb_page_header, threads_off, 72);
SB_PAGE_OFF(sb_page_header, tsc_hz, 80);
SB_PAGE_OFF(sb_page_header, tracer_pid, 88);
SB_PAGE_OFF(sb_page_header, region_addr, 96);
SB_PAGE_OFF(sb_page_header, region_size, 104);
SB_PAGE_OFF(sb_page_header, notes_off, 112);
SB_PAGE_OFF(sb_page_header, notes_size, 120);
SB_PAGE_OFF(sb_page_header, lease_until, 128);
SB_PAGE_OFF(sb_page_header, generation, 136);
SB_PAGE_OFF(sb_page_header, doorbell_spin, 140);
SB_PAGE_OFF(sb_page_header, mailbox_addr, 160);
SB_PAGE_OFF(sb_page_header, mailbox_size, 168);
SB_PAGE_OFF(sb_page_header, each_off, 176);
SB_PAGE_OFF(sb_page_header, each_max, 184);
SB_PAGE_OFF(sb_page_header, span_blocks, 188);
SB_PAGE_OFF(sb_page_header, counters_off, 192);
SB_PAGE_OFF(sb_page_header, spans_off, 200);
SB_PAGE_OFF(sb_page_header, calls_off, 208);
SB_PAGE_OFF(sb_page_header, functions_off, 216);
SB_PAGE_OFF(sb_page_header, trace_off, 224);
SB_PAGE_OFF(sb_page_header, chunks_off, 232);
SB_PAGE_OFF(sb_page_header, chunks, 240);
SB_PAGE_OFF(sb_page_header, stacks, 244);
SB_PAGE_OFF(sb_page_header, stack_list_off, 248);
SB_PAGE_OFF(sb_page_header, stacks_off, 256);
SB_PAGE_OFF(sb_page_header, stack_size, 264);
SB_PAGE_CHECK(sizeof(struct sb_page_header) == 272);
SB_PAGE_OFF(sb_page_notice, dormant, 92);
SB_PAGE_OFF(sb_page_notice, doorbell, 144);
SB_PAGE_OFF(sb_page_notice, doorbells_lost, 148);
SB_PAGE_OFF(sb_page_notice, notes_used, 152);
SB_PAGE_OFF(sb_page_note, size, 0);
SB_PAGE_OFF(sb_page_note, cell, 4);
SB_PAGE_OFF(sb_page_note, pid, 8);
SB_PAGE_OFF(sb_page_note, line, 12);
SB_PAGE_OFF(sb_page_note, text, 16);
SB_PAGE_OFF(sb_page_threads, fsbase, 0);
SB_PAGE_CHECK(sizeof(struct sb_page_threads) == 1 << 16);

/*
 * Arguments of a call in progress, for stubs alone: what they point to is read at the exit. `at` is
 * 0 while they are written; the hash is that of struct sb_page_arguments before its multiplication.
 */
struct sb_page_kept {
	uint64_t at; /* address of the return address; 0: none */
	uint64_t argument[6];
	uint64_t hash;
};
SB_PAGE_OFF(sb_page_kept, argument, 8);
SB_PAGE_OFF(sb_page_kept, hash, 56);

/*
 * How the CPython of this process keeps the frames of a thread: offsets in its structures, by its
 * version, and addresses.
 */
struct sb_page_python {
	uint32_t version;  /* PY_VERSION_HEX >> 16; 0: none, or one that is not known */
	uint16_t specific; /* from an FS base, the values of the thread's first 32 keys */
	uint16_t thread_id, frame, cframe;	     /* of a thread's state; cframe: up to 3.12 */
	uint16_t cframe_frame, cframe_previous;	     /* 3.11, 3.12: the first one */
	uint16_t code, previous, instr, owner, line; /* of a frame; line: 3.10; owner: later */
	uint16_t name, file, table, first_line, traceable, units; /* of a code object */
	uint16_t ascii, compact; /* of a str: where its characters are */
	uint16_t reserved[3];
	uint64_t key;	 /* address of the key of a thread's state */
	uint64_t ending; /* of a word that is 0 until the interpreter ends */
	uint64_t code_type, str_type, bytes_type;
};
SB_PAGE_CHECK(sizeof(struct sb_page_python) == 88);
SB_PAGE_OFF(sb_page_python, version, 0);

/*
 * The private record of an address space, in the page directly behind the control page. Every fork
 * has zeros instead (MADV_WIPEONFORK). sbinject writes it through /proc/PID/mem.
 *
 * most_shift: no delay of this process takes longer than 1 << most_shift ticks, whatever its cell
 * contains; 0: ten seconds. It is a byte so that no thread reads it half written. It rises before a
 * longer delay is set, and never falls: a hit is held against the delay it began with.
 */
struct sb_page_record {
	uint64_t block_off; /* of this process's block, from blocks_off; 0: unregistered */
	uint64_t proc_off;  /* of its sb_page_proc, from procs_off */
	uint8_t most_shift;
	uint8_t reserved0;
	/*
	 * From the FS base of a thread, the place of two words in the control block of glibc: where
	 * the thread's stack begins, and its size. 0: unknown.
	 */
	uint16_t stack_word;
	uint8_t reserved1[4];
	/*
	 * The addresses of a region and a mailbox, as in the header. Where this process is
	 * registered, only what both of them contain is believed.
	 */
	uint64_t region_addr, region_size;
	uint64_t mailbox_addr, mailbox_size;
	uint64_t calls_off; /* of its sb_page_calls, from calls_off */
	/*
	 * The thread pointer of the thread that loads or unloads the agent, and does not ring the
	 * doorbell for it; 0: none does. Written by that thread (entry code).
	 */
	uint64_t loader;
	struct sb_page_python python; /* only where calls are recorded with their stacks */
	/*
	 * The room of an agent that needs no interpreter, with its code, from before it is mapped
	 * until it is unmapped. SB_ROOM_UNFINISHED in its size: its header is not written yet. Of
	 * this process alone: no fork has a copy.
	 */
	uint64_t room_addr, room_size;
	uint64_t reserved2[106];
	/*
	 * Pointers of calls in progress, for stubs alone: what they point to is read at the exit.
	 * By a hash of the address of the return address.
	 */
	struct sb_page_kept kept[32];
};
SB_PAGE_CHECK(sizeof(struct sb_page_kept) == 64);
SB_PAGE_OFF(sb_page_record, kept, 1024);
SB_PAGE_CHECK(sizeof(struct sb_page_record) <= 4096);
SB_PAGE_OFF(sb_page_record, block_off, 0);
SB_PAGE_OFF(sb_page_record, proc_off, 8);
SB_PAGE_OFF(sb_page_record, most_shift, 16);
SB_PAGE_OFF(sb_page_record, stack_word, 18);
SB_PAGE_OFF(sb_page_record, region_addr, 24);
SB_PAGE_OFF(sb_page_record, region_size, 32);
SB_PAGE_OFF(sb_page_record, mailbox_addr, 40);
SB_PAGE_OFF(sb_page_record, mailbox_size, 48);
SB_PAGE_OFF(sb_page_record, calls_off, 56);
SB_PAGE_OFF(sb_page_record, loader, 64);
SB_PAGE_OFF(sb_page_record, python, 72);
SB_PAGE_OFF(sb_page_record, room_addr, 160);
SB_PAGE_OFF(sb_page_record, room_size, 168);
#define SB_ROOM_UNFINISHED 1ull

/* The layout of a page as in its header, for code that must not read it from there. */
struct sb_page_layout {
	uint64_t session, size;
	uint32_t targets_max, procs_max, slots, cell_size;
	uint64_t block_size, procs_off, blocks_off, threads_off, notes_off, notes_size, tsc_hz;
	uint64_t counters_off, spans_off;
	uint64_t span_blocks;
	uint64_t calls_off, trace_off, chunks_off, chunks;
	uint64_t stacks, stack_size, stack_list_off, stacks_off;
};

/*
 * The mailbox: private memory of one process (a fork has a copy of its own) through which sbinject
 * communicates with its agent inside an interpreter. sbinject makes it, with the entry code in the
 * page before it (entry.c), and issues a command by writing `command` and then `asked`. The entry
 * code, on a thread that may run Python, carries it out and sets `done` to `asked`.
 *
 * The agent is one function, `int sb_agent(struct sb_mailbox *)`, called at a point where Python
 *code may run, with the GIL held, or where there is none attached to the interpreter. It returns 0,
 *or an error after writing `reason`.
 *
 *	APPLY	takes over the list of targets where `list` differs from the list it has, and
 *		watches those whose cell is not OFF in this process. The first one starts it.
 *	LIST	writes a note for every function that matches now; nothing is watched.
 *	STOP	removes the agent's changes. 0: the agent may be unloaded. SB_AGENT_BUSY: not yet.
 *
 * APPLY and STOP hold the GIL for about slice_ticks, keep their place, and return SB_AGENT_AGAIN.
 * The entry code then leaves `done` unchanged, and sbinject causes the next call. A command that is
 * `asked` meanwhile replaces the unfinished one.
 *
 * Cells of Python functions hold the whole delay in delay_ticks: the agent measures the cost of its
 * own hook and subtracts it, and its injected_ticks and excess include that cost.
 */
#define SB_MAILBOX_MAGIC 0x316d6f6f726a6273ull /* "sbjroom1" */

enum sb_agent_command {
	SB_AGENT_APPLY = 1, /* watch the targets that count in this process */
	SB_AGENT_LIST,
	SB_AGENT_STOP,
	SB_AGENT_READY, /* APPLY, and also watch targets that are off but about to be on */
};

enum sb_agent_error {
	SB_AGENT_OK = 0,
	SB_AGENT_LOAD = -1,	   /* it could not be loaded: dlerror() in reason */
	SB_AGENT_UNSUPPORTED = -2, /* interpreter too old, or not as expected */
	SB_AGENT_NO_TOOL = -3,	   /* all of sys.monitoring's tool ids are taken */
	SB_AGENT_PYTHON = -4,	   /* the interpreter raised an exception */
	SB_AGENT_BUSY = -5,	   /* something of the agent is still referred to */
	SB_AGENT_DAMAGED = -6,	   /* page or mailbox is inconsistent */
	SB_AGENT_ELSEWHERE = -7,   /* in a subinterpreter, or not its turn: repeat the command */
	SB_AGENT_AGAIN = -8,	   /* a piece of it is done: repeat the command for the next */
};

enum sb_mailbox_target_flags {
	SB_TARGET_FILE = 1,   /* module is a glob over file names */
	SB_TARGET_RESUME = 2, /* resumptions of generators and coroutines count too */
	SB_TARGET_REST = 4,   /* excludes functions that an earlier target matches */
	SB_TARGET_SPANS = 8,  /* its calls may be timed later: SB_CELL_SPANS */
	SB_TARGET_EACH = 16,  /* a function's hits also count in its note */
};

struct sb_mailbox_target {
	uint32_t cell;
	uint32_t flags;	       /* enum sb_mailbox_target_flags */
	uint32_t module, name; /* globs: NUL-terminated texts, as offsets in the mailbox */
};

enum sb_mailbox_flags { /* state that the agent reports */
			SB_MAILBOX_FREE_THREADED = 1,
			/* one tool id only: watching is not switched off while closed */
			SB_MAILBOX_ONE_TOOL = 2,
			/*
			 * 3.11: calls beneath a recursion deeper than the C stack allows were not
			 * seen
			 */
			SB_MAILBOX_DEEP = 4,
			/*
			 * the interpreter has ended, and with it all that the agent did; another
			 * one may start in this process
			 */
			SB_MAILBOX_ENDED = 8,
			/*
			 * 3.10, 3.11: the owner of another frame evaluation function removed the
			 * agent's; calls were not seen until it was put back
			 */
			SB_MAILBOX_DROPPED = 16,
};

struct sb_mailbox {
	uint64_t magic;
	uint32_t version; /* SB_PAGE_VERSION */
	uint32_t size;	  /* of the mailbox, its texts included */
	/* Between sbinject and the entry code: see entry.h. */
	uint32_t busy, asked, done, queued;
	uint32_t command; /* enum sb_agent_command */
	int32_t status;	  /* of the last command carried out: enum sb_agent_error */
	uint32_t async_op, parked;
	int32_t async_status;
	uint32_t confined; /* the thread has a seccomp filter: make no system call on it */
	uint64_t function[14];
	uint64_t handle, agent;
	uint64_t page_addr, record_addr;
	struct sb_page_layout page;
	char path[64];	  /* of the agent, but for the number of its descriptor (see image) */
	char reason[256]; /* of a status that is not 0 */
	/* Between sbinject and the agent. */
	uint32_t list; /* changes with the list of targets */
	uint32_t n_targets;
	uint32_t targets_off; /* struct sb_mailbox_target[], from the start of the mailbox */
	uint32_t flags;	      /* enum sb_mailbox_flags (agent) */
	uint32_t python;      /* PY_VERSION_HEX of the interpreter (agent) */
	uint32_t matched;     /* code objects being watched (agent) */
	uint64_t cost_ticks;  /* the cost of a counted call (agent) */
	uint64_t async_until; /* clock: until then a thread waits at the end of its remote call */
	/*
	 * 3.10, 3.11 (agent): the address of the interpreter's word for its frame evaluation
	 * function, 0: none. One of the two values in it means that the agent's function was
	 * removed.
	 */
	uint64_t eval_at, eval_gone, eval_next;
	/* Thread pointers of threads whose remote call is at work in the interpreter. */
	uint64_t inside[4];
	/* As in mailbox_setup, for recover. */
	uint64_t eval, eval_size;
	/*
	 * The longest that a thread was in a command without a break, loading the agent included,
	 * and so held the GIL: in commands before STOP, and in STOP (entry code).
	 */
	uint64_t held_ticks[2];
	uint64_t slice_ticks; /* a command that takes longer is done in pieces; 0: never (sbinject)
			       */
	uint64_t paused_at;   /* clock: the end of the last piece ... */
	uint32_t pieces;      /* ... and the number of pieces before it (entry code) */
	uint32_t gil;	      /* as eval */
	/*
	 * The agent's bytes, from the start of the mailbox, and the identity of the file in memory
	 * that they are loaded from. The entry code creates and closes that file: the program could
	 * close a descriptor that stayed open in between.
	 */
	uint32_t image_off, image_size;
	char image_name[16];
	uint32_t path_len;
};

#endif
