/* SPDX-License-Identifier: MIT */
/*
 * The cost of a hook on this machine, measured on the real code: a small function in this process
 * is hooked with the stub that targets get, and timed against its unhooked twin in alternating
 * rounds.
 *
 * A measurement that is too high is subtracted from every delay of the session. A process that has
 * just started runs on a core that may not have reached its speed, or that its sibling shares:
 * readings are then high by as much as the hook itself costs, and so is their median. So rounds are
 * short, the low ones count (of the function and of its twin alike), and batches of rounds are
 * taken until two of them agree.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "clock.h"
#include "page.h"
#include "inject/arch/arch.h"
#include "src/base/must.h"

enum {
	TEXT_SIZE = 32768,
	ROUNDS = 60,		  /* per batch */
	LOW = ROUNDS / 10,	  /* of calls that count or are timed */
	DELAYED_LOW = ROUNDS / 4, /* of delayed ones, whose ends vary by a step of the clock */
	BATCHES = 12,
	CALLS = 500,
	DELAYED_CALLS = 200,
	SLICE = 3, /* rounds: 0.1 to 0.2 ms */
	CHUNKS = 8,
	CALLS_OFF = 64, /* any but 0, which is an unregistered process */
};
_Static_assert(CHUNKS *SB_PAGE_EVENTS >= 2 * CALLS, "a round is recorded");

#define AGREE_TICKS 0.75 /* 0.3 ns or less */

struct hook_bench {
	uint8_t *text; /* [0] hooked, [64] twin, [128] common code and stub */
	struct sb_page_header *hdr;
	struct sb_page_cell *cell;
	struct sb_page_counts *counts;
	struct sb_page_record record;
	struct sb_page_span *spans; /* two blocks, of which the first is none; NULL: not timed */
	struct sb_page_calls *calls;
	struct sb_page_trace *trace; /* calls are recorded in the chunks behind `taken`; or NULL */
	struct sb_page_taken *taken;
	uint64_t each;
	bool values; /* of each call, too */
	size_t memory;
	/* Of hook_bench_step(): the batch under way, and the result of the one before. */
	double plain[ROUNDS], hooked[ROUNDS];
	size_t n;
	double last;
};

typedef long victim_fn(long);

static int bench_memory(struct hook_bench *b)
{
	struct sb_page_header lay;

	page_layout(&lay, &(struct page_want){ .targets = 1, .little = true });
	b->memory = sizeof(lay) + 2 * 4096 + lay.cell_size;
	b->hdr = calloc(1, b->memory);
	b->text = mmap(NULL, TEXT_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!b->hdr || b->text == MAP_FAILED)
		return -1;
	*b->hdr = lay;
	b->hdr->lease_until = arch->clock_read() + (1ull << 62);
	b->cell = (void *)(((uintptr_t)(b->hdr + 1) + 4095) & ~4095ul);
	b->counts = (void *)((char *)b->cell + 4096);
	b->cell->overrun_limit = 1 << 20;
	b->cell->residual_max = 1 << 10;
	b->cell->pause_above = 1 << 20;
	return 0;
}

/* The times of calls, too. */
static int bench_spans(struct hook_bench *b)
{
	size_t slots = b->hdr->slots + SB_PAGE_SHARED_SLOTS;

	b->spans = calloc(2 * slots, sizeof(*b->spans));
	b->calls = calloc(1, sizeof(*b->calls));
	b->cell->span_block = 1;
	/* With values: the first argument and what is returned, the latter added up. */
	b->cell->value[0] = 1;
	b->cell->value[1] = SB_VALUE_RETURNED | SB_VALUE_SUM | SB_VALUE_SIGNED;
	b->cell->shape = page_value_shape(b->cell->value);
	return b->spans && b->calls ? 0 : -1;
}

