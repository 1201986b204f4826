/* SPDX-License-Identifier: MIT */
/* A window as it stood, as it was moved, as it is hooked; and what must be alike. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "sandbox.h"
#include "inject/arch/x86_64/x86.h"

unsigned int sandbox_damage;

/* ---- the forms ---- */

static size_t text_room(const struct plan *plan, uint64_t *from)
{
	uint64_t to = plan->resume > plan->addr + plan->len ? plan->resume : plan->addr + plan->len;

	*from = plan->pad ? plan->pad : plan->addr - plan->skipped;
	return to - *from;
}

static void place_original(const struct plan *plan)
{
	uint64_t from = plan->addr - plan->skipped;
	const struct segment *s = text_at(from);

	memcpy((void *)from, s->bytes + (from - s->addr), plan->resume - from);
}

/* NULL, or why it cannot be; out of reach is no fault. */
static const char *move(const struct plan *plan, enum form form, uint64_t at)
{
	struct outcome *o = &got[form];
	enum plan_refusal why = PLAN_OK;
	size_t len;

	memset((void *)at, 0xcc, SITE_SIZE / 2);
	len = plan_emit(plan, at, (uint8_t *)at, PLAN_MAX_DISPLACED, o->pcs, &o->n_pcs, &why);
	if (len && sandbox_damage)
		((uint8_t *)at)[sandbox_damage % len] ^= 1u << sandbox_damage % 8;
	o->at = at;
	return why == PLAN_OK ? NULL : plan_refusal_text(why);
}

static const char *hook(const struct plan *plan, uint64_t *entry)
{
	struct outcome *o = &got[HOOKED];
	uint64_t at = SITE_LOW + SITE_SIZE / 2;
	uint8_t head[PLAN_MAX_WINDOW], pad[5];
	struct arch_site site;
	struct arch_count count = { .cell = (uint64_t)cell };
	enum plan_refusal why = PLAN_UNMOVABLE;

	memset((void *)at, 0xcc, SITE_SIZE / 2);
	if (!arch->emit_site(&env, plan, &count, at, (uint8_t *)at, ARCH_SITE_MAX, &site, &why))
		return plan_refusal_text(why);
	plan_patch(plan, at + site.entry, head, pad);
	memcpy((void *)plan->addr, head, plan->len);
	if (plan->pad)
		memcpy((void *)plan->pad, pad, sizeof(pad));
	memcpy(o->pcs, site.pcs, sizeof(o->pcs));
	o->n_pcs = site.n_pcs;
	o->at = at;
	*entry = at + site.entry;
	return NULL;
}

/* ---- comparing ---- */

static uint64_t original_pc(const struct outcome *o, uint64_t pc)
{
	for (size_t i = 0; i < o->n_pcs; i++)
		if (pc == o->at + o->pcs[i].emitted)
			return o->pcs[i].original;
	/* behind an instruction that trapped: the next one's copy */
	return pc;
}

/*
 * A call through memory that cannot be read faults after its return address was pushed: the one
 * place where a copy shows.
 */
static bool call_faulted(const struct plan *plan, const struct outcome *a, const struct outcome *b)
{
	uint64_t pc = (uint64_t)a->reg[REG_RIP];
	struct x86_decoded insn;

	if (pc < plan->addr || pc >= plan->resume || a->sig != b->sig ||
	    x86_classify(plan->orig + (pc - plan->addr), plan->resume - pc, pc, &insn) != PLAN_OK)
		return false;
	return insn.kind == X86_CALL_IND && b->reg[REG_RSP] == a->reg[REG_RSP] - 8;
}

/* The address of the last x87 instruction is part of the state, and is not the same. */
static bool same_state(const struct outcome *a, const struct outcome *b)
{
	return !memcmp(a->state, b->state, 6) && !memcmp(a->state + 24, b->state + 24, 416 - 24) &&
	       !memcmp(a->state + 576, b->state + 576, state_len - 576);
}

