/* SPDX-License-Identifier: MIT */
/*
 * Windows run where they stood and as they were moved.
 *
 * The library lies at PROVE_BASE, readable and not executable; its writable segments hold a
 * pattern. Only the pages of the window can be executed, and hold int3 all around it. So code is
 * entered and left by signals alone: int3 in enter() lets the handler put the wanted registers
 * into the context, and wherever the window goes (a branch to anywhere in the library, a fault,
 * the end of the window) the handler sees the registers that it arrived with. The FS and GS
 * bases point into the sandbox meanwhile; system calls are dispatched to us as SIGSYS.
 *
 * Each window is run in four forms: as it stood; moved to a stub below the library; moved to one
 * above it; and hooked, by the very stub that targets get, with its counters.
 */
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>
#include "sandbox.h"
#include "inject/arch/x86_64/x86.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Neither the stack protector's word nor a sanitizer's may be looked for at a foreign FS base. */
#define BARE __attribute__((no_sanitize("address", "undefined"), no_stack_protector, noinline))

static const struct library *lib;
struct outcome got[FORMS];
static struct outcome *volatile running; /* NULL: none */
gregset_t wanted;
static gregset_t before_run;
uint8_t memory_start[ARENA_SIZE], stack_start[STACK_SIZE];
static uint8_t state_start[STATE_MAX];
size_t state_len;
static uint64_t own_fs, own_gs;
bool bases, dispatch;
static volatile char selector; /* of the system call dispatch: 1: they arrive as SIGSYS */
static volatile unsigned long runs, seen_run;
struct watch watch[MAX_WATCHED];
size_t watches;
static uint64_t open_from, open_to; /* pages that can be executed */
struct arch_env env;
struct sb_page_cell *cell;
struct sb_page_counts *counts;

extern char enter_trap[];

BARE static void set_bases(uint64_t fs, uint64_t gs)
{
	if (bases)
		__asm__ volatile("wrfsbase %0; wrgsbase %1" ::"r"(fs), "r"(gs) : "memory");
}

/* The extended state: what the template says, at each start. */
BARE static void put_state(ucontext_t *uc)
{
	uint8_t *state = (uint8_t *)uc->uc_mcontext.fpregs;

	for (size_t i = 0; i < state_len; i++)
		state[i] = state_start[i];
}

BARE static void take_state(const ucontext_t *uc)
{
	const uint8_t *state = (const uint8_t *)uc->uc_mcontext.fpregs;

	for (size_t i = 0; i < state_len; i++)
		running->state[i] = state[i];
}

BARE static void on_signal(int sig, siginfo_t *info, void *context)
{
	greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;
	bool entering = sig == SIGTRAP && reg[REG_RIP] == (greg_t)enter_trap;

	(void)info;
	if (sig == SIGVTALRM && (!running || seen_run != runs)) {
		seen_run = runs;
		return;
	}
	if (entering) {
		for (int i = 0; i < NGREG; i++)
			before_run[i] = reg[i];
		for (int i = REG_R8; i <= REG_EFL; i++)
			reg[i] = wanted[i];
		put_state(context);
		selector = 1;
		set_bases(ARENA + 0x1400, ARENA + 0x1c00);
		return;
	}
	set_bases(own_fs, own_gs);
	selector = 0;
	if (!running) { /* a fault of the prover itself */
		signal(sig, SIG_DFL);
		return;
	}
	running->sig = sig;
	for (int i = 0; i < NGREG; i++)
		running->reg[i] = reg[i];
	take_state(context);
	for (int i = 0; i < NGREG; i++)
		reg[i] = before_run[i];
}

BARE static void enter(void)
{
	__asm__ volatile("int3\n\t.globl enter_trap\nenter_trap:" ::: "memory", "cc");
}

static uint64_t random64(void)
{
	static uint64_t x = 88172645463325252ULL; /* the same run each time */

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static uint64_t random_pointer(void)
{
	return ARENA + 0x800 + (random64() % 0x2000 & ~7ULL);
}

/* Pointers into the arena, small numbers, or an address that nobody has. */
static greg_t random_register(void)
{
	switch (random64() % 8) {
	case 0:
	case 1:
		return (greg_t)(random64() % 4);
	case 2:
		return (greg_t)(0x400000000000 + (random64() >> 36));
	default:
		return (greg_t)random_pointer();
	}
}

static void random_memory(uint8_t *at, size_t len)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t value = random64() % 3 ? random_pointer() :
						  lib->text[0].addr + random64() % 0x10000;

		memcpy(at + i, &value, 8);
	}
}

