/* SPDX-License-Identifier: MIT */
#ifndef TEST_STEPS_H
#define TEST_STEPS_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/*
 * Code that is interrupted at its Nth instruction, for each N. To reach it, step by step, takes N
 * traps: hundreds of thousands for all. Where the way is the same each time it is recorded once,
 * and a breakpoint stands at the last instruction up to the Nth one that is executed once only.
 */
enum { STEPS_MOST = 5000, STEP_FLAG = 0x100, STEP_INT3 = 0xcc };

struct steps {
	uint8_t *text; /* the code; it may be written */
	uint32_t way[STEPS_MOST];
	int n;
	uint8_t *planted, was; /* NULL: none */
	int before;	       /* instructions before the planted one */
};

static inline void steps_record(struct steps *s, uint64_t pc)
{
	if (s->n < STEPS_MOST)
		s->way[s->n++] = (uint32_t)(pc - (uint64_t)(uintptr_t)s->text);
}

static inline bool steps_is_single(const struct steps *s, int i)
{
	int times = 0;

	for (int k = 0; k < s->n; k++)
		times += s->way[k] == s->way[i];
	return times == 1;
}

/* False: no breakpoint; from the first instruction on there must be steps. */
static inline bool steps_plant(struct steps *s, int nth)
{
	int i = nth <= s->n ? nth - 1 : -1;

	while (i >= 0 && !steps_is_single(s, i))
		i--;
	if (i < 0)
		return false;
	s->planted = s->text + s->way[i];
	s->before = i;
	s->was = *s->planted;
	*s->planted = STEP_INT3;
	return true;
}

static inline void steps_remove(struct steps *s)
{
	if (s->planted)
		*s->planted = s->was;
	s->planted = NULL;
}

/* In the handler of SIGTRAP: at the breakpoint? From there on there are steps. */
static inline bool steps_arrived(struct steps *s, ucontext_t *u)
{
	if (!s->planted || u->uc_mcontext.gregs[REG_RIP] != (greg_t)(uintptr_t)s->planted + 1)
		return false;
	u->uc_mcontext.gregs[REG_RIP]--;
	u->uc_mcontext.gregs[REG_EFL] |= STEP_FLAG;
	steps_remove(s);
	return true;
}

#endif
