/* SPDX-License-Identifier: MIT */
/* Where the time of an item goes, as tables. */
#include "explain.h"

#include <math.h>
#include "evidence.h"
#include "grid.h"
#include "out.h"

enum { THREADS_MAX = 20 };

static const struct out_col reason_cols[] = {
	{ "reason", OUT_TEXT, 0 },
	{ "per item", OUT_FIGURE, 2 },
	{ "95% interval", OUT_TEXT, 2 },
	{ "share", OUT_FIGURE, 2 },
};

static void add_interval(struct out_grid *grid, struct ratio r)
{
	char lo[32], hi[32];

	if (isnan(r.lo))
		out_grid_add(grid, "-");
	else
		out_grid_add(grid, "[%s, %s]", out_time(fmax(0, r.lo), lo, sizeof(lo)),
			     out_time(r.hi, hi, sizeof(hi)));
}

static void add_row(struct out_grid *grid, const char *name, struct ratio r, double whole)
{
	char text[32];

	out_grid_add(grid, "%s", name);
	out_grid_add(grid, "%s", out_time(r.est, text, sizeof(text)));
	add_interval(grid, r);
	if (isnan(r.est))
		out_grid_add(grid, "-");
	else
		out_grid_add(grid, "%.1f%%", 100 * r.est / whole);
}

static void print_reasons(FILE *to, const struct explain_result *res)
{
	struct out_grid grid = { reason_cols, sizeof(reason_cols) / sizeof(reason_cols[0]), NULL,
				 0 };
	double whole = res->time_per_item.est;

	for (int r = 0; r < EVIDENCE_REASONS; r++)
		if (!res->unknown[r])
			add_row(&grid, evidence_reason(r), res->whole.reason[r], whole);
	if (res->limit.code)
		add_row(&grid, "off_cpu", res->whole.off_cpu, whole);
	out_grid_print(&grid, to);
}

static const struct out_col thread_cols[] = {
	{ "tid", OUT_FIGURE, 0 },     { "thread", OUT_NAME, 2 },
	{ "on_cpu", OUT_FIGURE, 2 },  { "run_queue", OUT_FIGURE, 2 },
	{ "futex", OUT_FIGURE, 2 },   { "io", OUT_FIGURE, 2 },
	{ "network", OUT_FIGURE, 2 }, { "page_fault", OUT_FIGURE, 2 },
	{ "sleep", OUT_FIGURE, 2 },   { "other", OUT_FIGURE, 2 },
};

static void print_threads(FILE *to, const struct explain_result *res)
{
	struct out_grid grid = { thread_cols, sizeof(thread_cols) / sizeof(thread_cols[0]), NULL,
				 0 };
	char text[32];

	if (res->n_threads < 2)
		return;
	for (size_t i = 0; i < res->n_threads && i < THREADS_MAX; i++) {
		const struct explain_thread *t = &res->thread[i];

		out_grid_add(&grid, "%d", t->tid);
		out_grid_add(&grid, "%s", t->name[0] ? t->name : "-");
		for (int r = 0; r < EVIDENCE_REASONS; r++)
			out_grid_add(&grid, "%s",
				     out_time(t->part.reason[r].est, text, sizeof(text)));
	}
	fputs("\nby thread, per item, the busiest first\n", to);
	out_grid_print(&grid, to);
	if (res->n_threads > THREADS_MAX)
		fprintf(to, "and %zu more\n", res->n_threads - THREADS_MAX);
}

static const struct out_col futex_cols[] = {
	{ "pid", OUT_FIGURE, 0 },      { "address", OUT_FIGURE, 2 },
	{ "per item", OUT_FIGURE, 2 }, { "95% interval", OUT_TEXT, 2 },
	{ "waits", OUT_FIGURE, 2 },    { "owner", OUT_NAME, 2 },
};

static void add_owner(struct out_grid *grid, const struct explain_futex *f)
{
	char text[512];
	int len = snprintf(text, sizeof(text), "%s", f->symbol ? f->symbol : "");

	for (int i = 0; i < EXPLAIN_CALLERS && f->caller[i] && len < (int)sizeof(text); i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%s",
				i	  ? ", " :
				f->symbol ? " (" :
					    "(",
				f->caller[i]);
	out_grid_add(grid, "%s%s", len ? text : "-", f->caller[0] ? ")" : "");
}

