/* SPDX-License-Identifier: MIT */
/*
 * Whether and how a site is hooked: see plan.h for the shapes and the place of the window.
 *
 * The order of trial is body or tail behind the first instruction, body or tail, then pre,
 * then an island. An obstacle to a five-byte window (a short body, a landing at byte 2, a page's
 * end, an immovable third instruction) often is none to a two-byte one.
 */
#include <stdio.h>
#include <string.h>
#include "x86.h"
#include "inject/landing.h"

enum { JUMP = 5, SHORT_JUMP = 2, CODE_ALIGN = 16, PAGE = 4096, MAX_LANDINGS = 64 };

struct attempt {
	const struct plan_request *req;
	const struct landing_set *landings;
	struct plan *plan;
	char *detail;
	size_t detail_size;
};

static enum plan_refusal refuse(const struct attempt *a, enum plan_refusal why, const char *text,
				uint64_t addr)
{
	if (a->detail_size)
		snprintf(a->detail, a->detail_size, "%s 0x%llx", text, (unsigned long long)addr);
	return why;
}

static bool on_one_page(uint64_t addr, unsigned int len)
{
	return addr / PAGE == (addr + len - 1) / PAGE;
}

static bool inside(uint64_t addr, uint64_t start, uint64_t len)
{
	return addr - start < len;
}

/* The end of the code that certainly belongs to the function. */
static uint64_t code_end(const struct plan_request *req)
{
	if (req->func_end > req->addr)
		return req->func_end;
	return req->next > req->addr ? req->next : req->text_addr + req->text_len;
}

static enum plan_refusal read_insn(const struct plan_request *req, uint64_t pc,
				   struct x86_decoded *insn)
{
	size_t avail;
	const uint8_t *p = x86_text_at(req, pc, &avail);

	return p ? x86_decode(p, avail, pc, insn) : PLAN_UNDECODABLE;
}

/* The operand is computed from rsp, which the pushed return address has moved. */
static bool uses_rsp(const struct x86_form *f, const uint8_t *p)
{
	bool rex_b = f->op_off && (p[f->op_off - 1] & 0xf1) == 0x41;

	if (f->modrm >= 0xc0)
		return (f->modrm & 7) == 4 && !rex_b;
	return (f->modrm & 7) == 4 && (f->sib & 7) == 4 && !rex_b;
}

/* Takes one instruction into the window. */
static enum plan_refusal take(struct attempt *a, const struct x86_decoded *insn)
{
	struct plan *plan = a->plan;
	unsigned int off = plan->resume - plan->addr;
	size_t avail;
	const uint8_t *p = x86_text_at(a->req, plan->resume, &avail);

	if (insn->kind == X86_FIXED || (insn->kind == X86_CALL_IND && uses_rsp(&insn->form, p)))
		return refuse(a, PLAN_UNMOVABLE, "at", plan->resume);
	if (plan->insns == PLAN_MAX_INSNS || off + insn->form.len > PLAN_MAX_WINDOW)
		return refuse(a, PLAN_UNDECODABLE, "at", plan->resume);
	memcpy(plan->orig + off, p, insn->form.len);
	plan->insn[plan->insns++] = (struct plan_insn){ (uint8_t)off, insn->form.len };
	plan->resume += insn->form.len;
	plan->ends = x86_ends(insn->kind);
	return PLAN_OK;
}

/* Takes whole instructions until they cover `want` bytes or the code ends. */
static enum plan_refusal displace(struct attempt *a, unsigned int want)
{
	struct plan *plan = a->plan;
	uint64_t end = code_end(a->req);

	plan->insns = 0;
	plan->ends = false;
	plan->resume = plan->addr;
	while (plan->resume < plan->addr + want && plan->resume < end && !plan->ends) {
		struct x86_decoded insn;
		enum plan_refusal why = read_insn(a->req, plan->resume, &insn);

		if (why != PLAN_OK)
			return refuse(a, why, "at", plan->resume);
		if (plan->resume + insn.form.len > end)
			return refuse(a, PLAN_TOO_SHORT, "ends at", end);
		why = take(a, &insn);
		if (why != PLAN_OK)
			return why;
	}
	return PLAN_OK;
}

/* Checks one displaced instruction against the bytes to be replaced. */
static enum plan_refusal check_insn(const struct attempt *a, unsigned int i)
{
	const struct plan *plan = a->plan;
	uint64_t pc = plan->addr + plan->insn[i].off;
	uint64_t end = pc + plan->insn[i].len;
	struct x86_decoded insn;
	bool call;

