/* SPDX-License-Identifier: MIT */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <ucontext.h>
#include "prove.h"
#include "inject/arch/arch.h"
#include "inject/page-abi.h"

/*
 * Inside the sandbox: sandbox.c has the memory, the registers and the way in and out, forms.c the
 * forms of a window and what must be alike.
 */
enum {
	PAGE = 4096,
	ARENA_SIZE = 0x3000,
	STACK_SIZE = 0x1000,
	STATE_MAX = 12 << 10,
	SITE_SIZE = 4096,
	COMMON_SIZE = 4 * 4096,
	RED_ZONE = 128,
	ARITH_FLAGS = 0x8d5,
	TICK_US = 20000,
	MAX_WATCHED = PLAN_MAX_INSNS,
	WATCH_SIZE = 128,
};

#define ARENA	 (PROVE_BASE - 0x10000000)
#define STACK	 (PROVE_BASE - 0x18000000) /* apart: what lies under rsp is free */
#define SITE_LOW (PROVE_BASE - 0x30000000)
#define SITE_TOP (PROVE_BASE + 0x7a000000)
#define CONTROL	 (PROVE_BASE - 0x20000000)
#define COUNTERS 0x40000 /* from a setting to what counts beside it */

enum form { PLACED, MOVED_DOWN, MOVED_UP, HOOKED, FORMS };

struct outcome {
	int sig;
	greg_t reg[NGREG];
	uint8_t state[STATE_MAX];
	uint8_t memory[ARENA_SIZE], stack[STACK_SIZE], watched[MAX_WATCHED][WATCH_SIZE];
	uint64_t at;				/* where the emitted code begins */
	struct plan_pc pcs[PLAN_MAX_INSNS + 1]; /* offsets from there */
	size_t n_pcs;
};

struct watch {
	uint8_t *at;
	size_t len;
	uint8_t start[WATCH_SIZE];
};

/* The last outcome of each form, and where all of them started. */
extern struct outcome got[FORMS];
extern gregset_t wanted;
extern uint8_t memory_start[ARENA_SIZE], stack_start[STACK_SIZE];
extern size_t state_len;
extern struct watch watch[MAX_WATCHED];
extern size_t watches;

/* The stub's surroundings: one cell. */
extern struct arch_env env;
extern struct sb_page_cell *cell;
extern struct sb_page_counts *counts;
extern bool bases, dispatch; /* FS and GS bases may be set; system calls come to us */

const struct segment *text_at(uint64_t addr);
void random_state(void);
bool open_pages(uint64_t from, uint64_t to); /* executable, and int3 throughout */
void watch_data(const struct plan *plan);
void reset_watched(void);
void run_form(enum form form, uint64_t pc);

#endif
