/* SPDX-License-Identifier: MIT */
/* Bytes between functions that never run: the fill of assemblers and linkers. */
#include "x86.h"

/* A near jump; how far before an entry it may be: leave.c looks for threads in that range only. */
enum { PAD_JUMP = 5, PAD_REACH = 12, SHORT_FUNCTION = 256 };

const uint8_t *x86_text_at(const struct plan_request *req, uint64_t addr, size_t *avail)
{
	if (addr < req->text_addr || addr - req->text_addr >= req->text_len)
		return NULL;
	*avail = req->text_len - (addr - req->text_addr);
	return req->text + (addr - req->text_addr);
}

/* lea 0(%rsi),%rsi and its longer forms: same register in and out, 64 bits, nothing added. */
static bool is_lea_nop(const uint8_t *p, const struct x86_form *f)
{
	unsigned int reg = f->modrm >> 3 & 7;
	unsigned int base = (f->modrm & 7) == 4 ? f->sib & 7 : f->modrm & 7;
	uint8_t rex = f->op_off ? p[f->op_off - 1] : 0;

	if (f->opcode != 0x8d || !f->rex_w || f->opsize || f->addrsize || f->rip || reg != base)
		return false;
	if ((rex & 2) || !(rex & 4) != !(rex & 1))
		return false;
	if ((f->modrm & 7) == 4 && (f->sib >> 3 & 7) != 4)
		return false;
	if (f->modrm < 0x40 && base == 5)
		return false; /* disp32 alone */
	for (unsigned int i = 0; i < f->disp_len; i++)
		if (p[f->disp_off + i])
			return false;
	return f->modrm < 0xc0;
}

unsigned int x86_nop_length(const uint8_t *p, size_t avail)
{
	struct x86_form f = { 0 };

	if (!x86_length(p, avail, &f) || f.rep)
		return 0;
	if (f.map == 1 && f.opcode == 0x1f && !(f.modrm & 0x38))
		return f.len;
	if (f.map != 0)
		return 0;
	if (f.opcode == 0x90)
		/* with REX.B it exchanges r8 with rax */
		return f.op_off && (p[f.op_off - 1] & 0xf1) == 0x41 ? 0 : f.len;
	if (f.opcode == 0xcc)
		return f.op_off ? 0 : f.len;
	return is_lea_nop(p, &f) ? f.len : 0;
}

/* Where the no-op ends that reaches `to` or goes beyond it, decoding from `from`; 0: something else
 * is among them. */
static uint64_t nops_end(const struct plan_request *req, uint64_t from, uint64_t to)
{
	while (from < to) {
		size_t avail;
		const uint8_t *p = x86_text_at(req, from, &avail);
		unsigned int len = p ? x86_nop_length(p, avail) : 0;

		if (!len)
			return 0;
		from += len;
	}
	return from;
}

bool x86_only_nops(const struct plan_request *req, uint64_t from, uint64_t to)
{
	return nops_end(req, from, to) == to;
}

bool x86_covered_by_nops(const struct plan_request *req, uint64_t from, uint64_t to)
{
	return nops_end(req, from, to) != 0;
}

uint64_t x86_nops_from(const struct plan_request *req, uint64_t from, uint64_t to)
{
	unsigned int len = 1;

	while (from < to && len) {
		size_t avail;
		const uint8_t *p = x86_text_at(req, from, &avail);

		len = p ? x86_nop_length(p, avail) : 0;
		if (from + len > to)
			break;
		from += len;
	}
	return from;
}

/*
 * 1: decoding from `start` ends exactly at `end` with an instruction that never falls through; 0:
 * it does not; -1: this start is no evidence.
 */
static int stream_ends(const struct plan_request *req, uint64_t start, uint64_t end)
{
	bool ends = false;

	while (start < end) {
		struct x86_decoded insn;
		size_t avail;
		const uint8_t *p = x86_text_at(req, start, &avail);

		if (!p || x86_classify(p, avail, start, &insn) != PLAN_OK)
			return -1;
		ends = x86_ends(insn.kind);
		start += insn.form.len;
	}
	return start == end ? ends : -1;
}

/*
 * The code before `end` cannot be decoded backwards, and the start of its function is not always
 * known. But x86 streams fall into step within a few instructions: when decoding from each of 16
 * starts, 49 to 64 bytes before, either breaks or meets `end` with a ret or a jump, and half of
 * them do meet it, that instruction is really there.
 */
static bool nothing_falls_out(const struct plan_request *req, uint64_t end)
{
	unsigned int agreed = 0;

	for (unsigned int back = 49; back <= 64; back++) {
		int verdict = stream_ends(req, end - back, end);

		if (verdict == 0)
			return false;
		agreed += verdict == 1;
	}
	return agreed >= 8;
}

/* True if it is certain that no code runs into the no-ops at `from`. */
static bool is_entered_nowhere(const struct plan_request *req, uint64_t from)
{
	int verdict = req->prev ? stream_ends(req, req->prev, from) : -1;

	return verdict < 0 ? nothing_falls_out(req, from) : verdict;
}

/* The last no-op of [from, to) that a jump fits into; 0: none is near enough. */
static uint64_t roomy_nop(const struct plan_request *req, uint64_t from, uint64_t to)
{
	uint64_t last = 0;

	while (from < to) {
		size_t avail;
		const uint8_t *p = x86_text_at(req, from, &avail);
		unsigned int len = p ? x86_nop_length(p, avail) : 0;

		if (len >= PAD_JUMP)
			last = from;
		from += len ? len : to - from;
	}
	return to - last <= PAD_REACH ? last : 0;
}

/*
 * The end of the code in [start, end): behind its last ret or jump, where only no-ops follow.
 * Startup object files have functions without a length, which then extend to the next one.
 */
static uint64_t code_end(const struct plan_request *req, uint64_t start, uint64_t end)
{
	uint64_t pc = start, last = end;

	while (pc < end) {
		struct x86_decoded insn;
		size_t avail;
		const uint8_t *p = x86_text_at(req, pc, &avail);

		if (!p || x86_classify(p, avail, pc, &insn) != PLAN_OK)
			return end;
		if (!x86_nop_length(p, avail))
			last = x86_ends(insn.kind) ? pc + insn.form.len : end;
		pc += insn.form.len;
	}
	return pc == end ? last : end;
}

/*
 * __memcpy_chk() compares and falls through the no-ops into memcpy(): only an instruction at the
 * place of an old one may overwrite them, since a thread may be at any of them.
 */
uint64_t x86_pad_place(const struct plan_request *req, uint64_t from, uint64_t to)
{
	if (from == to && req->prev && to - req->prev <= SHORT_FUNCTION)
		from = code_end(req, req->prev, to);
	if (to < from || to - from < PAD_JUMP || !x86_only_nops(req, from, to))
		return 0;
	if (x86_only_nops(req, from, to - PAD_JUMP) || is_entered_nowhere(req, from))
		return to - PAD_JUMP;
	return roomy_nop(req, from, to);
}

bool x86_dead_nops(const struct plan_request *req, uint64_t from, uint64_t to)
{
	return from < to && x86_only_nops(req, from, to) && is_entered_nowhere(req, from);
}