	if (x86_classify(plan->orig + plan->insn[i].off, plan->insn[i].len, pc, &insn) != PLAN_OK)
		return refuse(a, PLAN_UNDECODABLE, "at", pc);
	call = insn.kind == X86_CALL || insn.kind == X86_CALL_IND;
	/* the callee returns to the original code, not to the copy */
	if (call && inside(end, plan->addr + 1, plan->len - 1))
		return refuse(a, PLAN_UNMOVABLE, "call returns to", end);
	if (!insn.target || !inside(insn.target, plan->addr + 1, plan->len - 1))
		return PLAN_OK;
	if (insn.form.rip || call)
		return refuse(a, PLAN_UNMOVABLE, "refers to", insn.target);
	for (unsigned int k = 0; k < plan->insns; k++)
		if (plan->addr + plan->insn[k].off == insn.target)
			return PLAN_OK;
	return refuse(a, PLAN_LANDING, "from", pc);
}

static enum plan_refusal check_insns(const struct attempt *a)
{
	for (unsigned int i = 0; i < a->plan->insns; i++) {
		enum plan_refusal why = check_insn(a, i);

		if (why != PLAN_OK)
			return why;
	}
	return PLAN_OK;
}

/* Refuses if anything but the displaced instructions themselves lands on [addr, addr + len). */
static enum plan_refusal check_landings(const struct attempt *a, uint64_t addr, unsigned int len)
{
	struct landing found[MAX_LANDINGS];
	size_t n;

	if (!a->landings)
		return PLAN_OK;
	n = landing_query(a->landings, addr, len, found, MAX_LANDINGS);
	for (size_t i = 0; i < n && i < MAX_LANDINGS; i++)
		if (!inside(found[i].from, a->plan->addr, a->plan->resume - a->plan->addr))
			return refuse(a, PLAN_LANDING, "from", found[i].from);
	if (n > MAX_LANDINGS)
		return refuse(a, PLAN_LANDING, "many on", addr);
	return PLAN_OK;
}

/*
 * A switch may jump to any instruction of a window in mid-function, and its table is data that no
 * scan for branches finds. At an entry there is no space before it for the dispatch.
 */
static enum plan_refusal check_tables(const struct attempt *a)
{
	const struct plan_request *req = a->req;
	uint64_t pc = req->func, end = code_end(req);

	if (req->entry || a->plan->insns < 2 || (req->exit && !req->switches))
		return PLAN_OK;
	while (pc < end) {
		struct x86_decoded insn;
		size_t avail;
		const uint8_t *p = x86_text_at(req, pc, &avail);

		if (!p || x86_classify(p, avail, pc, &insn) != PLAN_OK)
			return refuse(a, PLAN_LANDING, "undecodable function, at", pc);
		if (insn.kind == X86_JMP_IND && !insn.form.rip)
			return refuse(a, PLAN_LANDING, "jump table, at", pc);
		pc += insn.form.len;
	}
	return PLAN_OK;
}

/* All checks that apply to every shape, once addr, len and the instructions are set. */
static enum plan_refusal check_window(const struct attempt *a)
{
	const struct plan *plan = a->plan;
	enum plan_refusal why;

	if (inside(a->req->next, plan->addr + 1, plan->len - 1))
		return refuse(a, PLAN_LANDING, "another symbol at", a->req->next);
	if (a->req->go_waits && plan->insns != 1)
		return refuse(a, PLAN_GO_PREEMPT, "at", plan->addr);
	if (!on_one_page(plan->addr, plan->len))
		return refuse(a, PLAN_CROSSES_PAGE, "at", plan->addr);
	why = check_insns(a);
	if (why == PLAN_OK)
		why = check_landings(a, plan->addr + 1, plan->len - 1);
	if (why == PLAN_OK)
		why = check_tables(a);
	return why;
}

/*
 * A window of `want` bytes may extend behind a body that ended. Either into the no-ops up to the
 * next function, with nothing else between: in a stripped file that function may have no name
 * (musl's neighbour of _dl_debug_state()); it begins where the no-ops end, at a multiple of the
 * alignment of functions. Or into what the linker leaves between .text and .fini, whatever that is.
 * Behind an exit in mid-function, into the no-ops that align a branch's destination.
 */
