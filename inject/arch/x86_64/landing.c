/* SPDX-License-Identifier: MIT */
/*
 * The landing scan (see landing.h). Three filters, each far cheaper per byte than the next:
 *
 *  1. Every byte of the text is compared, 16 at a time, with the opcodes that a rel32 follows:
 *     e8 e9 (call, jmp), 0f 80..8f (jcc), c7 f8 (xbegin). About 4 bytes in 100 pass.
 *  2. The 4 bytes behind, taken as a displacement, must lead to a set bit of a map of all
 *     windows that fits into the second-level cache, then into a window.
 *  3. The rest is decoded from its function's start: an instruction must really begin there.
 *
 * rel8 branches reach 128 bytes, so only the surroundings of each window are searched for them.
 */
#include <emmintrin.h>
#include <stdlib.h>
#include <string.h>
#include "x86.h"
#include "inject/landing.h"
#include "src/base/err.h"

enum { REACH8 = 128, MAP_BITS = 1 << 22, MIN_SHIFT = 3 };

struct window {
	uint64_t start, end;
};

/* Windows that overlap are one span, so that spans are disjoint and sorted. */
struct span {
	uint64_t start, end;
	uint64_t entry, func_end; /* of the function that begins in the span; 0: none, or several
				     windows */
};

struct landing_set {
	struct window *window;
	size_t windows, window_cap;
	struct span *span;
	size_t spans;
	uint64_t *map; /* one bit for each 2^shift bytes from lo */
	uint64_t lo, range;
	unsigned int shift;
	struct landing *found;
	size_t count, cap;
};

/* One pass over one segment. Candidates are landings that lack `from` and `confirmed`. */
struct scan {
	struct landing_set *set;
	const uint8_t *text;
	uint64_t addr;
	size_t len;
	landing_bounds_fn *bounds;
	void *ctx;
	int error;
};

struct landing_set *landing_new(void)
{
	return calloc(1, sizeof(struct landing_set));
}

void landing_free(struct landing_set *set)
{
	if (!set)
		return;
	free(set->window);
	free(set->span);
	free(set->map);
	free(set->found);
	free(set);
}

/* Makes space for one more element; false: out of memory, and the array is unchanged. */
static bool grow(void **array, size_t count, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : 64;
	void *bigger;

	if (count < *cap)
		return true;
	bigger = realloc(*array, more * size);
	if (!bigger)
		return false;
	*array = bigger;
	*cap = more;
	return true;
}

