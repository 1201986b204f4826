/* SPDX-License-Identifier: MIT */
/* Which shape a site gets, and what is refused and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "inject/landing.h"
#include "inject/plan.h"

enum { TEXT_SIZE = 0x2000 };

#define BASE 0x7f0000401000ULL

static uint8_t text[TEXT_SIZE];
static struct plan plan;
static char detail[64];

/* The function under test, and the bytes of padding before it. */
struct site {
	uint64_t at, size, pad;
};

/* Fills the text with code that is no padding and puts the function's bytes at an offset. */
static void put(uint64_t at, const void *bytes, size_t len)
{
	memcpy(text + at, bytes, len);
}

static int clear(void **state)
{
	(void)state;
	memset(text, 0x50, sizeof(text)); /* push %rax */
	return 0;
}

static struct plan_request request(const struct site *s)
{
	return (struct plan_request){
		.addr = BASE + s->at,
		.func = BASE + s->at,
		.func_end = BASE + s->at + s->size,
		.prev_end = BASE + s->at - s->pad,
		.next = BASE + (s->at + s->size + 15) / 16 * 16,
		.text = text,
		.text_addr = BASE,
		.text_len = sizeof(text),
		.entry = true,
	};
}

static bool one_function(void *ctx, uint64_t addr, uint64_t *start, uint64_t *end)
{
	const struct site *s = ctx;

	*start = BASE + s->at;
	*end = BASE + s->at + s->size;
	return addr >= *start && addr < *end;
}

/* Plans with the landings that the text really has. */
static enum plan_refusal plan_request(const struct plan_request *req, struct site *s)
{
	struct landing_set *set = landing_new();
	enum plan_refusal why;
	unsigned int len;
	uint64_t addr;

	plan_landing_range(req, &addr, &len);
	assert_int_equal(landing_add_window(set, addr, len), 0);
	assert_int_equal(landing_scan(set, text, BASE, sizeof(text), one_function, s), 0);
	why = plan_make(req, set, &plan, detail, sizeof(detail));
	landing_free(set);
	return why;
}

static enum plan_refusal plan_site(struct site *s)
{
	struct plan_request req = request(s);

	return plan_request(&req, s);
}

static enum plan_refusal plan_bytes(const void *bytes, size_t len)
{
	struct site s = { 0x800, len, 0 };

	put(s.at, bytes, len);
	return plan_site(&s);
}

static void body_takes_whole_instructions(void **state)
{
	static const uint8_t code[] = { 0x8b, 0x48, 0x10, 0x48, 0x89, 0xe5, 0x41, 0x57, 0xc3 };
	uint8_t at[PLAN_MAX_WINDOW];

	(void)state;
	assert_int_equal(plan_bytes(code, sizeof(code)), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_BODY);
	assert_int_equal(plan.addr, BASE + 0x800);
	assert_int_equal(plan.len, 6);
	assert_int_equal(plan.insns, 2);
	assert_int_equal(plan.resume, BASE + 0x806);
	assert_false(plan.ends);
	assert_memory_equal(plan.orig, code, 6);
	plan_patch(&plan, BASE + 0x100000, at, NULL);
	assert_memory_equal(at, ((uint8_t[]){ 0xe9, 0xfb, 0xf7, 0x0f, 0x00, 0xcc }), 6);
}

/* push %rbp; mov %rsp,%rbp; push %r15; xor %eax,%eax; ret */
static const uint8_t with_frame[] = { 0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x31, 0xc0, 0xc3 };

struct first {
	uint8_t code[10], size, stays;
};

/* args: the hook reads the arguments. */
static void check_first(const struct first *first, size_t n, bool args)
{
	for (size_t i = 0; i < n; i++) {
		struct site s = { 0x800, first[i].size + sizeof(with_frame), 0 };
		struct plan_request req = request(&s);

		put(s.at, first[i].code, first[i].size);
		put(s.at + first[i].size, with_frame, sizeof(with_frame));
		req.args = args;
		assert_int_equal(plan_request(&req, &s), PLAN_OK);
		assert_int_equal(plan.skipped, first[i].stays ? first[i].size : 0);
		assert_int_equal(plan.addr, BASE + 0x800 + plan.skipped);
	}
}

static void first_instruction_that_may_stay_stays(void **state)
{
	static const struct first first[] = {
		{ { 0x41, 0x57 }, 2, true },			/* push %r15 */
		{ { 0x48, 0x83, 0xec, 0x18 }, 4, true },	/* sub $24,%rsp */
		{ { 0x48, 0x8d, 0x04, 0x37 }, 4, true },	/* lea (%rdi,%rsi),%rax */
		{ { 0x89, 0xf8 }, 2, true },			/* mov %edi,%eax */
		{ { 0x31, 0xc0 }, 2, true },			/* xor %eax,%eax */
		{ { 0x48, 0x83, 0xc4, 0x18 }, 4, false },	/* add $24,%rsp */
		{ { 0x48, 0x89, 0xfc }, 3, false },		/* mov %rdi,%rsp */
		{ { 0x48, 0x89, 0x7c, 0x24, 0xf8 }, 5, false }, /* mov %rdi,-8(%rsp) */
		{ { 0x5d }, 1, false },				/* pop %rbp */
		{ { 0x48, 0x81, 0xec, 0, 0, 1, 0 }, 7, false }, /* sub $65536,%rsp */
	};

	(void)state;
	assert_int_equal(plan_bytes(with_frame, sizeof(with_frame)), PLAN_OK);
	assert_int_equal(plan.addr, BASE + 0x801);
	assert_int_equal(plan.skipped, 1);
	assert_int_equal(plan.len, 5);
	assert_int_equal(plan.insns, 2);
	check_first(first, sizeof(first) / sizeof(first[0]), false);
}