/* How far the instruction that stays before the hook moves rsp: a push, or a sub of an imm8. */
static size_t taken_before(const struct plan *plan)
{
	const struct segment *s = text_at(plan->addr - plan->skipped);
	const uint8_t *p = s->bytes + (plan->addr - plan->skipped - s->addr);
	uint8_t opcode = plan->skipped > 1 && (p[0] & 0xf0) == 0x40 ? p[1] : p[0];

	if (!plan->skipped)
		return 0;
	if ((opcode & 0xf8) == 0x50)
		return 8;
	return opcode == 0x83 ? p[plan->skipped - 1] : 0;
}

/*
 * A stub spills under rsp at an entry, where nothing lives, and under the red zone elsewhere. What
 * the window itself wrote there counts.
 */
static bool same_stack(const struct plan *plan, const struct outcome *a, const struct outcome *b)
{
	bool entry = plan->entry;
	size_t to = (size_t)wanted[REG_RSP] - STACK - (entry ? taken_before(plan) : RED_ZONE);
	size_t from = to - (entry ? RED_ZONE : 2 * RED_ZONE);

	for (size_t i = from; i < to; i++)
		if (a->stack[i] != stack_start[i] && a->stack[i] != b->stack[i])
			return false;
	return !memcmp(a->stack, b->stack, from) &&
	       !memcmp(a->stack + to, b->stack + to, STACK_SIZE - to);
}

static bool same_memory(const struct plan *plan, enum form form)
{
	const struct outcome *a = &got[PLACED], *b = &got[form];

	if (memcmp(a->memory, b->memory, ARENA_SIZE))
		return false;
	if (form == HOOKED)
		return same_stack(plan, a, b);
	return !memcmp(a->stack, b->stack, STACK_SIZE);
}

static const char *register_name(enum form form, int i, greg_t a, greg_t b)
{
	static const char *const names[] = {
		"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
		"rdi", "rsi", "rbp", "rbx", "rdx", "rax", "rcx", "rsp"
	};
	static char text[96];

	snprintf(text, sizeof(text), "form %d: %s is 0x%llx, not 0x%llx", form, names[i],
		 (unsigned long long)b, (unsigned long long)a);
	return text;
}

static const char *form_differs(const struct plan *plan, enum form form)
{
	const struct outcome *a = &got[PLACED], *b = &got[form];
	bool flags = form != HOOKED || plan->flags_live || !plan->entry;

	if (call_faulted(plan, a, b))
		return NULL;
	if (a->sig != b->sig)
		return "another signal";
	for (int i = REG_R8; i <= REG_RSP; i++) {
		bool kernel_puts = a->sig == SIGSYS && (i == REG_RCX || i == REG_R11);

		if (i == REG_RCX && a->sig == SIGSYS &&
		    (uint64_t)a->reg[i] != original_pc(b, (uint64_t)b->reg[i]))
			return "the return address of a system call";
		if (a->reg[i] != b->reg[i] && !kernel_puts)
			return register_name(form, i, a->reg[i], b->reg[i]);
	}
	if (flags && ((a->reg[REG_EFL] ^ b->reg[REG_EFL]) & (ARITH_FLAGS | 0x400)))
		return "the flags";
	if ((uint64_t)a->reg[REG_RIP] != original_pc(b, (uint64_t)b->reg[REG_RIP]))
		return "where it went";
	if (!same_state(a, b))
		return "a vector register";
	if (!same_memory(plan, form))
		return "memory";
	for (size_t i = 0; i < watches; i++)
		if (memcmp(a->watched[i], b->watched[i], watch[i].len))
			return "the library's data";
	return NULL;
}

static uint64_t hits(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < env.slots + SB_PAGE_SHARED_SLOTS; i++)
		sum += counts->slot[i].hits;
	return sum;
}

