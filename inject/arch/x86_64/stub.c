/* SPDX-License-Identifier: MIT */
/* Copies the templates of stub-code.S to where they will run and fills in their addresses. */
#include <string.h>
#include "inject/pyframes-code.h"
#include "stub.h"
#include "stub-offsets.h"

enum {
	SITE_OWN,
	SITE_OWN_FLAGS,
	SITE_OWN_MID,
	SITE_SHARED,
	SITE_SHARED_FLAGS,
	SITE_SHARED_MID,
	SITE_EACH,    /* from here on all of them again, with a counter of the function's own */
	SITE_GO = 12, /* own, shared */
	SITE_GO_EACH = 14, /* ... with such a counter */
	SITE_CLOSE = 16,
};

enum { RED_ZONE = 128 };

static void put32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

static void put64(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* The displacement that a rel32 field at `field` needs to reach target. */
static uint32_t rel32(uint64_t field, uint64_t target)
{
	return (uint32_t)(target - (field + 4));
}

/* The code that copies Python frames lies behind the template. */
static size_t frames_size(void)
{
	return (size_t)((uintptr_t)__stop_sb_frames - (uintptr_t)pyframes_stub);
}

size_t stub_common_size(void)
{
	return stub_common_template.size + frames_size();
}

size_t stub_after_fault(size_t at)
{
	return at - stub_common_template.size < frames_size() ? stub_common_template.python_fault :
								0;
}

static void emit_stacks(const struct arch_env *env, uint8_t *buf)
{
	const struct stub_common *t = &stub_common_template;

	put32(buf + t->wide, KIND_VALUES | (env->stacks ? KIND_CLOSE : 0));
	if (!env->stacks)
		return;
	put64(buf + t->stacks, env->stack_list);
	put64(buf + t->stacks_taken, env->stacks_taken);
	put64(buf + t->stack_size, env->stack_size);
	put64(buf + t->stack_most, env->stack_size - STACK_WORDS - SB_PAGE_FRAMES);
	put32(buf + t->stack_mask, env->stacks - 1);
	put32(buf + t->stack_place, 1);
}

void stub_emit_common(const struct arch_env *env, uint8_t *buf)
{
	const struct stub_common *t = &stub_common_template;

	memcpy(buf, t->code, t->size);
	memcpy(buf + t->size, (const void *)(uintptr_t)pyframes_stub, frames_size());
	put64(buf + t->header, env->header);
	put64(buf + t->record, env->record);
	put64(buf + t->procs, env->procs);
	put64(buf + t->tables, env->tables);
	put64(buf + t->most, env->most_ticks);
	put64(buf + t->ring_most, env->most_ticks);
	put64(buf + t->counters, env->counters);
	put64(buf + t->calls, env->calls);
	put64(buf + t->spans, env->spans);
	put64(buf + t->functions, env->functions);
	put64(buf + t->trace, env->trace);
	put64(buf + t->taken, env->taken);
	put64(buf + t->span_size, env->span_size);
	put64(buf + t->span_within, env->span_within);
	put64(buf + t->span_cost, env->span_cost);
	put64(buf + t->value_within, env->value_within);
	put64(buf + t->value_cost, env->value_cost);
	put64(buf + t->stack, env->stack);
	put32(buf + t->span_mask, env->span_blocks ? env->span_blocks - 1 : 0);
	put32(buf + t->own, env->own_slots);
	put32(buf + t->slots, env->slots << 10);
	put32(buf + t->chunk_mask, env->chunks ? env->chunks - 1 : 0);
	emit_stacks(env, buf);
}

void stub_common_gadgets(uint64_t common, struct arch_gadgets *out)
{
	const struct stub_common *t = &stub_common_template;

	memset(out, 0, sizeof(*out));
	out->syscall = common + t->gadget_syscall;
	out->sigreturn = common + t->gadget_sigreturn;
	out->result = common + t->gadget_result;
}

/* Is the exit a ret, with or without prefixes (rep, bnd)? */
static bool returns(const struct plan *plan)
{
	const struct plan_insn *last = &plan->insn[plan->insns - 1];
	const uint8_t *p = plan->orig + last->off, *end = p + last->len;

	while (p < end && (*p == 0xf2 || *p == 0xf3))
		p++;
	return p < end && (*p == 0xc2 || *p == 0xc3);
}

static uint32_t close_kind(const struct plan *plan, const struct arch_count *count)
{
	uint32_t kind = KIND_CLOSE | (returns(plan) ? KIND_RETURNS : 0);

	if (count->values)
		kind |= KIND_VALUES;
	if (count->values && count->follow == ARCH_FOLLOW_RESULT)
		kind |= KIND_RESULT | (uint32_t)count->text << KIND_FOLLOW;
	return kind;
}

/* KIND_*, and the distance from rsp to the return address. An exit's stub steps over the red zone.
 */
static uint32_t kind_of(const struct plan *plan, const struct arch_count *count)
{
	uint32_t function = (uint32_t)count->function << 16;

	if (count->kind == ARCH_END)
		return close_kind(plan, count) | RED_ZONE << 8 | function;
	if (count->kind != ARCH_BEGIN)
		return 0;
	return KIND_OPEN | (count->values ? KIND_KEEP : 0) |
	       (uint32_t)count->follow << KIND_FOLLOW | (uint32_t)plan->pushed << 8 | function;
}

/* Appends what runs before the stub's own code, which is entered from there. */
static bool emit_before(const struct plan *plan, uint64_t at, uint8_t *buf, size_t cap,
			struct arch_site *out, enum plan_refusal *why)
{
	size_t n, from = out->size;
	size_t len = plan_emit_before(plan, at + from, at + out->entry, buf + from, cap - from,
				      out->pcs + out->n_pcs, &n, why);

	for (size_t i = out->n_pcs; i < out->n_pcs + n; i++)
		out->pcs[i].emitted += from;
	out->n_pcs += n;
	out->entry = from;
	out->size += len;
	return len;
}

size_t stub_common_parts(struct arch_part *parts)
{
	const struct stub_common *t = &stub_common_template;

	parts[0] = (struct arch_part){ "spin", t->slow, t->doorbell - t->slow };
	parts[1] = (struct arch_part){ "doorbell", t->doorbell, t->gadget_syscall - t->doorbell };
	parts[2] = (struct arch_part){ "call", t->gadget_syscall,
				       stub_common_size() - t->gadget_syscall };
	return 3;
}

/* Appends the displaced code and completes *out, whose entry is set. */
static size_t emit_displaced(const struct plan *plan, uint64_t at, size_t head, uint8_t *buf,
			     size_t cap, struct arch_site *out, enum plan_refusal *why)
{
	size_t tail = plan_emit(plan, at + head, buf + head, cap - head, out->pcs, &out->n_pcs,
				why);

	if (!tail)
		return 0;
	for (size_t i = 0; i < out->n_pcs; i++)
		out->pcs[i].emitted += head;
	out->displaced = head;
	out->size = head + tail;
	if ((plan->before || plan->conditional) && !emit_before(plan, at, buf, cap, out, why))
		return 0;
	return out->size;
}

static const struct stub_template *
site_template(const struct arch_env *env, const struct plan *plan, const struct arch_count *count)
{
	bool each = count->each;
	int variant = (each ? SITE_EACH : 0) + (env->own_slots ? SITE_OWN : SITE_SHARED);

	if (count->kind == ARCH_END)
		return &stub_templates[SITE_CLOSE];
	if (plan->go_leaf)
		return &stub_templates[(each ? SITE_GO_EACH : SITE_GO) + !env->own_slots];
	if (!plan->entry)
		variant += 2;
	else if (plan->flags_live)
		variant += 1;
	return &stub_templates[variant];
}

size_t stub_emit_site(const struct arch_env *env, const struct plan *plan,
		      const struct arch_count *count, uint64_t at, uint8_t *buf, size_t cap,
		      struct arch_site *out, enum plan_refusal *why)
{
	const struct stub_template *t = site_template(env, plan, count);
	const uint64_t counters = env->common + stub_common_template.counters;
	uint32_t slots = env->slots << 10;

	if (cap < t->size)
		return 0;
	memcpy(buf, t->code, t->size);
	put32(buf + t->jmp, rel32(at + t->jmp, env->common + stub_common_template.slow));
	put64(buf + t->record, env->record);
	put64(buf + t->cell, count->cell);
	put32(buf + t->kind, kind_of(plan, count));
	if (t->each)
		put64(buf + t->each, count->each);
	if (t->mask)
		put32(buf + t->mask, env->own_slots ? slots - 1024 : slots);
	if (t->base)
		put32(buf + t->base, rel32(at + t->base, counters));
	if (t->taken)
		put32(buf + t->taken, rel32(at + t->taken, counters));
	if (t->low_record) {
		put64(buf + t->low_record, env->record);
		put64(buf + t->low_cell, count->cell);
		put32(buf + t->low_base, rel32(at + t->low_base, counters));
		put32(buf + t->low_slot, CELL_SLOT + slots + SLOT_HITS);
	}
	if (t->low_each)
		put64(buf + t->low_each, count->each);
	out->entry = t->entry;
	return emit_displaced(plan, at, t->size, buf, cap, out, why);
}

size_t stub_emit_doorbell(const struct arch_env *env, const struct plan *plan, uint64_t at,
			  bool once, uint8_t *buf, size_t cap, struct arch_site *out,
			  enum plan_refusal *why)
{
	const struct stub_common *t = &stub_common_template;

	if (cap < t->doorbell_size)
		return 0;
	memcpy(buf, t->doorbell_site, t->doorbell_size);
	put32(buf + t->doorbell_jmp,
	      rel32(at + t->doorbell_jmp, env->common + (once ? t->doorbell_once : t->doorbell)));
	out->entry = 0;
	return emit_displaced(plan, at, t->doorbell_size, buf, cap, out, why);
}