/* Where the arguments are read, no instruction that writes one runs before that. */
static void first_instruction_that_writes_an_argument_is_displaced(void **state)
{
	static const struct first first[] = {
		{ { 0x41, 0x57 }, 2, true },		  /* push %r15 */
		{ { 0x48, 0x83, 0xec, 0x18 }, 4, true },  /* sub $24,%rsp */
		{ { 0x48, 0x8d, 0x04, 0x37 }, 4, true },  /* lea (%rdi,%rsi),%rax */
		{ { 0x89, 0xf8 }, 2, true },		  /* mov %edi,%eax */
		{ { 0x49, 0x89, 0xfa }, 3, true },	  /* mov %rdi,%r10 */
		{ { 0x4c, 0x8b, 0xd7 }, 3, true },	  /* the same, encoded otherwise */
		{ { 0xb8, 1, 0, 0, 0 }, 5, true },	  /* mov $1,%eax */
		{ { 0x41, 0xba, 1, 0, 0, 0 }, 6, true },  /* mov $1,%r10d */
		{ { 0x89, 0xff }, 2, false },		  /* mov %edi,%edi */
		{ { 0x49, 0x89, 0xf8 }, 3, false },	  /* mov %rdi,%r8 */
		{ { 0x4c, 0x8b, 0xcf }, 3, false },	  /* mov %rdi,%r9 */
		{ { 0x48, 0x63, 0xd6 }, 3, false },	  /* movslq %esi,%rdx */
		{ { 0x31, 0xc9 }, 2, false },		  /* xor %ecx,%ecx */
		{ { 0x33, 0xf6 }, 2, false },		  /* xor %esi,%esi */
		{ { 0x48, 0x8d, 0x7f, 0x08 }, 4, false }, /* lea 8(%rdi),%rdi */
		{ { 0xbf, 1, 0, 0, 0 }, 5, false },	  /* mov $1,%edi */
		{ { 0x41, 0xb8, 1, 0, 0, 0 }, 6, false }, /* mov $1,%r8d */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		struct first free = first[i];

		free.stays = true;
		check_first(&free, 1, false);
	}
	check_first(first, sizeof(first) / sizeof(first[0]), true);
}

/* A call is counted once: not where a branch comes by another way than by the first instruction,
 * nor where the function's own goes back to it. */
static void window_behind_the_first_instruction_is_passed_once_a_call(void **state)
{
	/* push %rbp; mov %rsp,%rbp; push %r15; dec %edi; jne; ret */
	static uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0xff, 0xcf,
				  0x0f, 0x85, 0,    0,	  0,	0,    0xc3 };

	(void)state;
	code[10] = 2; /* further on */
	memset(code + 11, 0, 3);
	assert_int_equal(plan_bytes(code, sizeof(code)), PLAN_OK);
	assert_int_equal(plan.skipped, 1);
	for (int to = 0; to <= 1; to++) {
		code[10] = (uint8_t)(to - 14);
		memset(code + 11, 0xff, 3);
		assert_int_equal(plan_bytes(code, sizeof(code)), to ? PLAN_LANDING : PLAN_OK);
		assert_int_equal(plan.skipped, 0);
		assert_int_equal(plan.retargets, !to);
	}
}

/* sub $24,%rsp; mov; js: what the first instruction says is read behind it. */
static void first_instruction_whose_flags_are_read_does_not_stay(void **state)
{
	static const uint8_t code[] = { 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0xf8, 0x0f,
					0x88, 0x02, 0x00, 0x00, 0x00, 0x31, 0xc0, 0xc3 };

	(void)state;
	assert_int_equal(plan_bytes(code, sizeof(code)), PLAN_OK);
	assert_int_equal(plan.skipped, 0);
}

static void endbr64_stays(void **state)
{
	static const uint8_t code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x81,
					0xec, 0x00, 0x01, 0x00, 0x00, 0xc3 };

	(void)state;
	assert_int_equal(plan_bytes(code, sizeof(code)), PLAN_OK);
	assert_int_equal(plan.addr, BASE + 0x804);
	assert_int_equal(plan.skipped, 4);
	assert_int_equal(plan.len, 7);
}

/* glibc's _dl_debug_state: a lone ret. */
static void lone_ret_uses_its_tail(void **state)
{
	static const uint8_t tail[] = { 0xc3, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0,
					0,    0,    0,	  0,	0x0f, 0x1f, 0x40, 0 };
	struct site s = { 0x800, 1, 0 };
	uint8_t at[5];

	(void)state;
	put(s.at, tail, sizeof(tail));
	assert_int_equal(plan_site(&s), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_TAIL);
	assert_int_equal(plan.len, 5);
	assert_int_equal(plan.insns, 1);
	assert_true(plan.ends);
	assert_memory_equal(plan.orig, tail, 5);
	plan_patch(&plan, BASE, at, NULL);
	assert_int_equal(at[0], 0xe9);
}

static void tail_must_be_padding_to_its_end(void **state)
{
	static const uint8_t tail[] = { 0xc3, 0x0f, 0x1f, 0x84, 0,    0,    0,	  0,
					0,    0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x55 };
	struct site s = { 0x800, 1, 0 };

	(void)state;
	put(s.at, tail, sizeof(tail));
	assert_int_equal(plan_site(&s), PLAN_TOO_SHORT);
}

static void short_body_that_falls_through_is_refused(void **state)
{
	static const uint8_t code[] = { 0x31, 0xc0, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
					0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };
	struct site s = { 0x800, 2, 0 };

	(void)state;
	put(s.at, code, sizeof(code));
	assert_int_equal(plan_site(&s), PLAN_TOO_SHORT);
}