/* Each call is recorded, too. */
static int bench_trace(struct hook_bench *b)
{
	b->trace = calloc(1, sizeof(*b->trace) + CHUNKS * sizeof(uint32_t));
	b->taken = calloc(1, sizeof(*b->taken) + CHUNKS * sizeof(struct sb_page_chunk));
	if (!b->trace || !b->taken)
		return -1;
	for (uint32_t i = 0; i < CHUNKS; i++)
		b->trace->chunk[i] = i;
	b->trace->offered = CHUNKS;
	return 0;
}

/* All chunks are free again. */
static void reset_trace(const struct hook_bench *b)
{
	struct sb_page_chunk *chunk = (struct sb_page_chunk *)(b->taken + 1);

	b->taken->taken = 0;
	for (int i = 0; i < CHUNKS; i++)
		chunk[i].used = chunk[i].owner = 0;
	for (int i = 0; i < SB_PAGE_CALL_THREADS; i++)
		b->calls->thread[i].chunk = 0;
}

/* Hooks the function at its entry, or at its last instruction; returns where the stub ends. */
static uint8_t *bench_site(struct hook_bench *b, const struct arch_env *env, bool exit,
			   const struct arch_count *count, uint8_t *stub)
{
	uint64_t base = (uint64_t)b->text;
	struct plan_request req = {
		.addr = exit ? base + arch_sample_size - 1 : base,
		.func = base,
		.func_end = base + arch_sample_size,
		.prev_end = base,
		.next = base + 64,
		.text = b->text,
		.text_addr = base,
		.text_len = 64,
		.entry = !exit,
		.exit = exit,
	};
	enum plan_refusal why;
	struct arch_site site;
	struct plan plan;
	size_t size;

	if (plan_make(&req, NULL, &plan, NULL, 0) != PLAN_OK)
		return NULL;
	size = arch->emit_site(env, &plan, count, (uint64_t)stub, stub,
			       (size_t)(b->text + TEXT_SIZE - stub), &site, &why);
	if (!size)
		return NULL;
	plan_patch(&plan, (uint64_t)stub + site.entry, b->text + (plan.addr - base), NULL);
	return stub + ((size + 15) & ~15ul);
}

static int bench_hook(struct hook_bench *b, bool each)
{
	uint64_t base = (uint64_t)b->text;
	struct arch_env env = {
		.header = (uint64_t)b->hdr,
		.record = (uint64_t)&b->record,
		.procs = (uint64_t)b->hdr,
		.counters = 4096,
		.most_ticks = 1ull << 40,
		.common = base + 128,
		.slots = b->hdr->slots,
		.own_slots = arch->thread_pointer_readable(),
	};
	uint8_t *stub = b->text + 128 + ((arch->common_size() + 63) & ~63ul);
	struct arch_count begin = { .cell = (uint64_t)b->cell,
				    .each = each ? (uint64_t)&b->each : 0,
				    .kind = b->spans ? ARCH_BEGIN : ARCH_HIT,
				    .values = b->values };
	struct arch_count end = { .cell = (uint64_t)b->cell,
				  .kind = ARCH_END,
				  .values = b->values };

	if (b->spans) {
		env.spans = (uint64_t)b->spans;
		env.calls = (uint64_t)b->calls - CALLS_OFF;
		b->record.calls_off = CALLS_OFF;
		env.span_blocks = 2;
		env.span_size = (env.slots + SB_PAGE_SHARED_SLOTS) * sizeof(*b->spans);
	}
	if (b->trace) {
		env.trace = (uint64_t)b->trace;
		env.taken = (uint64_t)b->taken;
		env.chunks = CHUNKS;
	}
	memset(b->text, 0x90, 128);
	memcpy(b->text, arch_sample_function, arch_sample_size);
	memcpy(b->text + 64, arch_sample_function, arch_sample_size);
	arch->emit_common(&env, b->text + 128);
	if (b->spans)
		stub = bench_site(b, &env, true, &end, stub);
	if (!stub || !bench_site(b, &env, false, &begin, stub))
		return -1;
	return mprotect(b->text, TEXT_SIZE, PROT_READ | PROT_EXEC);
}