static bool has_tail(const struct attempt *a, unsigned int want)
{
	const struct plan *plan = a->plan;
	const struct plan_request *req = a->req;
	uint64_t aligned = (plan->resume + CODE_ALIGN - 1) & ~(uint64_t)(CODE_ALIGN - 1);
	uint64_t end = plan->addr + want;
	size_t avail;

	if (!plan->ends || !x86_text_at(req, end - 1, &avail))
		return false;
	if (req->exit && x86_covered_by_nops(req, plan->resume, end))
		return req->next >= end;
	if (!req->func_end || plan->resume != req->func_end || req->next < end)
		return false;
	if (req->fill_end >= end || x86_only_nops(req, plan->resume, req->next))
		return true;
	return aligned >= end && aligned <= req->next && x86_only_nops(req, plan->resume, aligned);
}

/* A window of `want` bytes or more, at least a jump's length. */
static enum plan_refusal try_length(struct attempt *a, unsigned int want)
{
	struct plan *plan = a->plan;
	enum plan_refusal why = displace(a, want);
	unsigned int covered = plan->resume - plan->addr;
	size_t avail;

	if (why != PLAN_OK)
		return why;
	plan->shape = PLAN_BODY;
	plan->len = (uint8_t)covered;
	if (covered < JUMP) {
		if (!has_tail(a, JUMP))
			return refuse(a, PLAN_TOO_SHORT, "ends at", plan->resume);
		plan->shape = PLAN_TAIL;
		plan->len = JUMP;
		memcpy(plan->orig, x86_text_at(a->req, plan->addr, &avail), JUMP);
	}
	return check_window(a);
}

static enum plan_refusal try_body(struct attempt *a)
{
	return try_length(a, JUMP);
}

static enum plan_refusal try_pre(struct attempt *a)
{
	struct plan *plan = a->plan;
	const struct plan_request *req = a->req;
	uint64_t pad = x86_pad_place(req, req->prev_end, req->func);
	enum plan_refusal why;
	size_t avail;

	if (!req->entry || req->go || plan->addr != req->func + plan->skipped)
		return PLAN_TOO_SHORT;
	if (!pad || !on_one_page(pad, JUMP))
		return PLAN_TOO_SHORT;
	why = displace(a, SHORT_JUMP);
	if (why != PLAN_OK)
		return why;
	if (plan->resume < plan->addr + SHORT_JUMP) {
		if (!has_tail(a, SHORT_JUMP))
			return PLAN_TOO_SHORT;
		memcpy(plan->orig, x86_text_at(req, plan->addr, &avail), SHORT_JUMP);
	}
	plan->shape = PLAN_PRE;
	plan->len = SHORT_JUMP;
	plan->pad = pad;
	memcpy(plan->pad_orig, x86_text_at(req, pad, &avail), JUMP);
	why = check_window(a);
	return why == PLAN_OK ? check_landings(a, pad, JUMP) : why;
}

static enum plan_refusal try_int3(struct attempt *a)
{
	enum plan_refusal why = displace(a, 1);

	if (why != PLAN_OK)
		return why;
	if (!a->plan->insns)
		return refuse(a, PLAN_TOO_SHORT, "ends at", a->plan->addr);
	a->plan->shape = PLAN_INT3;
	a->plan->len = 1;
	return check_window(a);
}

/* A jump from inside the function, other than a displaced one, to its entry. */
static bool is_loop(const struct attempt *a, const struct landing *l)
{
	uint64_t func = a->req->func;

	return !l->call && inside(l->from, func, code_end(a->req) - func) &&
	       !inside(l->from, a->plan->addr, a->plan->resume - a->plan->addr);
}

/*
 * A jump of two bytes followed by traps up to where one of five would end, before the next
 * function: the fill that Go's linker puts between functions, which never runs. No pc is in the
 * fill, nor in the jump's second byte, so a goroutine that waits with the jump as its return
 * address is safe.
 */
static bool may_widen(const struct attempt *a, const struct landing *l)
{
	uint64_t next = a->req->next ? a->req->next : a->req->func_end;
	size_t avail;
	const uint8_t *p = x86_text_at(a->req, l->from, &avail);

	return p && avail >= JUMP && p[2] == 0xcc && p[3] == 0xcc && p[4] == 0xcc &&
	       l->from + JUMP <= next && on_one_page(l->from, JUMP);
}