/* 31 c0 c3, nothing behind, eight no-op bytes before. */
static void short_body_uses_the_padding_before_it(void **state)
{
	static const uint8_t code[] = { 0x0f, 0x1f, 0x00, 0x0f, 0x1f, 0x44, 0x00,
					0x00, 0x31, 0xc0, 0xc3, 0x55, 0x55 };
	struct site s = { 0x808, 3, 8 };
	uint8_t at[2], pad[5];

	(void)state;
	put(s.at - 8, code, sizeof(code));
	assert_int_equal(plan_site(&s), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_PRE);
	assert_int_equal(plan.len, 2);
	assert_int_equal(plan.pad, BASE + 0x803);
	assert_int_equal(plan.insns, 1);
	assert_int_equal(plan.resume, BASE + 0x80a);
	plan_patch(&plan, BASE + 0x803 + 5 + 0x11223344, at, pad);
	assert_memory_equal(at, ((uint8_t[]){ 0xeb, 0xf9 }), 2);
	assert_memory_equal(pad, ((uint8_t[]){ 0xe9, 0x44, 0x33, 0x22, 0x11 }), 5);
	assert_memory_equal(plan.pad_orig, code + 3, 5);
}

/* One no-op of 8 bytes: something might run through it, and what stands before is not known to
 * end: the jump stands where the no-op began. Behind a ret it need not. */
static void padding_that_is_run_through_keeps_its_boundary(void **state)
{
	static const uint8_t code[] = { 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00,
					0x00, 0x31, 0xc0, 0xc3, 0x55, 0x55 };
	struct site s = { 0x808, 3, 8 };

	(void)state;
	put(s.at - 8, code, sizeof(code));
	assert_int_equal(plan_site(&s), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_PRE);
	assert_int_equal(plan.pad, BASE + 0x800);
	text[0x7ff] = 0xc3;
	assert_int_equal(plan_site(&s), PLAN_OK);
	assert_int_equal(plan.pad, BASE + 0x803);
}

/* No-ops of 4 bytes each: a thread may be between any two, where a jump would be cut. */
static void padding_of_small_noops_that_is_run_through_is_not_used(void **state)
{
	static const uint8_t code[] = { 0x0f, 0x1f, 0x40, 0x00, 0x0f, 0x1f, 0x40,
					0x00, 0x31, 0xc0, 0xc3, 0x55, 0x55 };
	struct site s = { 0x808, 3, 8 };

	(void)state;
	put(s.at - 8, code, sizeof(code));
	assert_int_equal(plan_site(&s), PLAN_TOO_SHORT);
	text[0x7ff] = 0xc3;
	assert_int_equal(plan_site(&s), PLAN_OK);
}

/* c3, three bytes that no section holds, eight no-op bytes before. */
static void last_byte_of_a_section_uses_the_fill_behind_it(void **state)
{
	static const uint8_t code[] = { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
					0xc3, 0x00, 0x00, 0x00, 0x48, 0x83, 0xec, 0x08 };
	struct site s = { 0x808, 1, 8 };
	struct plan_request req = request(&s);

	(void)state;
	put(s.at - 8, code, sizeof(code));
	req.next = BASE + 0x80c;
	assert_int_equal(plan_request(&req, &s), PLAN_TOO_SHORT);
	req.fill_end = BASE + 0x809; /* a section begins at once */
	assert_int_equal(plan_request(&req, &s), PLAN_TOO_SHORT);
	req.fill_end = BASE + 0x80c;
	assert_int_equal(plan_request(&req, &s), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_PRE);
	assert_int_equal(plan.len, 2);
	assert_int_equal(plan.insns, 1);
	assert_true(plan.ends);
	assert_memory_equal(plan.orig, code + 8, 2);
}

/* A neighbour without a length reaches up to the function, as far as tables tell. */
static void padding_behind_a_function_of_unknown_length_is_found(void **state)
{
	static const uint8_t code[] = { 0x31, 0xc0, 0xc3, 0x0f, 0x1f, 0x80, 0x00, 0x00,
					0x00, 0x00, 0x31, 0xc0, 0xc3, 0x55, 0x55 };
	struct site s = { 0x80a, 3, 0 };
	struct plan_request req = request(&s);

	(void)state;
	put(s.at - 10, code, sizeof(code));
	assert_int_equal(plan_request(&req, &s), PLAN_TOO_SHORT);
	req.prev = BASE + 0x800;
	assert_int_equal(plan_request(&req, &s), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_PRE);
	assert_int_equal(plan.pad, BASE + 0x805);
	text[0x802] = 0x90; /* no ret: it runs on into the function */
	assert_int_equal(plan_request(&req, &s), PLAN_TOO_SHORT);
}

static void window_across_a_page_is_refused(void **state)
{
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0xc3 };
	struct site s = { 0xffd, sizeof(code), 0 };

	(void)state;
	put(s.at, code, sizeof(code));
	assert_int_equal(plan_site(&s), PLAN_CROSSES_PAGE);
	memset(text + s.at - 8, 0x90, 8);
	s.pad = 8;
	assert_int_equal(plan_site(&s), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_PRE);
}

/* 1: mov (%rdi),%eax; test %eax,%eax; je; lea -1(%rax),%edx; lock cmpxchg; jne to byte 2 */
static void sem_trywait_lands_in_its_window(void **state)
{
	static const uint8_t code[] = {
		0x8b, 0x07, 0x85, 0xc0, 0x74, 0x0b, 0x8d, 0x50, 0xff, 0xf0,
		0x0f, 0xb1, 0x17, 0x75, 0xf3, 0xc3, 0x90, 0x31, 0xc0, 0xc3
	};

	(void)state;
	assert_int_equal(plan_bytes(code, sizeof(code)), PLAN_LANDING);
	assert_string_equal(detail, "from 0x7f000040180d");
	/* with padding before it, two bytes are enough: nothing lands on byte 1 */
	memset(text + 0x7f0, 0x90, 16);
	assert_int_equal(plan_site(&(struct site){ 0x800, sizeof(code), 16 }), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_PRE);
	assert_int_equal(plan.insns, 1);
}