int landing_add_window(struct landing_set *set, uint64_t addr, unsigned int len)
{
	if (!len)
		return 0;
	if (!grow((void **)&set->window, set->windows, &set->window_cap, sizeof(*set->window)))
		return -SB_ENOMEM;
	set->window[set->windows++] = (struct window){ addr, addr + len };
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct window *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* The function that begins in the span: the first byte that is its own function's start. */
static void find_entry(struct span *span, const struct scan *s)
{
	uint64_t start, end;

	for (uint64_t at = span->start; at < span->end; at++)
		if (s->bounds(s->ctx, at, &start, &end) && start == at) {
			span->entry = start;
			span->func_end = end;
			return;
		}
}

static bool build_spans(struct landing_set *set, const struct scan *s)
{
	size_t n = 0;

	set->span = calloc(set->windows, sizeof(*set->span));
	if (!set->span)
		return false;
	qsort(set->window, set->windows, sizeof(*set->window), by_start);
	for (size_t i = 0; i < set->windows; i++) {
		const struct window *w = &set->window[i];
		struct span *last = n ? &set->span[n - 1] : NULL;

		if (last && w->start == last->start && w->end == last->end)
			continue;
		if (last && w->start < last->end) {
			/* a byte may now be the first of one window and the third of another */
			last->end = w->end > last->end ? w->end : last->end;
			last->entry = 0;
			continue;
		}
		set->span[n] = (struct span){ w->start, w->end, 0, 0 };
		find_entry(&set->span[n++], s);
	}
	set->spans = n;
	return true;
}

static void mark(struct landing_set *set, const struct span *span)
{
	uint64_t last = (span->end - 1 - set->lo) >> set->shift;

	for (uint64_t bit = (span->start - set->lo) >> set->shift; bit <= last; bit++)
		set->map[bit / 64] |= 1ULL << bit % 64;
}

static bool build_map(struct landing_set *set)
{
	set->lo = set->span[0].start;
	set->range = set->span[set->spans - 1].end - set->lo;
	for (set->shift = MIN_SHIFT; set->range >> set->shift >= MAP_BITS; set->shift++)
		;
	set->map = calloc((set->range >> set->shift) / 64 + 1, sizeof(*set->map));
	if (!set->map)
		return false;
	for (size_t i = 0; i < set->spans; i++)
		mark(set, &set->span[i]);
	return true;
}

static const struct span *span_at(const struct landing_set *set, uint64_t addr)
{
	size_t lo = 0, hi = set->spans;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (set->span[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < set->spans && set->span[lo].start <= addr ? &set->span[lo] : NULL;
}

/* op: offset of the opcode's last byte; the displacement field follows it. */
static void add_candidate(struct scan *s, size_t op, uint8_t field_len, uint64_t to)
{
	struct landing_set *set = s->set;
	const struct span *span = span_at(set, to);
	uint64_t from = s->addr + op;
	bool call = field_len == 4 && s->text[op] == 0xe8;

	if (!span)
		return;
	if (to == span->entry && (call || from - span->entry >= span->func_end - span->entry))
		return;
	if (!grow((void **)&set->found, set->count, &set->cap, sizeof(*set->found))) {
		s->error = -SB_ENOMEM;
		return;
	}
	set->found[set->count++] = (struct landing){ from, to, from + 1, field_len, call, false };
}

static inline void probe(struct scan *s, size_t op)
{
	const struct landing_set *set = s->set;
	uint64_t rel;
	int32_t disp;

	memcpy(&disp, s->text + op + 1, sizeof(disp));
	rel = s->addr + op + 5 + (uint64_t)(int64_t)disp - set->lo;
	if (rel >= set->range)
		return;
	if (set->map[rel >> set->shift >> 6] >> (rel >> set->shift & 63) & 1)
		add_candidate(s, op, 4, rel + set->lo);
}

static bool has_rel32(const uint8_t *text, size_t op)
{
	if ((text[op] & 0xfe) == 0xe8)
		return true;
	if (!op)
		return false;
	return ((text[op] & 0xf0) == 0x80 && text[op - 1] == 0x0f) ||
	       (text[op] == 0xf8 && text[op - 1] == 0xc7);
}

/* Which of the 16 bytes at p end an opcode that a rel32 follows; p[-1] is read too. */
static inline unsigned int rel32_mask(const uint8_t *p)
{
	__m128i here = _mm_loadu_si128((const __m128i *)p);
	__m128i before = _mm_loadu_si128((const __m128i *)(p - 1));
	__m128i call = _mm_cmpeq_epi8(_mm_and_si128(here, _mm_set1_epi8((char)0xfe)),
				      _mm_set1_epi8((char)0xe8));
	__m128i jcc = _mm_and_si128(_mm_cmpeq_epi8(before, _mm_set1_epi8(0x0f)),
				    _mm_cmpeq_epi8(_mm_and_si128(here, _mm_set1_epi8((char)0xf0)),
						   _mm_set1_epi8((char)0x80)));
	__m128i xbegin = _mm_and_si128(_mm_cmpeq_epi8(before, _mm_set1_epi8((char)0xc7)),
				       _mm_cmpeq_epi8(here, _mm_set1_epi8((char)0xf8)));

	return (unsigned int)_mm_movemask_epi8(_mm_or_si128(call, _mm_or_si128(jcc, xbegin)));
}

static void scan_rel32(struct scan *s)
{
	size_t op = 1;

	if (s->len < 5)
		return;
	if (has_rel32(s->text, 0))
		probe(s, 0);
	/* the last opcode of a block has its field within the text: 16 + 4 bytes from op on */
	for (; op + 20 <= s->len; op += 16)
		for (unsigned int mask = rel32_mask(s->text + op); mask; mask &= mask - 1)
			probe(s, op + (size_t)__builtin_ctz(mask));
	for (; op + 5 <= s->len; op++)
		if (has_rel32(s->text, op))
			probe(s, op);
}

static bool has_rel8(uint8_t op)
{
	return (op & 0xf0) == 0x70 || op == 0xeb || (op & 0xfc) == 0xe0;
}

static void scan_rel8(struct scan *s, const struct span *span)
{
	uint64_t end = s->addr + s->len - 1; /* an opcode there has no field any more */
	uint64_t from = span->start > REACH8 + 2 ? span->start - REACH8 - 2 : 0;
	uint64_t to = span->end + REACH8;

	from = from > s->addr ? from : s->addr;
	to = to < end ? to : end;
	for (; from < to; from++) {
		const uint8_t *p = s->text + (from - s->addr);
		uint64_t target = from + 2 + (uint64_t)(int64_t)(int8_t)p[1];

		if (has_rel8(*p) && target >= span->start && target < span->end)
			add_candidate(s, from - s->addr, 1, target);
	}
}

/* Decoding of one function, which continues where the previous candidate left it. */
struct walk {
	uint64_t start, end, pc;
	struct x86_form form; /* of the instruction at pc; len 0: undecodable */
};

static bool walk_read(struct walk *w, const struct scan *s)
{
	size_t off = w->pc - s->addr;

	if (!x86_length(s->text + off, s->len - off, &w->form) || w->form.odd)
		w->form.len = 0;
	return w->form.len;
}

/* Starts on the function around addr unless it is already there; false: unknown. */
static bool walk_enter(struct walk *w, const struct scan *s, uint64_t addr)
{
	uint64_t start, end;

	if (!s->bounds(s->ctx, addr, &start, &end) || start < s->addr || start > addr)
		return false;
	if (start == w->start && w->pc <= addr)
		return w->form.len;
	*w = (struct walk){ .start = start, .end = end, .pc = start };
	return walk_read(w, s);
}

enum verdict { NO_BRANCH, BRANCH, UNKNOWN };

/* sub $imm32, %eax also has the byte e8 before its immediate, but there it is a ModRM. */
static bool is_branch(const struct x86_form *f)
{
	return !f->modrm_off || (f->map == 0 && f->opcode == 0xc7 && f->modrm == 0xf8);
}

/* Is there a branch with exactly this displacement field? */
static enum verdict confirm(struct walk *w, const struct scan *s, struct landing *l)
{
	if (!walk_enter(w, s, l->field - 1))
		return UNKNOWN;
	while (w->pc + w->form.len <= l->field) {
		w->pc += w->form.len;
		if (!walk_read(w, s))
			return UNKNOWN;
	}
	if (!w->form.imm_off || w->pc + w->form.imm_off != l->field ||
	    w->form.imm_len != l->field_len || !is_branch(&w->form))
		return NO_BRANCH;
	l->from = w->pc;
	return BRANCH;
}

static int by_field(const void *a, const void *b)
{
	const struct landing *x = a, *y = b;

	return (x->field > y->field) - (x->field < y->field);
}

static int by_target(const void *a, const void *b)
{
	const struct landing *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return by_field(a, b);
}

/* Drops the candidates from `first` on that are not branches. */
static void sift(struct scan *s, size_t first)
{
	struct landing_set *set = s->set;
	struct walk w = { .start = 1 }; /* no function starts there: the walk is in none yet */
	size_t kept = first;

	qsort(set->found + first, set->count - first, sizeof(*set->found), by_field);
	for (size_t i = first; i < set->count; i++) {
		struct landing l = set->found[i];
		enum verdict v = confirm(&w, s, &l);

		l.confirmed = v == BRANCH;
		if (v != NO_BRANCH)
			set->found[kept++] = l;
	}
	set->count = kept;
	qsort(set->found, set->count, sizeof(*set->found), by_target);
}

int landing_scan(struct landing_set *set, const uint8_t *text, uint64_t text_addr, size_t len,
		 landing_bounds_fn *bounds, void *ctx)
{
	struct scan s = { set, text, text_addr, len, bounds, ctx, 0 };
	size_t first = set->count;

	if (!set->windows || !len)
		return 0;
	if (!set->span && !build_spans(set, &s))
		return -SB_ENOMEM;
	if (!set->map && !build_map(set))
		return -SB_ENOMEM;
	scan_rel32(&s);
	for (size_t i = 0; i < set->spans; i++)
		scan_rel8(&s, &set->span[i]);
	if (set->count > first)
		sift(&s, first);
	return s.error;
}

size_t landing_query(const struct landing_set *set, uint64_t addr, unsigned int len,
		     struct landing *out, size_t cap)
{
	size_t lo = 0, hi = set->count, n = 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (set->found[mid].to < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < set->count && set->found[lo].to < addr + len; lo++, n++)
		if (n < cap)
			out[n] = set->found[lo];
	return n;
}