static void add_futex(struct out_grid *grid, const struct explain_futex *f)
{
	char text[32];

	out_grid_add(grid, "%s", out_time(f->time.est, text, sizeof(text)));
	add_interval(grid, f->time);
	out_grid_add(grid, "%.3g", f->waits.est);
}

static void print_futexes(FILE *to, const struct explain_result *res)
{
	struct out_grid grid = { futex_cols, sizeof(futex_cols) / sizeof(futex_cols[0]), NULL, 0 };

	if (!res->n_futexes)
		return;
	for (size_t i = 0; i < res->n_futexes; i++) {
		const struct explain_futex *f = &res->futex[i];

		out_grid_add(&grid, "%d", f->pid);
		out_grid_add(&grid, "0x%llx", (unsigned long long)f->addr);
		add_futex(&grid, f);
		add_owner(&grid, f);
	}
	if (res->futex_rest.time.est > 0) {
		out_grid_add(&grid, "-");
		out_grid_add(&grid, "others");
		add_futex(&grid, &res->futex_rest);
		out_grid_add(&grid, "-");
	}
	fputs("\nfutexes by the time in them: the symbol of the address (the functions that "
	      "wait)\n",
	      to);
	out_grid_print(&grid, to);
	if (!res->futexes_add_up)
		fprintf(to, "they do not add up: the sum is off by %.1f%%\n",
			100 * res->futexes_off_by);
}

static const struct out_col candidate_cols[] = {
	{ "function", OUT_NAME, 0 },
	{ "share", OUT_FIGURE, 2 },
	{ "95% interval", OUT_TEXT, 2 },
	{ "samples", OUT_FIGURE, 2 },
};

static const struct out_col wait_cols[] = {
	{ "function", OUT_NAME, 0 },
	{ "of the time", OUT_FIGURE, 2 },
	{ "95% interval", OUT_TEXT, 2 },
	{ "looks", OUT_FIGURE, 2 },
};

static size_t add_candidates(struct out_grid *grid, const struct explain_candidate *from, size_t n)
{
	size_t left_out = 0;

	for (size_t i = 0; i < n; i++) {
		const struct explain_candidate *c = &from[i];

		if (!c->hookable) {
			left_out++;
			continue;
		}
		out_grid_add(grid, "%s", c->target);
		out_grid_add(grid, "%.1f%%", 100 * c->share.est);
		out_grid_add(grid, "[%.1f%%, %.1f%%]", 100 * c->share.lo, 100 * c->share.hi);
		out_grid_add(grid, "%llu", (unsigned long long)c->samples);
	}
	return left_out;
}

static void print_sampled(FILE *to, const struct explain_result *res, size_t left_out)
{
	fprintf(to, "of %llu samples on a processor%s\n", (unsigned long long)res->samples,
		res->samples_user_only ? ", none of them in the kernel: not permitted" : "");
	if (res->looks)
		fprintf(to,
			"%llu of them in a Python interpreter; Python functions are those of %llu "
			"looks at threads that ran\n",
			(unsigned long long)res->samples_interpreter,
			(unsigned long long)res->looks);
	if (res->samples_nowhere)
		fprintf(to,
			"%llu of them in no function of a file: the vDSO, which reads the clock, "
			"or "
			"code that the program makes itself\n",
			(unsigned long long)res->samples_nowhere);
	if (left_out)
		fprintf(to, "%zu more cannot be hooked: --json has the reasons\n", left_out);
	if (res->samples_lost)
		fprintf(to, "%llu samples were lost\n", (unsigned long long)res->samples_lost);
	if (res->threads_unsampled)
		fprintf(to, "%llu threads were not sampled: there were too many\n",
			(unsigned long long)res->threads_unsampled);
}

static void print_waits(FILE *to, const struct explain_result *res)
{
	struct out_grid grid = { wait_cols, sizeof(wait_cols) / sizeof(wait_cols[0]), NULL, 0 };

	fputs("\nPython functions in which a thread waits, by the time that one does\n", to);
	add_candidates(&grid, res->wait, res->n_waits);
	out_grid_print(&grid, to);
}