/* lock decl (%rdi); jne 1f; ret; 1: pause; cmpl; jg back to the entry by rel8 */
static void pthread_spin_lock_loops_to_its_entry(void **state)
{
	static const uint8_t code[] = { 0xf0, 0xff, 0x0f, 0x75, 0x03, 0x31, 0xc0, 0xc3, 0xf3,
					0x90, 0x83, 0x3f, 0x00, 0x7f, 0xf1, 0xeb, 0xf7 };

	(void)state;
	assert_int_equal(plan_bytes(code, sizeof(code)), PLAN_LOOPS_TO_ENTRY);
	assert_string_equal(detail, "from 0x7f000040180d");
}

/* Go's morestack prologue ends in a jump to the entry: rel32, so it can be sent past the hook. */
static void loop_by_rel32_is_retargeted(void **state)
{
	static const uint8_t code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8d, 0x64, 0x24, 0xf8,
					0xc3, 0xe9, 0xf5, 0xff, 0xff, 0xff, 0xe9, 0xec, 0xff,
					0xff, 0xff, 0xe8, 0xe7, 0xff, 0xff, 0xff };
	uint8_t bytes[PLAN_MAX_RETARGET];
	uint64_t addr;
	int32_t rel;

	(void)state;
	assert_int_equal(plan_bytes(code, sizeof(code)), PLAN_OK);
	assert_int_equal(plan.retargets, 2);
	assert_int_equal(plan.retarget[0].field, BASE + 0x80b);
	assert_int_equal(plan.retarget[1].field, BASE + 0x810);
	assert_int_equal(plan_retarget(&plan.retarget[0], BASE + 0x100000, &addr, bytes), 4);
	assert_int_equal(addr, BASE + 0x80b);
	memcpy(&rel, bytes, sizeof(rel));
	assert_int_equal(BASE + 0x80f + rel, BASE + 0x100000);
}

/* ... or of two bytes, which become five where traps follow. */
static void short_loop_before_traps_is_widened(void **state)
{
	uint8_t code[] = { 0x48, 0x8d, 0x64, 0x24, 0xf8, 0x90, 0xc3, 0xeb, 0xf7, 0xcc, 0xcc, 0xcc };
	struct site s = { 0x800, 9, 0 };
	struct plan_request req = request(&s);
	uint8_t bytes[PLAN_MAX_RETARGET];
	uint64_t addr;

	(void)state;
	put(s.at, code, sizeof(code));
	req.next = req.func + sizeof(code);
	assert_int_equal(plan_request(&req, &s), PLAN_OK);
	assert_int_equal(plan_retarget(plan.retarget, BASE + 0x80c, &addr, bytes), 5);
	assert_int_equal(addr, BASE + 0x807);
	assert_memory_equal(bytes, "\xe9\0\0\0", 5);
	req.next--;
	assert_int_equal(plan_request(&req, &s), PLAN_LOOPS_TO_ENTRY);
}

static void branch_within_the_window_is_moved_with_it(void **state)
{
	static const uint8_t code[] = { 0xff, 0xc9, 0x75, 0xfc, 0x90, 0xc3 };

	(void)state;
	assert_int_equal(plan_bytes(code, sizeof(code)), PLAN_OK);
	assert_int_equal(plan.retargets, 0);
	assert_int_equal(plan.insns, 3);
}

static void mid_function_hook_counts_each_pass(void **state)
{
	static const uint8_t code[] = { 0x55, 0x48, 0x83, 0xc0, 0x01, 0x48, 0x83,
					0xf8, 0x09, 0x75, 0xf6, 0x5d, 0xc3 };
	struct site s = { 0x800, sizeof(code), 0 };
	struct plan_request req;

	(void)state;
	put(s.at, code, sizeof(code));
	req = request(&s);
	req.entry = false;
	req.addr += 1;
	assert_int_equal(plan_request(&req, &s), PLAN_OK);
	assert_int_equal(plan.len, 8);
	assert_int_equal(plan.retargets, 0);
	req.addr += 1;
	assert_int_equal(plan_request(&req, &s), PLAN_MID_INSTRUCTION);
}

static void jump_table_forbids_windows_in_mid_function(void **state)
{
	static const uint8_t code[] = { 0x55, 0x50, 0x58, 0x50, 0x58, 0x50, 0x58, 0xff, 0xe0 };
	struct site s = { 0x800, sizeof(code), 0 };
	struct plan_request req;

	(void)state;
	put(s.at, code, sizeof(code));
	req = request(&s);
	req.entry = false;
	req.addr += 1;
	assert_int_equal(plan_request(&req, &s), PLAN_LANDING);
	assert_string_equal(detail, "jump table, at 0x7f0000401807");
}

static void another_symbol_in_the_window_is_refused(void **state)
{
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0xc3 };
	struct site s = { 0x800, sizeof(code), 0 };
	struct plan_request req;

	(void)state;
	put(s.at, code, sizeof(code));
	req = request(&s);
	req.next = req.func + 4;
	assert_int_equal(plan_request(&req, &s), PLAN_LANDING);
}

static void int3_takes_one_instruction(void **state)
{
	static const uint8_t code[] = { 0x8b, 0x07, 0x85, 0xc0, 0x74, 0xfc, 0xc3 };
	struct site s = { 0x800, sizeof(code), 0 };
	struct plan_request req;
	uint8_t at[1];

	(void)state;
	put(s.at, code, sizeof(code));
	req = request(&s);
	req.int3 = true;
	assert_int_equal(plan_request(&req, &s), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_INT3);
	assert_int_equal(plan.len, 1);
	assert_int_equal(plan.insns, 1);
	assert_int_equal(plan.resume, BASE + 0x802);
	plan_patch(&plan, BASE, at, NULL);
	assert_int_equal(at[0], 0xcc);
}

struct refused {
	const char *what;
	enum plan_refusal why;
	uint8_t len, bytes[16];
};

