/* SPDX-License-Identifier: MIT */
#ifndef SB_JOURNAL_H
#define SB_JOURNAL_H

#include <stdint.h>
#include "plan.h"

/*
 * The head of a region: everything that is needed to remove its hooks, stored in the target itself.
 * sbinject's own record of a region is the same structure, so an ordinary detach and `sbinject
 * recover` after a crash share one piece of code.
 *
 * A region is one private read-and-execute mapping:
 *
 *	header | sites[] | patches[] | common code | stubs
 *
 * It is complete before the first byte of text changes. A patch is undone only where memory still
 * holds the bytes that sbinject wrote there. All of it lies in the target's memory, so a reader
 * checks every count and address against the region's size.
 */
#define JOURNAL_MAGIC	0x316c6e726a6a6273ull /* "sbjjrnl1" */
#define JOURNAL_VERSION 2

struct journal_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_size;
	uint64_t session; /* as in the control page */
	uint64_t region_size;
	uint64_t page_addr, page_size;	   /* control page */
	uint64_t record_addr, record_size; /* private record */
	uint32_t n_sites, n_patches;
	uint32_t sites_off, patches_off;
	uint32_t common_off, code_off; /* common code; first stub */
	uint32_t tracer_pid;
	uint32_t reserved[3];
};

enum journal_flags {
	JOURNAL_START = 1, /* the doorbell of an interpreter's start */
};

struct journal_pc {
	uint16_t emitted; /* offset in the stub */
	int16_t original; /* offset from the site's address */
};

struct journal_site {
	uint64_t addr; /* first replaced byte at the entry */
	uint32_t stub; /* offset in the region */
	uint16_t stub_size, entry, displaced;
	uint8_t len; /* bytes replaced at addr; 0: none, another site's stub goes to this one */
	uint8_t n_pcs;
	uint8_t shape;	/* enum plan_shape */
	uint8_t flags;	/* enum journal_flags */
	uint8_t before; /* bytes at addr whose instructions run before the stub's own code */
	uint8_t reserved;
	struct journal_pc pcs[PLAN_MAX_INSNS + 1];
	uint32_t cookie; /* the session's own number for it */
};

struct journal_patch {
	uint64_t addr;
	uint32_t site; /* index */
	uint8_t len;
	uint8_t reserved[3];
	uint8_t orig[PLAN_MAX_WINDOW];
	uint8_t now[PLAN_MAX_WINDOW];
};

#endif