static void print_candidates(FILE *to, const struct explain_result *res)
{
	struct out_grid grid = { candidate_cols, sizeof(candidate_cols) / sizeof(candidate_cols[0]),
				 NULL, 0 };
	size_t left_out;

	if (res->samples_limit.code) {
		fprintf(to, "\nwhich functions take the time is not known: %s; %s\n",
			res->samples_limit.what, err_remedy(&res->samples_limit));
		return;
	}
	fputs("\nfunctions that can be hooked, by the time on a processor\n", to);
	left_out = add_candidates(&grid, res->candidate, res->n_candidates);
	out_grid_print(&grid, to);
	print_sampled(to, res, left_out);
	if (res->n_waits)
		print_waits(to, res);
	if (res->sweep) {
		fputs("which of them sets the pace: ", to);
		out_shown(to, res->sweep);
		fputc('\n', to);
	} else {
		fprintf(to, "no sweep to run: %s\n", res->sweep_why);
	}
}

static void print_head(FILE *to, const struct explain_result *res)
{
	char t[32], lo[32], hi[32];

	if (!res->progress) {
		fprintf(to, "a second of a thread, of %.1f s watched\n", res->time_s);
		return;
	}
	fprintf(to, "an item takes %s", out_time(res->time_per_item.est, t, sizeof(t)));
	if (!isnan(res->time_per_item.lo))
		fprintf(to, " [%s, %s]", out_time(fmax(0, res->time_per_item.lo), lo, sizeof(lo)),
			out_time(res->time_per_item.hi, hi, sizeof(hi)));
	fprintf(to, ": %.0f items in %.1f s; of that the average thread spends\n", res->items,
		res->time_s);
}

/* The counters of the processor, where they were asked for. */
static void print_hardware(FILE *to, const struct explain_result *res)
{
	const char *before = "the processor, per item: ";

	if (!res->hardware.there)
		return;
	for (int c = EVIDENCE_CYCLES; c <= EVIDENCE_BRANCH_MISSES; c++) {
		if (res->unknown[c])
			continue;
		fprintf(to, "%s%.4g %s", before, res->counter[c].est, evidence_kinds[c].name);
		if (isfinite(res->counter[c].lo))
			fprintf(to, " [%.4g, %.4g]", fmax(0, res->counter[c].lo),
				res->counter[c].hi);
		before = ", ";
	}
	if (*before == ',')
		fputc('\n', to);
	out_hardware(to, &res->hardware);
}

static void print_notices(FILE *to, const struct explain_result *res)
{
	if (res->limit.code)
		fprintf(to, "what threads wait for is not known: %s; %s\n", res->limit.what,
			err_remedy(&res->limit));
	else if (!res->adds_up && !isnan(res->off_by))
		fprintf(to, "the parts do not add up: the sum of a thread is off by %.1f%%\n",
			100 * res->off_by);
	if (res->quota.group)
		fprintf(to,
			"run_queue: the control group %s used up its quota of processor time in "
			"%llu of %llu periods\n",
			res->quota.group, (unsigned long long)res->quota.used_up,
			(unsigned long long)res->quota.periods);
	if (res->idle)
		fprintf(to, "%zu thread%s did nothing meanwhile: left out\n", res->idle,
			res->idle == 1 ? "" : "s");
	if (res->lost)
		fprintf(to, "%llu thread%s %s\n", (unsigned long long)res->lost,
			res->lost == 1 ? "" : "s",
			res->limit.code ?
				"ended, and what it did after the last look is not counted" :
				"could not be watched: too many at one time");
	if (res->sample > 1)
		fprintf(to,
			"of calls on sockets, reads of the page cache and waits for locks one "
			"in %u was counted, as %u\n",
			res->sample, res->sample);
	if (res->ended_early)
		fprintf(to, "ended after %.1f s\n", res->time_s);
}

void out_explain_table(FILE *to, const struct explain_result *res)
{
	print_head(to, res);
	print_reasons(to, res);
	print_threads(to, res);
	print_futexes(to, res);
	print_hardware(to, res);
	print_notices(to, res);
	print_candidates(to, res);
}
