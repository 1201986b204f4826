/* SPDX-License-Identifier: MIT */
#ifndef SB_DEVICE_ABI_H
#define SB_DEVICE_ABI_H

#include <stdint.h>

/*
 * The device agent's part of its room: memory of the target, private to it, that sbinject reads and
 * writes from outside. The room begins with a struct sb_mailbox, through which a lent thread loads
 * the agent and starts its own thread; struct sb_device lies SB_DEVICE_OFF behind it.
 *
 * The agent's thread enables CUPTI's activity records, and writes what they say into a ring of
 * bytes: `head` counts what was ever written, `tail` what sbinject has read. An event that has no
 * room is dropped and counted. Each event begins at a multiple of 8, and wraps at the ring's end.
 *
 * The side that ends first leaves nothing for the other one to do:
 *
 * - sbinject sets `stop`; the agent disables and flushes, writes the last events, sets `state` to
 *   SB_DEVICE_ENDED or SB_DEVICE_REFUSED, and waits for `taken`. It answers by `left`, and touches
 * the room no more: sbinject unmaps it.
 * - sbinject writes the time into `alive_ns` many times a second. Where it is older than
 *   SB_DEVICE_ALIVE_NS, sbinject is gone: the agent does the same, without events, sets `state` to
 *   SB_DEVICE_GONE and unmaps the room itself, unless `taken` is set by then. An sbinject that was
 *   stopped for so long sees that state after it has set `taken`, and unmaps nothing.
 *
 * All times are ns of CLOCK_MONOTONIC but for those of records, which are of CUPTI's clock.
 */
#define SB_DEVICE_OFF	   8192
#define SB_DEVICE_MAGIC	   0x3165636976656473ull /* "sdevice1" */
#define SB_DEVICE_ALIVE_NS 3000000000ull
#define SB_DEVICE_NAME	   1024 /* bytes of a kernel's name at most, without a NUL */

enum sb_device_state {
	SB_DEVICE_STARTING = 0, /* the agent's thread has not enabled anything yet */
	SB_DEVICE_RUNS,
	SB_DEVICE_ENDED,   /* nothing is enabled any more */
	SB_DEVICE_REFUSED, /* `step` says why, nothing was enabled */
	SB_DEVICE_GONE,	   /* it saw nothing of sbinject for too long, and unmaps the room */
};

/* What was under way when CUPTI answered `code`. */
enum sb_device_step {
	SB_DEVICE_NO_STEP,
	SB_DEVICE_OPEN,	     /* the library does not open: `reason` */
	SB_DEVICE_FUNCTION,  /* it has no function of the name in `reason` */
	SB_DEVICE_VERSION,   /* layout of its records not known; code: CUPTI's error, or 0 */
	SB_DEVICE_SUBSCRIBE, /* another subscriber, or CUPTI cannot be initialized */
	SB_DEVICE_TAKEN,     /* another user has registered its buffers */
	SB_DEVICE_REGISTER,
	SB_DEVICE_ENABLE,
	SB_DEVICE_CLOCK,
	SB_DEVICE_THREAD, /* no thread could be started */
	SB_DEVICE_AGAIN,  /* an agent of an earlier session is still at work in this process */
};

/* How the agent's work ended. */
enum sb_device_end {
	SB_DEVICE_BY_US,   /* sbinject asked for it: all complete records are here */
	SB_DEVICE_BY_EXIT, /* the process exits: the same */
	SB_DEVICE_LOST,	   /* another one subscribed meanwhile, and has the later records */
};

struct sb_device {
	uint64_t magic;
	/* sbinject, before the start */
	uint64_t room, room_size; /* the whole mapping */
	uint64_t ring, ring_size; /* an address; a power of two */
	char cupti[512];	  /* the library's path, as the target sees it */
	/* sbinject, at any time */
	uint32_t stop;
	uint32_t seen; /* `final` was, and all before it was read */
	uint64_t alive_ns;
	uint64_t tail;
	uint32_t taken; /* sbinject unmaps the room */
	uint32_t left;	/* the agent's answer */
	/* the agent */
	uint64_t head;
	uint32_t state, step, end;
	int32_t code;
	uint32_t cupti_version;
	uint32_t worker; /* id of its thread */
	uint32_t final;	 /* nothing is written or counted any more */
	uint32_t reserved;
	uint64_t begin_ns, end_ns;
	uint64_t records; /* that CUPTI gave: written + dropped + unknown */
	uint64_t written, dropped, unknown;
	uint64_t cupti_dropped; /* that CUPTI itself has dropped */
	uint64_t buffers;	/* that CUPTI holds now */
	char reason[256];
};

enum sb_device_kind {
	SB_DEVICE_CLOCK_SAMPLE = 1,
	SB_DEVICE_KERNEL,
	SB_DEVICE_COPY,
	SB_DEVICE_MEMSET,
};

/*
 * An event, and behind it `name` bytes of the kernel's name; padded to a multiple of 8. Of a clock
 * sample: start is CUPTI's time, end CLOCK_MONOTONIC in the middle of two looks, bytes the time
 * between these.
 */
struct sb_device_event {
	uint32_t size; /* with name and padding */
	uint8_t kind;  /* enum sb_device_kind */
	uint8_t copy;  /* CUPTI's kind of a copy */
	uint16_t name;
	uint64_t start, end;
	uint64_t bytes;
	uint32_t device, context, stream, correlation;
	uint32_t grid[3], block[3];
	uint32_t shared; /* bytes of shared memory of a block */
	uint32_t value;	 /* of a memset */
};

_Static_assert(sizeof(struct sb_device_event) % 8 == 0, "events begin at multiples of 8");

#endif