void random_state(void)
{
	for (int i = REG_R8; i <= REG_RCX; i++)
		wanted[i] = random_register();
	wanted[REG_RSP] = (greg_t)(STACK + 0x800 + random64() % 64 * 8);
	wanted[REG_EFL] = 0x202 | (greg_t)(random64() & ARITH_FLAGS);
	random_memory(memory_start, ARENA_SIZE);
	random_memory(stack_start, STACK_SIZE);
}

/* ---- the pages that can be executed ---- */

const struct segment *text_at(uint64_t addr)
{
	for (size_t i = 0; i < lib->texts; i++)
		if (addr - lib->text[i].addr < lib->text[i].len)
			return &lib->text[i];
	return NULL;
}

static void close_pages(void)
{
	for (uint64_t at = open_from; at < open_to; at += PAGE) {
		const struct segment *s = text_at(at) ? text_at(at) : text_at(at + PAGE - 1);
		uint64_t from = s && s->addr > at ? s->addr : at;
		uint64_t to = s && s->addr + s->len < at + PAGE ? s->addr + s->len : at + PAGE;

		if (s)
			memcpy((void *)from, s->bytes + (from - s->addr), to - from);
		mprotect((void *)at, PAGE, PROT_READ);
	}
	open_from = open_to = 0;
}