static const struct refused refused[] = {
	{ "no instruction", PLAN_UNDECODABLE, 6, { 0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e } },
	{ "xbegin", PLAN_UNMOVABLE, 6, { 0xc7, 0xf8, 0x10, 0, 0, 0 } },
	{ "int3", PLAN_UNMOVABLE, 6, { 0xcc, 0x55, 0x55, 0x55, 0x55, 0xc3 } },
	{ "call through rsp", PLAN_UNMOVABLE, 5, { 0xff, 0x54, 0x24, 0x08, 0xc3 } },
	{ "call of rsp", PLAN_UNMOVABLE, 6, { 0x90, 0x90, 0x90, 0xff, 0xd4, 0xc3 } },
	{ "call that returns into the window",
	  PLAN_UNMOVABLE,
	  6,
	  { 0xff, 0xd0, 0x90, 0x90, 0x90, 0xc3 } },
	{ "far jump", PLAN_UNMOVABLE, 6, { 0xff, 0x2f, 0x90, 0x90, 0x90, 0xc3 } },
	{ "iret", PLAN_UNMOVABLE, 6, { 0x48, 0xcf, 0x90, 0x90, 0x90, 0xc3 } },
	{ "eip-relative", PLAN_UNMOVABLE, 9, { 0x67, 0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xc3 } },
	{ "16-bit jump", PLAN_UNDECODABLE, 6, { 0x66, 0xe9, 0, 0, 0, 0 } },
	{ "address of the window's middle",
	  PLAN_UNMOVABLE,
	  8,
	  { 0x48, 0x8d, 0x05, 0xfb, 0xff, 0xff, 0xff, 0xc3 } },
	{ "branch into an instruction", PLAN_LANDING, 6, { 0x74, 0x01, 0x48, 0xff, 0xc0, 0xc3 } },
};

static void what_cannot_move_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		enum plan_refusal why = plan_bytes(refused[i].bytes, refused[i].len);

		if (why != refused[i].why)
			fail_msg("%s: %s", refused[i].what, plan_refusal_text(why));
	}
}

struct flags_case {
	bool live;
	uint8_t len, bytes[12];
};

static const struct flags_case flags_cases[] = {
	{ false, 6, { 0x48, 0x83, 0xec, 0x08, 0x90, 0xc3 } },		  /* sub */
	{ true, 6, { 0x0f, 0x92, 0xc0, 0x90, 0x90, 0xc3 } },		  /* setb */
	{ true, 6, { 0x48, 0x11, 0xd8, 0x90, 0x90, 0xc3 } },		  /* adc */
	{ true, 8, { 0xff, 0xc0, 0x48, 0x11, 0xd8, 0x90, 0x90, 0xc3 } },  /* inc keeps CF; adc */
	{ false, 8, { 0xff, 0xc0, 0x74, 0x10, 0x90, 0x90, 0x90, 0xc3 } }, /* inc; je; ret */
	{ true, 7, { 0x48, 0x8b, 0x07, 0x72, 0x20, 0x90, 0xc3 } },	  /* mov; jb */
	{ false, 6, { 0x48, 0x8b, 0x07, 0x90, 0x90, 0xc3 } },		  /* mov; ret */
	{ false, 8, { 0x48, 0x8b, 0x07, 0xe8, 0x10, 0, 0, 0 } },	  /* mov; call */
	{ true, 7, { 0xd3, 0xe0, 0x0f, 0x92, 0xc0, 0x90, 0xc3 } }, /* shl %cl, maybe by 0; setb */
	{ true, 6, { 0x9c, 0x58, 0x90, 0x90, 0x90, 0xc3 } },	   /* pushf */
	{ true, 7, { 0x0f, 0x42, 0xc1, 0x90, 0x90, 0x90, 0xc3 } }, /* cmovb */
	{ true, 6, { 0xda, 0xc1, 0x90, 0x90, 0x90, 0xc3 } },	   /* fcmovb */
};

static void flags_are_kept_where_they_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(flags_cases) / sizeof(flags_cases[0]); i++) {
		assert_int_equal(plan_bytes(flags_cases[i].bytes, flags_cases[i].len), PLAN_OK);
		if (plan.flags_live != flags_cases[i].live)
			fail_msg("case %zu", i);
	}
}

/* An exit at `at` of a function [0x800, 0x800 + size) that is in the text already. */
static enum plan_refusal plan_exit(uint64_t at, uint64_t size, bool islands)
{
	struct site s = { 0x800, size, 0 };
	struct plan_request req = request(&s);

	req.addr = BASE + at;
	req.entry = false;
	req.exit = true;
	req.islands = islands;
	return plan_request(&req, &s);
}

static void exit_takes_what_precedes_it(void **state)
{
	/* xor %eax,%eax; pop %rbx; pop %r12; ret; push */
	static const uint8_t code[] = { 0x31, 0xc0, 0x5b, 0x41, 0x5c, 0xc3, 0x50 };

	(void)state;
	put(0x800, code, sizeof(code));
	assert_int_equal(plan_exit(0x805, sizeof(code), false), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_BODY);
	assert_int_equal(plan.addr, BASE + 0x800);
	assert_int_equal(plan.len, 6);
	assert_int_equal(plan.insns, 4);
	assert_int_equal(plan.before, 3);
	assert_true(plan.ends);
}

static void exit_uses_the_no_ops_behind_it(void **state)
{
	/* push %rax; ret; nopl 0(%rax); push %rax */
	static const uint8_t code[] = { 0x50, 0xc3, 0x0f, 0x1f, 0x40, 0x00, 0x50 };

	(void)state;
	put(0x800, code, sizeof(code));
	assert_int_equal(plan_exit(0x801, sizeof(code), false), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_TAIL);
	assert_int_equal(plan.addr, BASE + 0x801);
	assert_int_equal(plan.insns, 1);
	assert_int_equal(plan.before, 0);
}