static enum plan_refusal retarget_one(const struct attempt *a, const struct landing *l)
{
	struct plan_retarget *rt = &a->plan->retarget[a->plan->retargets];
	size_t avail;
	const uint8_t *p = x86_text_at(a->req, l->from, &avail);

	if (!l->confirmed || a->plan->retargets == PLAN_MAX_RETARGETS)
		return PLAN_LOOPS_TO_ENTRY;
	*rt = (struct plan_retarget){ .field = l->field, .insn_end = 4 };
	if (l->field_len == 1 && (!p || *p != 0xeb || l->field != l->from + 1))
		return PLAN_LOOPS_TO_ENTRY;
	if (l->field_len == 1)
		rt->widen = may_widen(a, l);
	if (l->field_len == 1 ? !rt->widen : !on_one_page(l->field, 4))
		return PLAN_LOOPS_TO_ENTRY;
	a->plan->retargets++;
	return PLAN_OK;
}

static enum plan_refusal retarget_from(const struct attempt *a, uint64_t to)
{
	struct landing found[MAX_LANDINGS * 2];
	size_t cap = MAX_LANDINGS * 2, n = landing_query(a->landings, to, 1, found, cap);

	for (size_t i = 0; i < n && i < cap; i++) {
		const struct landing *l = &found[i];

		if (is_loop(a, l) && retarget_one(a, l) != PLAN_OK)
			return refuse(a, PLAN_LOOPS_TO_ENTRY, "from", l->from);
	}
	return n > cap ? refuse(a, PLAN_LOOPS_TO_ENTRY, "many to", to) : PLAN_OK;
}

/* Redirects the function's own branches to its entry past the hook. */
static enum plan_refusal retarget(const struct attempt *a)
{
	struct plan *plan = a->plan;
	enum plan_refusal why;

	plan->retargets = 0;
	/* in mid-function each pass counts */
	if (!a->landings || !plan->entry)
		return PLAN_OK;
	why = retarget_from(a, plan->addr);
	if (why == PLAN_OK && plan->skipped)
		why = retarget_from(a, plan->addr - plan->skipped);
	return why;
}

/* Decoding from the function's start must meet an address in mid-function. */
static enum plan_refusal check_boundary(const struct attempt *a)
{
	const struct plan_request *req = a->req;
	uint64_t pc = req->func;

	while (pc && pc < req->addr) {
		struct x86_decoded insn;
		size_t avail;
		const uint8_t *p = x86_text_at(req, pc, &avail);

		if (!p || x86_classify(p, avail, pc, &insn) != PLAN_OK)
			return refuse(a, PLAN_UNDECODABLE, "at", pc);
		pc += insn.form.len;
	}
	return pc > req->addr ? refuse(a, PLAN_MID_INSTRUCTION, "in", req->addr) : PLAN_OK;
}

static void skip_endbr(const struct plan_request *req, struct plan *plan)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t avail;
	const uint8_t *p = x86_text_at(req, req->addr, &avail);

	plan->addr = req->addr;
	if (p && avail > sizeof(endbr64) && !memcmp(p, endbr64, sizeof(endbr64)))
		plan->skipped = sizeof(endbr64);
	plan->addr += plan->skipped;
}

/* A branch of the function itself goes to its entry, and would pass a window behind it again. */
static bool loops_to_entry(const struct attempt *a)
{
	struct landing found[MAX_LANDINGS];
	size_t n = a->landings ? landing_query(a->landings, a->req->addr, 1, found, MAX_LANDINGS) :
				 0;

	for (size_t i = 0; i < n && i < MAX_LANDINGS; i++)
		if (!found[i].call &&
		    inside(found[i].from, a->req->func, code_end(a->req) - a->req->func))
			return true;
	return n > MAX_LANDINGS;
}

/*
 * Of instructions that x86_may_precede(): it does not write r12 or r13, which a Go function's stub
 * treats as free.
 */
static bool moves_stack(const uint8_t *p)
{
	return *p == 0x55 || (p[0] == 0x48 && (p[1] == 0x83 || p[1] == 0x81) && p[2] == 0xec);
}

static uint8_t pushed_by(const uint8_t *p, const struct x86_decoded *insn)
{
	if ((insn->form.opcode & 0xf8) == 0x50)
		return 8;
	return insn->form.opcode == 0x83 ? p[insn->form.len - 1] : 0;
}