/* From one random state, in all forms. */
static const char *state_differs(const struct plan *plan, uint32_t state, bool *ran)
{
	static const uint64_t sites[] = { 0, SITE_LOW, SITE_TOP };
	uint64_t before, counted, entry = 0;
	const char *why = NULL;

	random_state();
	place_original(plan);
	run_form(PLACED, plan->addr);
	*ran = got[PLACED].sig != SIGVTALRM;
	if (!*ran)
		return NULL; /* an endless loop, as in a spin lock */
	for (enum form f = MOVED_DOWN; f <= MOVED_UP && !why; f++) {
		why = move(plan, f, sites[f]);
		if (why == plan_refusal_text(PLAN_OUT_OF_REACH)) {
			why = NULL;
			continue;
		}
		if (why)
			return why;
		run_form(f, sites[f]);
		why = form_differs(plan, f);
	}
	/* The hook with what stays in front of it, as a call meets it. */
	if (!why && plan->skipped)
		run_form(PLACED, plan->addr - plan->skipped);
	if (!why)
		why = hook(plan, &entry);
	if (why)
		return why;
	cell->state = state;
	before = hits();
	/* the tracer is what brings a thread from an int3 to the stub */
	run_form(HOOKED, plan->shape == PLAN_INT3 ? entry : plan->addr - plan->skipped);
	why = form_differs(plan, HOOKED);
	counted = hits() - before;
	/* a branch in mid-function back to the site passes it again */
	if (!why && counted != (state != SB_STATE_OFF) && (plan->entry || !counted))
		why = "the count";
	return why;
}

const char *sandbox_differs(const struct plan *plan, unsigned int states, bool *ran)
{
	static const uint32_t turns[] = { SB_STATE_COUNT, SB_STATE_SLOW, SB_STATE_OFF };
	const char *why = NULL;
	uint64_t from;
	size_t len = text_room(plan, &from);

	if (!open_pages(from, from + len))
		return "no page for it";
	watch_data(plan);
	for (unsigned int i = 0; i < states && !why; i++) {
		memset((void *)from, 0xcc, len);
		why = state_differs(plan, turns[i % 3], ran);
	}
	reset_watched();
	memset((void *)from, 0xcc, len);
	return why;
}

/* ---- what can be run twice with one result ---- */

/* Of the two-byte map: clocks, counters, identification, state images, segment bases. */
static bool repeatable_0f(const struct x86_form *f)
{
	switch (f->opcode) {
	case 0x05: /* syscall */
		return dispatch;
	case 0x01: /* system, rdtscp, xgetbv */
	case 0x31: /* rdtsc */
	case 0x33: /* rdpmc */
	case 0x34: /* sysenter */
	case 0xa2: /* cpuid */
	case 0xa1: /* pop %fs */
	case 0xa9: /* pop %gs */
	case 0xae: /* fxsave, xsave, wrfsbase; fences too */
	case 0xc7: /* rdrand, rdseed, rdpid, xsavec; cmpxchg8b, which is repeatable */
		return f->opcode == 0xc7 && f->modrm < 0xc0 && (f->modrm >> 3 & 7) == 1;
	default:
		return true;
	}
}

static bool repeatable(const struct x86_form *f)
{
	if (f->map == 1)
		return repeatable_0f(f);
	if (f->map)
		return true;
	switch (f->opcode) {
	case 0x8e: /* mov to a segment register */
	case 0x9d: /* popf: the trap flag */
	case 0xca: /* far returns */
	case 0xcb:
	case 0xcd: /* int */
	case 0xcf: /* iret */
		return false;
	case 0xff: /* far calls and jumps */
		return (f->modrm >> 3 & 7) != 3 && (f->modrm >> 3 & 7) != 5;
	case 0xc6: /* xabort */
	case 0xc7: /* xbegin */
		return f->modrm != 0xf8;
	case 0xd9: /* fnstenv, fldenv: the address of the last x87 instruction */
		return f->modrm >= 0xc0 || ((f->modrm >> 3 & 7) != 6 && (f->modrm >> 3 & 7) != 4);
	case 0xdd: /* fnsave, frstor */
		return f->modrm >= 0xc0 || ((f->modrm >> 3 & 7) != 6 && (f->modrm >> 3 & 7) != 4);
	default:
		return true;
	}
}

static bool uses_segment(const uint8_t *p, const struct x86_form *f)
{
	for (unsigned int i = 0; i < f->op_off; i++)
		if (p[i] == 0x64 || p[i] == 0x65)
			return true;
	return false;
}

bool sandbox_can_run(const struct plan *plan)
{
	for (unsigned int i = 0; i < plan->insns; i++) {
		const uint8_t *p = plan->orig + plan->insn[i].off;
		struct x86_decoded insn;

		if (x86_classify(p, plan->insn[i].len, plan->addr, &insn) != PLAN_OK ||
		    !repeatable(&insn.form) || (uses_segment(p, &insn.form) && !bases))
			return false;
	}
	return true;
}