static double time_calls(const struct hook_bench *b, size_t offset, int calls)
{
	victim_fn *volatile fn = (victim_fn *)(uintptr_t)(b->text + offset);
	uint64_t start;

	if (b->trace)
		reset_trace(b);
	start = arch->clock_read();
	for (int i = 0; i < calls; i++)
		fn(i);
	return (double)(arch->clock_read() - start) / calls;
}

static uint64_t injected(const struct hook_bench *b)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < b->hdr->slots + SB_PAGE_SHARED_SLOTS; i++)
		sum += b->counts->slot[i].injected_ticks + b->counts->slot[i].overrun_ticks;
	return sum;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * Ticks per call: of the twin, and of the hooked function without the time that the stub reports as
 * injected.
 */
struct reading {
	double plain, hooked, given;
};

/* The low ones of a batch. */
static struct reading read_batch(const struct hook_bench *b, int calls)
{
	int low = b->cell->delay_ticks ? DELAYED_LOW : LOW;
	double plain[ROUNDS], hooked[ROUNDS], given[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t before;

		plain[i] = time_calls(b, 64, calls);
		before = injected(b);
		hooked[i] = time_calls(b, 0, calls);
		given[i] = (double)(injected(b) - before) / calls;
		hooked[i] -= given[i];
	}
	qsort(plain, ROUNDS, sizeof(*plain), by_value);
	qsort(hooked, ROUNDS, sizeof(*hooked), by_value);
	qsort(given, ROUNDS, sizeof(*given), by_value);
	return (struct reading){ plain[low], hooked[low], given[low] };
}

/*
 * Ticks per call beyond the twin and beyond the stub's injected time: of the lowest batch, once
 * another one agrees with it. spent: the stub's injected time; spread: by how much the two differ.
 */
static double low_cost(const struct hook_bench *b, int calls, double *spent, double *spread)
{
	struct reading low = read_batch(b, calls);
	double off = 0;

	for (int i = 1; i < BATCHES; i++) {
		struct reading r = read_batch(b, calls);

		off = fabs(r.hooked - low.hooked) + fabs(r.plain - low.plain);
		low.plain = r.plain < low.plain ? r.plain : low.plain;
		low.hooked = r.hooked < low.hooked ? r.hooked : low.hooked;
		low.given = r.given < low.given ? r.given : low.given;
		if (off <= AGREE_TICKS)
			break;
	}
	if (spent)
		*spent = low.given;
	if (spread)
		*spread = off;
	return low.hooked - low.plain;
}

static double at_least_0(double x)
{
	return x > 0 ? x : 0;
}

static int measure(struct hook_bench *b, const struct clock *clk, struct hook_cost *out)
{
	double floor_spent;

	time_calls(b, 0, CALLS);
	out->off_ns = at_least_0(clock_to_ns(clk, low_cost(b, CALLS, NULL, NULL)));
	b->cell->state = SB_STATE_COUNT;
	out->count_ns = at_least_0(clock_to_ns(clk, low_cost(b, CALLS, NULL, NULL)));
	b->cell->flags = SB_CELL_DELAY;
	b->cell->state = SB_STATE_SLOW;
	out->floor_ns = at_least_0(low_cost(b, CALLS, &floor_spent, NULL));
	out->floor_ns = clock_to_ns(clk, out->floor_ns + floor_spent);
	b->cell->every = UINT64_MAX;
	out->nth_ns = at_least_0(clock_to_ns(clk, low_cost(b, CALLS, NULL, NULL)));
	b->cell->every = 1;
	b->cell->delay_ticks = clock_ticks(clk, 100);
	out->delay_ticks = at_least_0(low_cost(b, DELAYED_CALLS, NULL, &out->spread_ticks));
	return 0;
}

int clock_hook_cost(const struct clock *clk, bool each, struct hook_cost *out,
		    struct hook_bench **keep)
{
	struct hook_bench *b = must_calloc(1, sizeof(*b));
	int ret = -1;