/*
 * A uprobe of another tool on the entry of a function that is hooked there makes the kernel run the
 * file's first instruction and continue behind it, in the middle of the jump. So where the first
 * instruction can run before the stub it stays, and the window begins behind it. One as long as a
 * jump can be replaced, too: execution continues behind that. It leaves more space for exits.
 */
static enum plan_refusal try_behind(struct attempt *a)
{
	struct x86_decoded insn;
	enum plan_refusal why;
	const uint8_t *first;
	size_t avail;

	if (!a->req->entry || a->plan->skipped || loops_to_entry(a) ||
	    read_insn(a->req, a->req->addr, &insn) != PLAN_OK)
		return PLAN_TOO_SHORT;
	first = x86_text_at(a->req, a->req->addr, &avail);
	if (a->req->ends && insn.form.len >= JUMP)
		return PLAN_TOO_SHORT;
	if (!x86_may_precede(first, &insn) || (a->req->go_leaf && !moves_stack(first)) ||
	    (a->req->args && x86_writes_argument(first, &insn)))
		return PLAN_TOO_SHORT;
	a->plan->skipped = insn.form.len;
	a->plan->pushed = pushed_by(first, &insn);
	a->plan->addr += insn.form.len;
	if (x86_flags_live(a->req, a->plan->addr))
		return PLAN_TOO_SHORT;
	why = try_body(a);
	/* A pass that reaches it by another way than the first instruction is no call. */
	return why == PLAN_OK ? check_landings(a, a->plan->addr, 1) : why;
}

enum {
	EXIT_RUN = JUMP,   /* instructions before an exit that a window may take */
	LONGEST_EXIT = 20, /* bytes: 4, and an instruction of 15 that ends in them */
	SHORT_REACH = 160, /* a window and what its short jump reaches */
};

/* An instruction that may run in the stub, before the stub's own code. A branch that is taken there
 * leaves the stub: stays_out() checks where it leads. */
static bool may_run_before(const struct plan_request *req, const struct x86_decoded *insn)
{
	bool leaves = insn->target < req->func || insn->target >= req->func_end;

	if (insn->kind == X86_JCC)
		return insn->target != req->addr && !(req->leaves && leaves);
	return insn->kind == X86_PLAIN;
}

/*
 * Where the instructions before an exit begin, the nearest last, as far as execution passes from
 * each to the next.
 */
static unsigned int run_before(const struct plan_request *req, uint64_t *start)
{
	unsigned int n = 0;

	for (uint64_t pc = req->func; pc < req->addr;) {
		struct x86_decoded insn;
		size_t avail;
		const uint8_t *p = x86_text_at(req, pc, &avail);

		if (!p || x86_classify(p, avail, pc, &insn) != PLAN_OK)
			return 0;
		if (!may_run_before(req, &insn))
			n = 0;
		else if (n == EXIT_RUN)
			memmove(start, start + 1, (n - 1) * sizeof(*start));
		else
			n++;
		if (n)
			start[n - 1] = pc;
		pc += insn.form.len;
	}
	return n;
}

static bool is_taken(const struct plan_request *req, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < req->n_taken; i++)
		if (req->taken[i].start < to && from < req->taken[i].end)
			return true;
	return false;
}

/* Makes the plan's short jump reach the island. */
static bool use_island(const struct attempt *a, uint64_t island)
{
	struct plan *plan = a->plan;
	int64_t rel = (int64_t)(island - (plan->addr + SHORT_JUMP));
	size_t avail;
	const uint8_t *p = x86_text_at(a->req, island, &avail);

	if (rel != (int8_t)rel || !p || avail < JUMP || !on_one_page(island, JUMP) ||
	    (island < plan->resume + SHORT_JUMP && plan->addr < island + JUMP) ||
	    is_taken(a->req, island, island + JUMP) || check_landings(a, island, JUMP) != PLAN_OK)
		return false;
	plan->pad = island;
	memcpy(plan->pad_orig, p, JUMP);
	return true;
}

/* Tries the no-ops [from, to), from behind. */
static bool use_nops(const struct attempt *a, uint64_t from, uint64_t to)
{
	for (uint64_t at = to - JUMP; to - from >= JUMP && at >= from; at--)
		if (use_island(a, at))
			return true;
	return false;
}