static void exit_may_follow_a_branch_that_leaves(void **state)
{
	/* cmp $0xfff,%rax; ja +1; ret; push: a system call of libc */
	static const uint8_t code[] = { 0x48, 0x3d, 0xff, 0x0f, 0, 0, 0x77, 0x01, 0xc3, 0x50 };
	/* the same, where the branch leads into the window */
	static const uint8_t into[] = { 0x48, 0x3d, 0xff, 0x0f, 0, 0, 0x77, 0x00, 0xc3, 0x50 };

	(void)state;
	put(0x800, code, sizeof(code));
	assert_int_equal(plan_exit(0x808, sizeof(code), false), PLAN_OK);
	assert_int_equal(plan.addr, BASE + 0x800);
	assert_int_equal(plan.before, 2);
	put(0x800, into, sizeof(into));
	assert_int_equal(plan_exit(0x808, sizeof(into), false), PLAN_EXIT_ROOM);
}

static void conditional_exit_is_passed_where_it_is_taken(void **state)
{
	/* xor %eax,%eax; test %edi,%edi; je (far); push; ret */
	static const uint8_t code[] = { 0x31, 0xc0, 0x85, 0xff, 0x0f, 0x84,
					0xfa, 0x01, 0,	  0,	0x50, 0xc3 };
	/* lea 1(%rdi),%eax; je (near); push; ret */
	static const uint8_t near[] = { 0x8d, 0x47, 0x01, 0x74, 0x40, 0x50, 0xc3 };
	struct plan_pc pcs[PLAN_MAX_INSNS + 1];
	uint8_t buf[PLAN_MAX_DISPLACED];
	enum plan_refusal why;
	size_t n, len;

	(void)state;
	put(0x800, code, sizeof(code));
	assert_int_equal(plan_exit(0x804, sizeof(code), false), PLAN_OK);
	assert_int_equal(plan.addr, BASE + 0x804);
	assert_int_equal(plan.len, 6);
	assert_true(plan.conditional);
	assert_false(plan.ends);
	/* je hook; jmp behind it */
	len = plan_emit_before(&plan, BASE + 0x10000, BASE + 0x10100, buf, sizeof(buf), pcs, &n,
			       &why);
	assert_int_equal(len, 11);
	assert_int_equal(n, 2);
	assert_memory_equal(buf, ((const uint8_t[]){ 0x0f, 0x84, 0xfa, 0, 0, 0, 0xe9 }), 7);
	assert_int_equal(pcs[0].original, BASE + 0x804);
	assert_int_equal(pcs[1].original, BASE + 0x80a);

	put(0x800, near, sizeof(near));
	assert_int_equal(plan_exit(0x803, sizeof(near), false), PLAN_OK);
	assert_int_equal(plan.addr, BASE + 0x800);
	assert_int_equal(plan.len, 5);
	assert_int_equal(plan.before, 1);
	assert_true(plan.conditional);
}

static void exit_in_the_entrys_window_needs_none(void **state)
{
	/* mov (%rdi),%eax; mov (%rax),%eax; ret */
	static const uint8_t code[] = { 0x8b, 0x07, 0x8b, 0x00, 0xc3 };
	struct plan_pc pcs[PLAN_MAX_INSNS + 1];
	uint8_t buf[PLAN_MAX_DISPLACED];
	enum plan_refusal why;
	struct plan inner;
	size_t n, len;

	(void)state;
	assert_int_equal(plan_bytes(code, sizeof(code)), PLAN_OK);
	assert_false(plan_inner(&plan, plan.addr + 1, &inner));
	assert_int_equal(plan.inner, 0);
	assert_true(plan_inner(&plan, plan.addr + 4, &inner));
	assert_int_equal(plan.inner, 4);
	assert_int_equal(inner.addr, plan.addr + 4);
	assert_int_equal(inner.len, 0);
	assert_int_equal(inner.insns, 1);
	assert_true(inner.ends);
	assert_int_equal(inner.orig[0], 0xc3);
	/* the same with a jump instead of the ret */
	len = plan_emit(&plan, BASE + 0x10000, buf, sizeof(buf), pcs, &n, &why);
	assert_int_equal(len, 9);
	assert_int_equal(pcs[2].original, plan.addr + 4);
	plan_link(buf + pcs[2].emitted, BASE + 0x10004, BASE + 0x10109);
	assert_memory_equal(buf, ((const uint8_t[]){ 0x8b, 0x07, 0x8b, 0x00, 0xe9, 0, 1, 0, 0 }),
			    9);
}

static void exit_reaches_an_island(void **state)
{
	/* je +1; pop %rbx; ret [landing]; ret; nopl 0(%rax,%rax); push */
	static const uint8_t code[] = { 0x74, 0x02, 0x5b, 0x50, 0x90, 0xc3, 0x50, 0xeb,
					0xfb, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x50 };
	struct plan_range taken = { BASE + 0x80b, BASE + 0x80c };
	struct site s = { 0x800, sizeof(code), 0 };
	struct plan_request req;

	(void)state;
	put(0x800, code, sizeof(code)); /* the je leads to 0x804: nop; ret */
	assert_int_equal(plan_exit(0x805, sizeof(code), false), PLAN_EXIT_ROOM);
	assert_int_equal(plan_exit(0x805, sizeof(code), true), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_ISLAND);
	assert_int_equal(plan.addr, BASE + 0x804);
	assert_int_equal(plan.len, 2);
	assert_int_equal(plan.pad, BASE + 0x809);
	assert_int_equal(plan.before, 1);
	/* the only island is taken */
	req = request(&s);
	req.addr = BASE + 0x805;
	req.entry = false;
	req.exit = req.islands = true;
	req.taken = &taken;
	req.n_taken = 1;
	assert_int_equal(plan_request(&req, &s), PLAN_EXIT_ROOM);
}

/* ret; five bytes of no-ops; the function, which is one byte; and what the linker fills. */
static enum plan_refusal plan_last_byte(bool islands, bool landing)
{
	static const uint8_t code[] = {
		0xc3, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x50, 0xc3, 0xc3, 0, 0
	};
	struct site s = { 0x808, 1, 0 };
	struct plan_request req = request(&s);

	put(0x800, code, sizeof(code));
	text[0x7f0] = landing ? 0xeb : 0x50; /* into the no-ops */
	text[0x7f1] = landing ? 0x11 : 0x50;
	req.prev = BASE + 0x7f0;
	req.next = req.fill_end = BASE + 0x80b;
	req.islands = islands;
	return plan_request(&req, &s);
}

