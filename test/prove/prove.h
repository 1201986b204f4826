/* SPDX-License-Identifier: MIT */
#ifndef PROVE_H
#define PROVE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "inject/plan.h"

/*
 * prove: plans every function of a library and proves each displaced window, in two ways:
 *
 * - run: where it stood and as it was moved, from the same random registers, flags and memory, in a
 *   process of its own that holds the library at PROVE_BASE without a right to execute it, but for
 *   the page of the window, filled with int3. Wherever the window goes, a fault or a trap shows
 *   with which registers.
 * - listing: read by capstone, instruction by instruction, all targets resolved.
 *
 * Every window is read; what cannot be run twice with one result (rdtsc, cpuid, xsave ...) is
 * only read. Reads ELF through libelf alone, so that a fault in elf/ cannot hide one here.
 *
 * Addresses are those at which the library is mapped here: the file's plus PROVE_BASE.
 */
#define PROVE_BASE 0x2001c0000000ull /* bit 31 set, and bits above it; no shadow of ASan's */

enum { PROVE_TEXTS = 8, PROVE_DATA = 8 };

struct function {
	uint64_t start, end;
	const char *name; /* NULL: from .eh_frame */
	enum plan_refusal why;
	bool chosen, run, read;
	char detail[48];
};

struct segment {
	uint64_t addr;
	const uint8_t *bytes; /* in the file */
	size_t len, mem_len;
	bool exec, write;
};

/* Which sites: entries; an instruction somewhere in each function; entries by int3. */
enum prove_site { SITE_ENTRY, SITE_MIDDLE, SITE_INT3 };

struct library {
	const char *path;
	Elf *elf;
	int fd;
	struct function *func;
	size_t count, cap;
	struct segment text[PROVE_TEXTS], data[PROVE_DATA]; /* data: writable ones */
	size_t texts, datas;
	uint64_t low, high; /* of all segments */
	bool all;	    /* also functions that only .eh_frame knows */
	enum prove_site site;
};

/* The file's functions; 0, or -1 with the reason on stderr. */
int library_open(struct library *lib, const char *path, bool all, enum prove_site site);
void library_close(struct library *lib);
struct landing_set *library_scan(struct library *lib);
void library_request(const struct library *lib, size_t i, struct plan_request *req);
/* A library by its name in the usual places, or "largest": the largest file of all. */
bool library_find(const char *name, char *path, size_t size);

/* The listing of emitted code against that of the window; NULL or what differs. */
const char *listing_differs(const struct plan *plan, uint64_t at, const uint8_t *code, size_t len,
			    const struct plan_pc *pcs, size_t n);

/* The sandbox; once a process. 0 or -1. */
int sandbox_open(const struct library *lib);
/* True where the window can be run again and again with one result. */
bool sandbox_can_run(const struct plan *plan);
/* Runs the window from `states` random states in all its forms; NULL or what differs. *ran: false
 * where it does not end by itself. */
const char *sandbox_differs(const struct plan *plan, unsigned int states, bool *ran);
/* Changes one byte of what is emitted, so that the proof must fail: for its own test. */
extern unsigned int sandbox_damage;

#endif