/* No-ops that follow a jump or a ret in the code [pc, end), which begins with an instruction. */
static bool use_nops_among(const struct attempt *a, uint64_t pc, uint64_t end)
{
	const struct plan_request *req = a->req;
	uint64_t from = 0;
	bool ends = false;

	while (pc < end) {
		struct x86_decoded insn;
		size_t avail;
		const uint8_t *p = x86_text_at(req, pc, &avail);
		bool nop = p && x86_nop_length(p, avail);

		if (!p || x86_classify(p, avail, pc, &insn) != PLAN_OK)
			return false;
		if (!nop && from && use_nops(a, from, pc))
			return true;
		if (nop && ends && !from)
			from = pc;
		if (!nop)
			from = 0;
		ends = nop ? ends : x86_ends(insn.kind);
		pc += insn.form.len;
	}
	return from && use_nops(a, from, pc);
}

/* No-ops of the functions before this one, behind a ret or a jump. */
static bool use_nops_before(const struct attempt *a)
{
	const struct plan_request *req = a->req;
	uint64_t least = req->func - SHORT_REACH, at = req->func - JUMP;

	for (least = least < req->text_addr ? req->text_addr : least; at >= least; at--) {
		uint64_t end = x86_nops_from(req, at, req->func);

		if (end - at >= JUMP && x86_dead_nops(req, at, end) && use_nops(a, at, end))
			return true;
	}
	return false;
}

/* No-ops of the functions behind this one, which follow a ret or a jump there. */
static bool use_nops_behind(const struct attempt *a)
{
	const struct plan_request *req = a->req;

	return req->next >= req->func_end && use_nops_among(a, req->next, req->addr + SHORT_REACH);
}

/* Of the function, else between it and its neighbours, else of these. */
static bool find_island(const struct attempt *a)
{
	const struct plan_request *req = a->req;

	if (use_nops_among(a, req->func, req->func_end))
		return true;
	if (!req->runs_on && req->next > req->func_end &&
	    x86_only_nops(req, req->func_end, req->next) && use_nops(a, req->func_end, req->next))
		return true;
	if (x86_dead_nops(req, req->prev_end, req->func) && use_nops(a, req->prev_end, req->func))
		return true;
	return use_nops_before(a) || use_nops_behind(a);
}

/* A window of `want` bytes at the plan's address, by a jump of two bytes to an island. */
static enum plan_refusal take_short(struct attempt *a, unsigned int want)
{
	struct plan *plan = a->plan;
	enum plan_refusal why = displace(a, want);
	size_t avail;

	if (why != PLAN_OK)
		return why;
	if (plan->resume < plan->addr + SHORT_JUMP) {
		if (!has_tail(a, SHORT_JUMP))
			return PLAN_TOO_SHORT;
		memcpy(plan->orig, x86_text_at(a->req, plan->addr, &avail), SHORT_JUMP);
	}
	plan->shape = PLAN_ISLAND;
	plan->len = SHORT_JUMP;
	return check_window(a);
}

/*
 * The window ends with the exit. A conditional one has more boundaries in the stub than another,
 * for which the table of plan_emit() must have space.
 */
static bool ends_with_exit(struct attempt *a)
{
	struct plan *plan = a->plan;
	uint8_t last = plan->insns ? plan->insn[plan->insns - 1].off : 0;
	struct x86_decoded insn;

	if (a->req->runs_on) /* more no-ops may follow it */
		return plan->resume > a->req->addr && plan->insns < PLAN_MAX_INSNS;
	if (!plan->insns || plan->addr + last != a->req->addr)
		return false;
	plan->conditional = x86_classify(plan->orig + last, plan->insn[plan->insns - 1].len,
					 a->req->addr, &insn) == PLAN_OK &&
			    insn.kind == X86_JCC;
	return plan->conditional ? plan->insns <= PLAN_MAX_INSNS - 2 : plan->ends;
}

/*
 * No displaced branch leads behind the window's first byte, where it would pass the hook: what a
 * short jump leaves of the window is still there.
 */
static bool stays_out(const struct plan *plan)
{
	for (unsigned int i = 0; i < plan->insns; i++) {
		struct x86_decoded insn;

		if (x86_classify(plan->orig + plan->insn[i].off, plan->insn[i].len,
				 plan->addr + plan->insn[i].off, &insn) != PLAN_OK)
			return false;
		if (insn.kind == X86_JCC && insn.target > plan->addr && insn.target < plan->resume)
			return false;
	}
	return true;
}