static void one_byte_behind_its_neighbour_reaches_an_island(void **state)
{
	(void)state;
	assert_int_equal(plan_last_byte(false, false), PLAN_TOO_SHORT);
	assert_int_equal(plan_last_byte(true, false), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_ISLAND);
	assert_int_equal(plan.addr, BASE + 0x808);
	assert_int_equal(plan.len, 2);
	assert_int_equal(plan.pad, BASE + 0x801);
	assert_string_equal(detail, "");
	assert_int_equal(plan_last_byte(true, true), PLAN_TOO_SHORT);
}

static void exit_that_a_branch_leads_to_stands_alone(void **state)
{
	/* je +1; push; ret; push */
	static const uint8_t code[] = { 0x74, 0x01, 0x50, 0xc3, 0x50, 0x50, 0x50 };

	(void)state;
	put(0x800, code, sizeof(code));
	assert_int_equal(plan_exit(0x803, sizeof(code), true), PLAN_EXIT_ROOM);
	assert_string_equal(detail, "at 0x7f0000401803");
}

static void exit_may_follow_a_branch_back(void **state)
{
	/* dec %edi; mov %eax,%ecx; jne (to the mov's begin - 2); ret; push */
	static const uint8_t before[] = { 0xff, 0xcf, 0x89, 0xc1, 0x75, 0xfa, 0xc3, 0x50 };
	/* the same, to the mov, which is the window's begin */
	static const uint8_t begin[] = { 0xff, 0xcf, 0x89, 0xc1, 0x75, 0xfc, 0xc3, 0x50 };
	/* nop; dec %edi; jne to the dec, behind it */
	static const uint8_t inside[] = { 0x50, 0x90, 0xff, 0xcf, 0x75, 0xfc, 0xc3, 0x50 };

	(void)state;
	put(0x800, before, sizeof(before));
	assert_int_equal(plan_exit(0x806, sizeof(before), false), PLAN_OK);
	assert_int_equal(plan.addr, BASE + 0x802);
	put(0x800, begin, sizeof(begin));
	assert_int_equal(plan_exit(0x806, sizeof(begin), false), PLAN_OK);
	assert_int_equal(plan.addr, BASE + 0x802);
	put(0x800, inside, sizeof(inside));
	assert_int_equal(plan_exit(0x806, sizeof(inside), false), PLAN_OK);
	assert_int_equal(plan.addr, BASE + 0x802);
	/* mov %eax,%ecx stands between, so that the window would begin before the branch's end */
	put(0x800, (const uint8_t[]){ 0x90, 0xff, 0xcf, 0x75, 0xfc, 0xc3, 0x50 }, 7);
	assert_int_equal(plan_exit(0x805, 7, false), PLAN_OK);
	assert_int_equal(plan.addr, BASE + 0x801);
	put(0x800, (const uint8_t[]){ 0x89, 0xc1, 0x90, 0x75, 0xfd, 0xc3, 0x50 }, 7);
	assert_int_equal(plan_exit(0x805, 7, false), PLAN_EXIT_ROOM);
}

/* The exit at 0x800 + off of a function that runs on: `size` bytes, all of what is there. */
static enum plan_refusal plan_on(uint64_t off, uint64_t size)
{
	struct site s = { 0x800, size, 0 };
	struct plan_request req = request(&s);

	req.addr = BASE + 0x800 + off;
	req.next = req.func_end;
	req.entry = false;
	req.exit = req.runs_on = true;
	return plan_request(&req, &s);
}

static void exit_that_runs_on_is_passed_behind_its_window(void **state)
{
	/* cmp %rdx,%rcx; jb (far); nopl 0(%rax) */
	static const uint8_t code[] = { 0x48, 0x39, 0xd1, 0x0f, 0x82, 0, 2, 0,
					0,    0x0f, 0x1f, 0x80, 0,    0, 0, 0 };
	/* the same with less behind it: the exit is the first no-op */
	static const uint8_t few[] = { 0x48, 0x39, 0xd1, 0x48, 0x31, 0xc0, 0x66, 0x90, 0x90 };
	struct plan_pc pcs[PLAN_MAX_INSNS + 1];
	uint8_t buf[PLAN_MAX_DISPLACED];
	enum plan_refusal why;
	struct plan inner, exit;
	size_t n, len;

	(void)state;
	put(0x800, code, sizeof(code));
	assert_int_equal(plan_on(9, sizeof(code)), PLAN_OK);
	assert_int_equal(plan.addr, BASE + 0x809);
	assert_int_equal(plan.before, 1);
	/* the no-op; jmp hook */
	len = plan_emit_before(&plan, BASE + 0x10000, BASE + 0x10100, buf, sizeof(buf), pcs, &n,
			       &why);
	assert_int_equal(len, 12);
	assert_int_equal(n, 2);
	assert_int_equal(pcs[1].original, BASE + 0x810);
	/* behind the stub's own code: jmp to the next function */
	len = plan_emit(&plan, BASE + 0x10000, buf, sizeof(buf), pcs, &n, &why);
	assert_int_equal(len, 5);
	assert_int_equal(n, 1);
	assert_int_equal(pcs[0].original, BASE + 0x810);

	/* It becomes one of the instructions that the entry displaces, and an inner exit. */
	exit = plan;
	assert_int_equal(plan_bytes(code, sizeof(code)), PLAN_OK);
	assert_int_equal(plan.resume, BASE + 0x809);
	plan_append(&plan, &exit, BASE + 0x808);
	assert_int_equal(plan.insns, 2);
	plan_append(&plan, &exit, BASE + 0x809);
	assert_int_equal(plan.insns, 3);
	assert_int_equal(plan.len, 9);
	assert_int_equal(plan.resume, BASE + 0x810);
	assert_true(plan_inner(&plan, BASE + 0x809, &inner));
	assert_false(inner.ends);
	assert_int_equal(inner.resume, BASE + 0x810);

	put(0x800, few, sizeof(few));
	assert_int_equal(plan_on(6, sizeof(few)), PLAN_OK);
	assert_int_equal(plan.addr, BASE + 0x803);
	assert_int_equal(plan.insns, 2);
	assert_int_equal(plan.before, 2);
	assert_int_equal(plan.resume, BASE + 0x808);
}

