/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer: any bytes as code. What is planned must be consistent, what is emitted must decode
 * to as many instructions as the original had, or more, with the same operands.
 */
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "inject/arch/x86_64/x86.h"
#include "inject/exits.h"
#include "inject/landing.h"

enum { TEXT = 512 };

#define BASE 0x555580000f00ULL /* a page boundary lies within */

static bool bounds(void *ctx, uint64_t addr, uint64_t *start, uint64_t *end)
{
	const struct plan_request *req = ctx;

	*start = req->func;
	*end = req->func_end;
	return addr >= *start && addr < *end;
}

static void check_plan(const struct plan_request *req, const struct plan *plan)
{
	unsigned int off = 0;

	CHECK(plan->insns > 0 && plan->insns <= PLAN_MAX_INSNS);
	CHECK(plan->len > 0 && plan->len <= PLAN_MAX_WINDOW);
	CHECK(plan->retargets <= PLAN_MAX_RETARGETS);
	CHECK(plan->addr / 4096 == (plan->addr + plan->len - 1) / 4096);
	for (unsigned int i = 0; i < plan->insns; i++) {
		CHECK(plan->insn[i].off == off);
		off += plan->insn[i].len;
	}
	CHECK(plan->resume == plan->addr + off);
	CHECK(plan->shape == PLAN_TAIL ? plan->ends && off < 5 : off >= plan->len || req->exit);
	CHECK(!plan->pad == (plan->shape != PLAN_PRE && plan->shape != PLAN_ISLAND));
	if (req->runs_on)
		CHECK(plan->before == plan->insns && plan->resume > req->addr &&
		      plan->resume <= req->func_end && plan->insn[plan->before].off == off);
	else
		CHECK(!req->exit || (plan->ends && plan->before == plan->insns - 1 &&
				     plan->addr + plan->insn[plan->before].off == req->addr));
	CHECK(!memcmp(plan->orig, req->text + (plan->addr - req->text_addr),
		      off > plan->len ? off : plan->len));
}

/* Everything that was emitted decodes, and each boundary is met. */
static void check_code(const struct plan *plan, uint64_t at, const uint8_t *buf, size_t len,
		       const struct plan_pc *pcs, size_t n)
{
	size_t off = 0, met = 0;

	CHECK(n == plan->insns - plan->before + (plan->ends ? 0u : 1u) && pcs[0].emitted == 0);
	while (off < len) {
		struct x86_decoded insn;

		if (met < n && pcs[met].emitted == off)
			met++;
		CHECK(x86_classify(buf + off, len - off, at + off, &insn) == PLAN_OK);
		CHECK(insn.kind != X86_FIXED && insn.kind != X86_CALL);
		off += insn.form.len;
	}
	CHECK(off == len && met == n);
}

static void check_emit(const struct plan *plan, uint64_t at)
{
	uint8_t buf[PLAN_MAX_DISPLACED], head[PLAN_MAX_WINDOW], pad[5];
	struct plan_pc pcs[PLAN_MAX_INSNS + 1];
	enum plan_refusal why = PLAN_OK;
	size_t n, len = plan_emit(plan, at, buf, sizeof(buf), pcs, &n, &why);

	CHECK(len ? why == PLAN_OK : why == PLAN_OUT_OF_REACH);
	if (len)
		check_code(plan, at, buf, len, pcs, n);
	plan_patch(plan, at, head, pad);
	for (size_t i = 0; len && i < n; i++)
		CHECK(plan_emitted_pc(pcs, n, pcs[i].original) >= 0);
}

static void check_request(const struct plan_request *req)
{
	struct landing_set *set = landing_new();
	char detail[32];
	struct plan plan;
	unsigned int len;
	uint64_t addr;

	CHECK(set);
	plan_landing_range(req, &addr, &len);
	CHECK(!landing_add_window(set, addr, len));
	CHECK(!landing_scan(set, req->text, req->text_addr, req->text_len, bounds, (void *)req));
	if (plan_make(req, set, &plan, detail, sizeof(detail)) == PLAN_OK) {
		CHECK(len && plan.addr >= addr && plan.addr + plan.len <= addr + len);
		CHECK(!plan.pad || plan.pad >= addr);
		check_plan(req, &plan);
		check_emit(&plan, plan.addr + 0x10000);
		check_emit(&plan, plan.addr - 0x70000000);
		check_emit(&plan, plan.addr + 0x7ffffff0);
	}
	landing_free(set);
}

static enum exits_place place(void *ctx, uint64_t addr, struct exits_part *part)
{
	const struct plan_request *req = ctx;

	*part = (struct exits_part){ addr & ~7ULL, (addr & ~7ULL) + 24 };
	return addr - req->text_addr < req->text_len ? (enum exits_place)(addr % 3) : EXITS_UNKNOWN;
}

/* Each exit lies in its part, and can be planned where one byte is enough. */
static void check_exits(const struct plan_request *function)
{
	struct plan_request req = *function;
	struct exits exits;
	struct plan plan;
	char detail[64];

	if (exits_find(&req, place, &req, &exits, detail, sizeof(detail)) != PLAN_OK) {
		CHECK(!exits.site && !exits.count);
		return;
	}
	CHECK(exits.count);
	for (size_t i = 0; i < exits.count; i++) {
		const struct exits_site *site = &exits.site[i];

		CHECK(site->addr >= site->part.start && site->addr < site->part.end);
		req.addr = site->addr;
		req.func = site->part.start;
		req.func_end = site->part.end;
		req.entry = false;
		req.exit = req.int3 = true;
		req.runs_on = site->runs_on;
		if (plan_make(&req, NULL, &plan, detail, sizeof(detail)) == PLAN_OK)
			check_plan(&req, &plan);
	}
	free(exits.site);
}

/* Bytes: flags, offset of the function, its size, of the padding before it, then the text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *text;
	struct plan_request req;

	if (size < 5 || size > TEXT)
		return 0;
	text = malloc(size - 4);
	CHECK(text);
	memcpy(text, data + 4, size - 4);
	req = (struct plan_request){
		.text = text,
		.text_addr = BASE,
		.text_len = size - 4,
		.func = BASE + data[1],
		.func_end = data[2] ? BASE + data[1] + data[2] : 0,
		.entry = data[0] & 1,
		.int3 = data[0] & 2,
		.exit = (data[0] & 5) == 4,
		.islands = data[0] & 8,
	};
	req.addr = req.func + (req.entry ? 0 : data[0] >> 4);
	req.prev_end = req.func - data[3] % 32;
	req.next = BASE + data[1] + data[2] + data[3] / 32;
	check_request(&req);
	check_exits(&req);
	free(text);
	return 0;
}