/* Does the same wherever it stands, and in the end returns. */
static bool is_movable_ret(const struct plan *plan)
{
	struct x86_decoded insn = { .kind = X86_FIXED };

	for (unsigned int i = 0; i < plan->insns; i++)
		if (insn.kind == X86_RET ||
		    x86_classify(plan->orig + plan->insn[i].off, plan->insn[i].len,
				 plan->addr + plan->insn[i].off, &insn) != PLAN_OK ||
		    (insn.kind != X86_PLAIN && insn.kind != X86_RET) || insn.form.rip)
			return false;
	return insn.kind == X86_RET;
}

/* Makes the plan's short jump reach another exit's window of the same instructions. */
static bool find_twin(const struct attempt *a)
{
	struct plan *plan = a->plan;
	uint64_t covered = plan->resume - plan->addr;

	if (!is_movable_ret(plan))
		return false;
	for (size_t i = 0; i < a->req->n_twins; i++) {
		const struct plan *twin = &a->req->twins[i];
		int64_t rel = (int64_t)(twin->addr - (plan->addr + SHORT_JUMP));

		if (rel != (int8_t)rel || twin->resume - twin->addr != covered ||
		    memcmp(twin->orig, plan->orig, covered))
			continue;
		plan->shape = PLAN_TWIN;
		plan->twin = twin->addr;
		return true;
	}
	return false;
}

/* The exit with what stands between it and `from`, by an island or a twin. */
static enum plan_refusal try_island(struct attempt *a, uint64_t from)
{
	struct plan *plan = a->plan;
	enum plan_refusal why;

	plan->addr = from;
	why = take_short(a, (unsigned int)(a->req->addr + 1 - from));
	/* what lands behind the short jump, and before the exit, would miss the hook */
	if (why == PLAN_OK && plan->resume > from + 1)
		why = check_landings(a, from + 1, (unsigned int)(plan->resume - from - 1));
	if (why != PLAN_OK || !ends_with_exit(a) || !stays_out(plan))
		return PLAN_EXIT_ROOM;
	return find_twin(a) || find_island(a) ? PLAN_OK : PLAN_EXIT_ROOM;
}

/* The entry of a short function, where the padding in front of it has no space for a jump. */
static enum plan_refusal try_far_island(struct attempt *a)
{
	enum plan_refusal why;

	if (!a->req->islands || !a->req->entry || a->req->go)
		return PLAN_TOO_SHORT;
	why = take_short(a, SHORT_JUMP);
	if (why != PLAN_OK)
		return why;
	return find_island(a) ? PLAN_OK : PLAN_TOO_SHORT;
}

/* From the exit itself backwards, until the window is long enough. */
static enum plan_refusal try_exit(struct attempt *a)
{
	uint64_t start[EXIT_RUN];
	unsigned int n = run_before(a->req, start);

	for (unsigned int back = 0; back <= n && a->req->islands && !a->req->go; back++)
		if (try_island(a, back ? start[n - back] : a->req->addr) == PLAN_OK)
			return PLAN_OK;

	for (unsigned int back = 0; back <= n; back++) {
		unsigned int to_exit;

		a->plan->addr = back ? start[n - back] : a->req->addr;
		to_exit = (unsigned int)(a->req->addr + 1 - a->plan->addr);
		if (try_length(a, to_exit > JUMP ? to_exit : JUMP) == PLAN_OK &&
		    ends_with_exit(a) && stays_out(a->plan))
			return PLAN_OK;
		if (to_exit >= JUMP)
			break;
	}
	return refuse(a, PLAN_EXIT_ROOM, "at", a->req->addr);
}

/* A later trial, whose refusal is not the one to show. */
static bool try_quietly(struct attempt *a, enum plan_refusal (*try)(struct attempt *))
{
	struct attempt quiet = { a->req, a->landings, a->plan, NULL, 0 };

	if (try(&quiet) != PLAN_OK)
		return false;
	if (a->detail_size)
		a->detail[0] = '\0';
	return true;
}

/* The exit itself runs behind the stub's own code, unless it runs on. */
static void set_before(const struct attempt *a)
{
	struct plan *plan = a->plan;

	plan->before = plan->insns - !a->req->runs_on;
	if (a->req->runs_on)
		plan->insn[plan->insns] = (struct plan_insn){ (uint8_t)(plan->resume - plan->addr),
							      0 };
}