static void exit_takes_another_one_of_the_same_instructions(void **state)
{
	/* je +1; ret [landing]; nop; push; ret; nopl 0(%rax,%rax) */
	static const uint8_t code[] = { 0x74, 0x00, 0xc3, 0x90, 0x50, 0xc3,
					0x0f, 0x1f, 0x44, 0x00, 0x00 };
	struct site s = { 0x800, sizeof(code), 0 };
	struct plan_request req;
	uint8_t bytes[2];
	struct plan twin;

	(void)state;
	put(0x800, code, sizeof(code));
	assert_int_equal(plan_exit(0x805, sizeof(code), false), PLAN_OK);
	twin = plan;
	assert_int_equal(twin.addr, BASE + 0x805);
	req = request(&s);
	req.addr = BASE + 0x802;
	req.entry = false;
	req.exit = req.islands = true;
	req.taken = &(struct plan_range){ BASE + 0x780, BASE + 0x900 };
	req.n_taken = 1;
	assert_int_equal(plan_request(&req, &s), PLAN_EXIT_ROOM);
	req.twins = &twin;
	req.n_twins = 1;
	assert_int_equal(plan_request(&req, &s), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_TWIN);
	assert_int_equal(plan.len, 2);
	assert_int_equal(plan.pad, 0);
	assert_int_equal(plan.twin, BASE + 0x805);
	plan_patch(&plan, BASE + 0x10000, bytes, NULL);
	assert_memory_equal(bytes, ((const uint8_t[]){ 0xeb, 0x01 }), 2);
	/* other instructions, or one that depends on its place */
	twin.orig[0] = 0xc2;
	assert_int_equal(plan_request(&req, &s), PLAN_EXIT_ROOM);
}

static void island_may_lie_among_the_neighbours(void **state)
{
	/* je +1; ret [landing]; nop; push; jmp -7. Then two functions, and no-ops behind one. */
	static const uint8_t code[] = { 0x74, 0x00, 0xc3, 0x90, 0x50, 0xeb, 0xf9 };
	static const uint8_t next[] = { 0x50, 0xc3, 0x50, 0xc3, 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	(void)state;
	put(0x800, code, sizeof(code));
	assert_int_equal(plan_exit(0x802, sizeof(code), true), PLAN_EXIT_ROOM);
	put(0x810, next, sizeof(next));
	assert_int_equal(plan_exit(0x802, sizeof(code), true), PLAN_OK);
	assert_int_equal(plan.shape, PLAN_ISLAND);
	assert_int_equal(plan.pad, BASE + 0x814);
	/* code runs into them */
	text[0x813] = 0x50;
	assert_int_equal(plan_exit(0x802, sizeof(code), true), PLAN_EXIT_ROOM);
}

static void every_refusal_has_its_text(void **state)
{
	(void)state;
	for (int why = 0; why < PLAN_REFUSAL_COUNT; why++)
		assert_string_not_equal(plan_refusal_text(why), "unknown reason");
	assert_string_equal(plan_refusal_text(PLAN_REFUSAL_COUNT), "unknown reason");
	assert_non_null(strstr(plan_refusal_text(PLAN_LANDING), "--mechanism int3"));
}

#define TEST(F) cmocka_unit_test_setup(F, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(body_takes_whole_instructions),
		TEST(endbr64_stays),
		TEST(lone_ret_uses_its_tail),
		TEST(tail_must_be_padding_to_its_end),
		TEST(short_body_that_falls_through_is_refused),
		TEST(short_body_uses_the_padding_before_it),
		TEST(padding_that_is_run_through_keeps_its_boundary),
		TEST(padding_of_small_noops_that_is_run_through_is_not_used),
		TEST(first_instruction_that_may_stay_stays),
		TEST(first_instruction_that_writes_an_argument_is_displaced),
		TEST(window_behind_the_first_instruction_is_passed_once_a_call),
		TEST(first_instruction_whose_flags_are_read_does_not_stay),
		TEST(last_byte_of_a_section_uses_the_fill_behind_it),
		TEST(padding_behind_a_function_of_unknown_length_is_found),
		TEST(window_across_a_page_is_refused),
		TEST(sem_trywait_lands_in_its_window),
		TEST(pthread_spin_lock_loops_to_its_entry),
		TEST(loop_by_rel32_is_retargeted),
		TEST(short_loop_before_traps_is_widened),
		TEST(branch_within_the_window_is_moved_with_it),
		TEST(mid_function_hook_counts_each_pass),
		TEST(jump_table_forbids_windows_in_mid_function),
		TEST(another_symbol_in_the_window_is_refused),
		TEST(int3_takes_one_instruction),
		TEST(what_cannot_move_is_refused),
		TEST(flags_are_kept_where_they_are_read),
		TEST(exit_takes_what_precedes_it),
		TEST(exit_uses_the_no_ops_behind_it),
		TEST(exit_may_follow_a_branch_that_leaves),
		TEST(conditional_exit_is_passed_where_it_is_taken),
		TEST(exit_in_the_entrys_window_needs_none),
		TEST(exit_reaches_an_island),
		TEST(one_byte_behind_its_neighbour_reaches_an_island),
		TEST(exit_that_a_branch_leads_to_stands_alone),
		TEST(exit_may_follow_a_branch_back),
		TEST(exit_that_runs_on_is_passed_behind_its_window),
		TEST(exit_takes_another_one_of_the_same_instructions),
		TEST(island_may_lie_among_the_neighbours),
		TEST(every_refusal_has_its_text),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