	memset(out, 0, sizeof(*out));
	b->text = MAP_FAILED;
	b->last = NAN;
	if (bench_memory(b) == 0 && bench_hook(b, each) == 0)
		ret = measure(b, clk, out);
	if (ret == 0 && keep)
		*keep = b;
	else
		hook_bench_close(b);
	return ret;
}

void hook_bench_close(struct hook_bench *b)
{
	if (!b)
		return;
	if (b->text != MAP_FAILED)
		munmap(b->text, TEXT_SIZE);
	free(b->spans);
	free(b->calls);
	free(b->trace);
	free(b->taken);
	free(b->hdr);
	free(b);
}

/* Ticks of a call, as recorded: of the low rounds. */
static double low_time(const struct hook_bench *b)
{
	const size_t slots = b->hdr->slots + SB_PAGE_SHARED_SLOTS;
	double mean[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t ticks = 0, calls = 0;

		memset(b->spans + slots, 0, slots * sizeof(*b->spans));
		time_calls(b, 0, CALLS);
		for (size_t k = slots; k < 2 * slots; k++) {
			ticks += b->spans[k].ticks;
			calls += b->spans[k].calls;
		}
		mean[i] = calls ? (double)ticks / (double)calls : 0;
	}
	qsort(mean, ROUNDS, sizeof(*mean), by_value);
	return mean[LOW];
}

static int span_cost(bool each, bool record, bool values, double *cost, double *within)
{
	struct hook_bench *b = must_calloc(1, sizeof(*b));
	int ret = -1;

	b->text = MAP_FAILED;
	b->values = values;
	if (bench_memory(b) == 0 && bench_spans(b) == 0 && (!record || bench_trace(b) == 0) &&
	    bench_hook(b, each) == 0) {
		b->cell->flags = SB_CELL_SPANS;
		b->cell->state = SB_STATE_SLOW;
		time_calls(b, 0, CALLS);
		*cost = at_least_0(low_cost(b, CALLS, NULL, NULL));
		*within = low_time(b);
		ret = 0;
	}
	hook_bench_close(b);
	return ret;
}

int clock_span_cost(bool each, bool record, struct hook_cost *out)
{
	out->span_within = out->span_cost = 0;
	return span_cost(each, record, false, &out->span_cost, &out->span_within);
}

int clock_value_cost(bool each, bool record, const struct hook_cost *spans, struct value_cost *out)
{
	double cost, within;
	int ret = span_cost(each, record, true, &cost, &within);

	*out = (struct value_cost){ 0 };
	if (ret < 0)
		return ret;
	out->cost = at_least_0(cost - spans->span_cost);
	out->within = at_least_0(within - spans->span_within);
	return 0;
}

bool hook_bench_step(struct hook_bench *b, struct hook_cost *cost)
{
	double was = cost->delay_ticks, now, before = b->last;

	for (int i = 0; i < SLICE && b->n < ROUNDS; i++, b->n++) {
		uint64_t given;

		b->plain[b->n] = time_calls(b, 64, DELAYED_CALLS);
		given = injected(b);
		b->hooked[b->n] = time_calls(b, 0, DELAYED_CALLS);
		b->hooked[b->n] -= (double)(injected(b) - given) / DELAYED_CALLS;
	}
	if (b->n < ROUNDS)
		return false;
	b->n = 0;
	qsort(b->plain, ROUNDS, sizeof(*b->plain), by_value);
	qsort(b->hooked, ROUNDS, sizeof(*b->hooked), by_value);
	now = b->last = at_least_0(b->hooked[DELAYED_LOW] - b->plain[DELAYED_LOW]);
	/* A disturbance of one batch by the machine does not repeat in the next. */
	if (isnan(before) || fabs(now - before) > AGREE_TICKS || fabs(now - was) <= AGREE_TICKS)
		return false;
	cost->delay_ticks = (now + before) / 2;
	if (fabs(now - was) > cost->spread_ticks)
		cost->spread_ticks = fabs(now - was);
	return true;
}