bool open_pages(uint64_t from, uint64_t to)
{
	from &= ~(uint64_t)(PAGE - 1);
	to = (to + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	if (from >= open_from && to <= open_to)
		return true;
	close_pages();
	if (mprotect((void *)from, to - from, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	memset((void *)from, 0xcc, to - from);
	open_from = from;
	open_to = to;
	return true;
}

/* ---- one run ---- */

void reset_watched(void)
{
	for (size_t i = 0; i < watches; i++)
		memcpy(watch[i].at, watch[i].start, watch[i].len);
}

void run_form(enum form form, uint64_t pc)
{
	struct outcome *o = &got[form];

	memcpy((void *)ARENA, memory_start, ARENA_SIZE);
	memcpy((void *)STACK, stack_start, STACK_SIZE);
	reset_watched();
	wanted[REG_RIP] = (greg_t)pc;
	runs++;
	running = o;
	enter();
	running = NULL;
	memcpy(o->memory, (void *)ARENA, ARENA_SIZE);
	memcpy(o->stack, (void *)STACK, STACK_SIZE);
	for (size_t i = 0; i < watches; i++)
		memcpy(o->watched[i], watch[i].at, watch[i].len);
}

void watch_data(const struct plan *plan)
{
	watches = 0;
	for (unsigned int i = 0; i < plan->insns; i++) {
		struct x86_decoded insn;

		if (x86_classify(plan->orig + plan->insn[i].off, plan->insn[i].len,
				 plan->addr + plan->insn[i].off, &insn) != PLAN_OK ||
		    !insn.form.rip)
			continue;
		for (size_t k = 0; k < lib->datas; k++) {
			const struct segment *d = &lib->data[k];
			uint64_t from = insn.target - 32, to = from + WATCH_SIZE;

			if (!d->write || insn.target - d->addr >= d->mem_len)
				continue;
			from = from < d->addr ? d->addr : from;
			to = to > d->addr + d->mem_len ? d->addr + d->mem_len : to;
			watch[watches].at = (uint8_t *)from;
			watch[watches].len = to - from;
			memcpy(watch[watches++].start, (void *)from, to - from);
		}
	}
}

/* ---- setting up ---- */

static void *map_at(uint64_t addr, size_t len, int prot)
{
	void *p = mmap((void *)addr, len, prot,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);

	if (p != (void *)addr) {
		perror("prove: no room for the sandbox");
		exit(1);
	}
	return p;
}

/* Writable data: a pattern of pointers and of words that are not alike. */
static void fill(const struct segment *d)
{
	for (size_t k = 0; k + 8 <= d->mem_len && k < 64 << 20; k += 8) {
		uint64_t value = random64() % 2 ? random_pointer() : random64();

		memcpy((void *)(d->addr + k), &value, 8);
	}
}

/* The file's pages where nothing is written. */
static void map_read_only(const struct segment *s)
{
	size_t before = s->addr % PAGE;
	off_t offset = s->bytes - (const uint8_t *)elf_rawfile(lib->elf, NULL);
	void *at = (void *)(s->addr - before);

	if (mmap(at, s->len + before, PROT_READ, MAP_PRIVATE | MAP_FIXED, lib->fd,
		 offset - (off_t)before) != at)
		abort();
}

static void map_library(void)
{
	uint64_t low = lib->low & ~(uint64_t)(PAGE - 1);

	map_at(low, ((lib->high + PAGE - 1) & ~(uint64_t)(PAGE - 1)) - low, PROT_READ | PROT_WRITE);
	for (size_t i = 0; i < lib->texts; i++)
		map_read_only(&lib->text[i]);
	for (size_t i = 0; i < lib->datas; i++)
		lib->data[i].write ? fill(&lib->data[i]) : map_read_only(&lib->data[i]);
}

static void map_control(void)
{
	struct sb_page_header *hdr = map_at(CONTROL, 1 << 20, PROT_READ | PROT_WRITE);
	uint8_t *low = map_at(SITE_LOW, SITE_SIZE + COMMON_SIZE,
			      PROT_READ | PROT_WRITE | PROT_EXEC);

	if (arch->common_size() > COMMON_SIZE)
		abort();
	map_at(SITE_TOP, SITE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
	env = (struct arch_env){
		.header = CONTROL,
		.record = CONTROL + 0x2000,
		.procs = CONTROL + 0x3000,
		.counters = COUNTERS,
		.most_ticks = 1ull << 40,
		.common = SITE_LOW + SITE_SIZE,
		.slots = 64,
		.own_slots = bases && arch->thread_pointer_readable(),
	};
	hdr->lease_until = ~0ull >> 2;
	arch->emit_common(&env, low + SITE_SIZE);
	cell = (void *)(CONTROL + 0x10000);
	counts = (void *)(CONTROL + 0x10000 + COUNTERS);
	cell->flags = SB_CELL_DELAY;
	cell->overrun_limit = 1 << 20;
	cell->residual_max = 1 << 10;
}

static void take_signals(void)
{
	static const int signals[] = {
		SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS, SIGVTALRM
	};
	static uint8_t stack[1 << 16];
	stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction sa = { .sa_sigaction = on_signal,
				.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
	struct itimerval tick = { { 0, TICK_US }, { 0, TICK_US } };

	sigaltstack(&ss, NULL);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &sa, NULL);
	setitimer(ITIMER_VIRTUAL, &tick, NULL);
}

/* The extended state of a first entry, with vector registers that differ from each other. */
static void make_state(int sig, siginfo_t *info, void *context)
{
	enum { SW_RESERVED = 464, MAGIC = 0x46505853, YMM = 576, YMM_SIZE = 256, BITS = 512 };
	const ucontext_t *uc = context;
	uint8_t *state = (uint8_t *)uc->uc_mcontext.fpregs;
	uint32_t sw[5];

	(void)sig, (void)info;
	memcpy(sw, state + SW_RESERVED, sizeof(sw));
	state_len = 576;
	if (sw[0] == MAGIC && sw[4] >= YMM + YMM_SIZE && sw[4] <= STATE_MAX)
		state_len = sw[4];
	memcpy(state_start, state, state_len);
	for (size_t i = 0; i < 256; i++)
		state_start[160 + i] = (uint8_t)random64();
	if (state_len > YMM) {
		for (size_t i = 0; i < YMM_SIZE; i++)
			state_start[YMM + i] = (uint8_t)random64();
		state_start[BITS] |= 7;
	}
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *data)
{
	uint64_t *range = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum && strstr(info->dlpi_name, "libc.so"); i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			range[0] = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			range[1] = info->dlpi_phdr[i].p_memsz;
		}
	return 0;
}

int sandbox_open(const struct library *library)
{
	struct sigaction sa = { .sa_sigaction = make_state, .sa_flags = SA_SIGINFO };
	uint64_t range[2] = { 0 };

	lib = library;
	bases = getauxval(AT_HWCAP2) & 2;
	if (bases)
		__asm__ volatile("rdfsbase %0; rdgsbase %1" : "=r"(own_fs), "=r"(own_gs));
	map_library();
	map_at(ARENA, ARENA_SIZE, PROT_READ | PROT_WRITE);
	map_at(STACK, STACK_SIZE, PROT_READ | PROT_WRITE);
	map_control();
	sigaction(SIGUSR1, &sa, NULL);
	raise(SIGUSR1);
	take_signals();
	/* libc's own calls, the handler's return among them, go through at any time */
	dl_iterate_phdr(find_libc, range);
	dispatch = range[1] &&
		   prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, range[0], range[1], &selector) == 0;
	return state_len ? 0 : -1;
}