static enum plan_refusal choose_shape(struct attempt *a)
{
	struct plan first = *a->plan;
	enum plan_refusal why;

	if (a->req->exit) {
		why = a->req->int3 ? try_int3(a) : try_exit(a);
		if (why == PLAN_OK && !ends_with_exit(a))
			why = refuse(a, PLAN_EXIT_ROOM, "at", a->req->addr);
		if (why == PLAN_OK)
			set_before(a);
		return why;
	}
	if (a->req->int3)
		return try_int3(a);
	if (try_quietly(a, try_behind))
		return PLAN_OK;
	*a->plan = first;
	why = try_body(a);
	if (why == PLAN_OK)
		return why;
	first = *a->plan;
	/* show the detail of the first trial */
	if (try_quietly(a, try_pre))
		return PLAN_OK;
	*a->plan = first;
	if (try_quietly(a, try_far_island))
		return PLAN_OK;
	*a->plan = first;
	return why;
}

static enum plan_refusal decide(struct attempt *a)
{
	struct plan *plan = a->plan;
	enum plan_refusal why;

	memset(plan, 0, sizeof(*plan));
	if (a->detail_size)
		a->detail[0] = '\0';
	plan->entry = a->req->entry;
	plan->go_leaf = a->req->go_leaf;
	skip_endbr(a->req, plan);
	why = check_boundary(a);
	if (why == PLAN_OK)
		why = choose_shape(a);
	return why == PLAN_OK ? retarget(a) : why;
}

enum plan_refusal plan_make(const struct plan_request *req, const struct landing_set *landings,
			    struct plan *plan, char *detail, size_t detail_size)
{
	struct attempt a = { req, landings, plan, detail, detail ? detail_size : 0 };
	enum plan_refusal why = decide(&a);

	plan->flags_live = why == PLAN_OK && x86_flags_live(req, plan->addr);
	if (plan->flags_live && plan->go_leaf)
		return refuse(&a, PLAN_GO_NOSPLIT, "at", plan->addr);
	return why;
}

bool plan_inner(struct plan *entry, uint64_t exit, struct plan *out)
{
	for (unsigned int i = 0; i < entry->insns; i++) {
		const struct plan_insn *insn = &entry->insn[i];

		if (entry->addr + insn->off != exit)
			continue;
		*out = (struct plan){ .addr = exit,
				      .insns = 1,
				      .insn = { { 0, insn->len } },
				      .resume = exit + insn->len,
				      .ends = entry->ends && i + 1u == entry->insns };
		memcpy(out->orig, entry->orig + insn->off, insn->len);
		entry->inner |= (uint8_t)(1u << i);
		return true;
	}
	return false;
}

void plan_append(struct plan *entry, const struct plan *exit, uint64_t addr)
{
	unsigned int off = (unsigned int)(addr - entry->addr);

	if (entry->resume != addr || entry->ends || entry->insns == PLAN_MAX_INSNS)
		return;
	for (unsigned int i = 0; i < exit->insns; i++) {
		const struct plan_insn *insn = &exit->insn[i];

		if (exit->addr + insn->off != addr || off + insn->len > PLAN_MAX_WINDOW)
			continue;
		memcpy(entry->orig + off, exit->orig + insn->off, insn->len);
		entry->insn[entry->insns++] = (struct plan_insn){ (uint8_t)off, insn->len };
		entry->resume += insn->len;
		return;
	}
}

void plan_landing_range(const struct plan_request *req, uint64_t *addr, unsigned int *len)
{
	struct plan plan;
	struct attempt a = { req, NULL, &plan, NULL, 0 };
	uint64_t pad;

	*addr = req->addr;
	*len = 0;
	if (!req->islands && decide(&a) != PLAN_OK)
		return;
	if (req->islands) {
		*addr = req->addr - SHORT_REACH;
		*len = 2 * SHORT_REACH;
		return;
	}
	if (req->exit) { /* a landing may rule out the window that was chosen without one */
		*addr = req->addr - LONGEST_EXIT > req->func ? req->addr - LONGEST_EXIT : req->func;
		*len = (unsigned int)(req->addr + LONGEST_EXIT - *addr);
		return;
	}
	/* try pre when a landing prevents the other shapes */
	pad = req->entry && !req->int3 ? x86_pad_place(req, req->prev_end, req->func) : 0;
	if (pad)
		*addr = pad;
	*len = (unsigned int)(plan.addr + plan.len - *addr);
}
