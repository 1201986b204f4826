/* SPDX-License-Identifier: MIT */
/* What a hit costs: counting, disabled, by int3, and by a kernel uprobe, side by side. */
#include <math.h>
#include <string.h>
#include "bench.h"

double cost_of_jump = NAN;

static uint64_t scaled(uint64_t calls)
{
	return bench.quick ? calls / 5 : calls;
}

/* The cost of a call with these words minus that without, both of this moment. */
static double cost_with(struct subject *s, const char *const *words, uint64_t calls,
			const char **why)
{
	static char reason[200];
	struct attached a;
	double base, hooked;

	base = subject_call(s, 1, scaled(20000000));
	if (sb_attach(&a, s, words)) {
		snprintf(reason, sizeof(reason), "%s", sb_why(&a));
		*why = reason;
		return NAN;
	}
	hooked = subject_call(s, 1, scaled(calls));
	if (sb_detach(&a)) {
		snprintf(reason, sizeof(reason), "%s", sb_why(&a));
		*why = reason;
		return NAN;
	}
	return hooked - base;
}

static double cost_of_uprobe(struct subject *s, bool pair, const char **why)
{
	const uint64_t calls = scaled(200000);
	double base, hooked;
	struct uprobe *u;
	uint64_t hits;

	base = subject_call(s, 1, scaled(20000000));
	u = uprobe_open(s, pair, why);
	if (!u)
		return NAN;
	hooked = subject_call(s, 1, calls);
	hits = uprobe_close(u);
	if (hits != calls) {
		*why = "the uprobe did not count every call";
		return NAN;
	}
	return hooked - base;
}

enum { JUMP, OFF, NTH, TIMED, RECORDED, INT3, UPROBE, PAIR, VARIANTS };

static const char *const jump_words[] = { ":bench_fn", "0", NULL };
static const char *const off_words[] = { ":bench_fn", "0", "start=1h", NULL };
static const char *const nth_words[] = { ":bench_fn", "1us", "every=1000000000", NULL };
static const char *const timed_words[] = { ":bench_fn", "0", "time=yes", NULL };
static const char *const recorded_words[] = { "trace",	 ":bench_fn", "-o", "/dev/null", "--format",
					      "pftrace", "--ring",    "4M", NULL };
static const char *const int3_words[] = { ":bench_fn", "0", "--mechanism", "int3", NULL };

static void one_round(struct subject *s, struct samples *cost, const char **why)
{
	samples_add(&cost[JUMP], cost_with(s, jump_words, 20000000, &why[JUMP]));
	samples_add(&cost[OFF], cost_with(s, off_words, 20000000, &why[OFF]));
	samples_add(&cost[NTH], cost_with(s, nth_words, 20000000, &why[NTH]));
	samples_add(&cost[UPROBE], cost_of_uprobe(s, false, &why[UPROBE]));
	samples_add(&cost[TIMED], cost_with(s, timed_words, 20000000, &why[TIMED]));
	samples_add(&cost[RECORDED], cost_with(s, recorded_words, 20000000, &why[RECORDED]));
	samples_add(&cost[PAIR], cost_of_uprobe(s, true, &why[PAIR]));
	samples_add(&cost[INT3], cost_with(s, int3_words, 5000, &why[INT3]));
}

/* A million recorded calls a second, with the default buffer: those that are not in the file. */
static void recorded_pace(struct subject *s)
{
	static const char what[] = "calls lost of 1 million a second on 2 threads, trace -o";
	static const char *const words[] = { "trace",	 ":bench_fn", "-o", "/dev/null",
					     "--format", "pftrace",   NULL };
	const uint64_t calls = scaled(10000000);
	double made = 0, recorded, lost;
	struct attached a;

	if (sb_attach(&a, s, words)) {
		row_missing("cost", what, "0", "%s", sb_why(&a));
		return;
	}
	subject_ask(s, &made, 1, "paced 2 %llu", (unsigned long long)calls / 2);
	if (sb_detach(&a)) {
		row_missing("cost", what, "0", "%s", sb_why(&a));
		return;
	}
	recorded = sb_json(&a, "trace.calls");
	lost = sb_json(&a, "trace.lost");
	row_add("cost", what, made - recorded, "", "0", lost == 0 && recorded == made);
}

void bench_cost(void)
{
	static const struct {
		const char *what, *goal;
		double limit;
	} rows[VARIANTS] = {
		[JUMP] = { "a hit, jump, delay 0, counting", "<= 6 ns", 6 },
		[OFF] = { "a hit, jump, outside its window", "<= 2 ns", 2 },
		[NTH] = { "a hit, jump, every=N, not the Nth", "<= 12 ns", 12 },
		[INT3] = { "a hit, int3, delay 0", NULL, NAN },
		[TIMED] = { "a call, time=yes, sums and histogram", "<= 25 ns", 25 },
		[RECORDED] = { "a call, trace -o, with a record of each", "<= 30 ns", 30 },
		[PAIR] = { "a call, kernel uprobe and uretprobe with BPF ring buffer", NULL, NAN },
		[UPROBE] = { "a hit, kernel uprobe with a counting BPF program", NULL, NAN },
	};
	struct samples cost[VARIANTS] = { 0 };
	const char *why[VARIANTS] = { 0 };
	struct subject s = { 0 };
	double jump, uprobe;

	if (subject_start(&s, "subject", NULL, NULL))
		return;
	for (int i = 0; i < bench.rounds; i++)
		one_round(&s, cost, why);
	recorded_pace(&s);
	subject_stop(&s);
	for (int v = 0; v < VARIANTS; v++) {
		double value = samples_median(&cost[v]);

		if (isnan(value))
			row_missing("cost", rows[v].what, rows[v].goal, "%s",
				    why[v] ? why[v] : "no round succeeded");
		else
			row_add("cost", rows[v].what, value, "ns", rows[v].goal,
				isnan(rows[v].limit) ? -1 : met_below(value, rows[v].limit));
	}
	cost_of_jump = jump = samples_median(&cost[JUMP]);
	uprobe = samples_median(&cost[UPROBE]);
	if (!isnan(jump) && !isnan(uprobe))
		row_add("cost", "uprobe / jump", uprobe / jump, "x", ">= 80 x",
			uprobe / jump >= 80);
	if (!isnan(samples_median(&cost[TIMED])) && !isnan(samples_median(&cost[PAIR]))) {
		double times = samples_median(&cost[PAIR]) / samples_median(&cost[TIMED]);

		row_add("cost", "uprobe and uretprobe / timed call", times, "x", ">= 30 x",
			times >= 30);
	}
	if (!isnan(jump) && cost[INT3].n)
		row_add("cost", "int3 / jump", samples_median(&cost[INT3]) / jump, "x", NULL, -1);
}
