/* SPDX-License-Identifier: MIT */
/* The tables of `sbinject report`. */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "grid.h"
#include "out.h"
#include "report-cuda.h"
#include "report-locks.h"
#include "report-rows.h"
#include "src/base/must.h"
#include "src/base/text.h"

enum { THREADS_MAX = 20, PROCESSES_MAX = 20 };

static const char *text_of(const char *text)
{
	return text ? text : "-";
}

static void add_time(struct out_grid *grid, double ns)
{
	char buf[32];

	if (ns < 0)
		out_grid_add(grid, "-");
	else
		out_grid_add(grid, "%s", out_time(ns, buf, sizeof(buf)));
}

/* A time since the trace began, in seconds: times of a trace are compared with each other. */
static void add_since(struct out_grid *grid, const struct sum *sum, uint64_t ns)
{
	out_grid_add(grid, "%.6f", (double)(ns - sum->begin_ns) / 1e9);
}

static const struct sum_function *function_of(const struct sum *sum, uint32_t id)
{
	return &sum->function[id - 1];
}

static void add_name(struct out_grid *grid, const struct sum_function *f, enum trace_kind kind)
{
	out_grid_add(grid, "%s%s", kind == TRACE_DELAY ? "delay: " : "", text_of(f->name));
}

static const char *process_name(const struct sum *sum, int32_t pid)
{
	const struct sum_process *p = sum_process(sum, pid);

	return p ? text_of(p->name) : "-";
}

/* tid and name of a thread, two cells. */
static void add_thread(struct out_grid *grid, const struct sum_thread *t)
{
	if (t->tid)
		out_grid_add(grid, "%" PRId32, t->tid);
	else
		out_grid_add(grid, "-");
	out_grid_add(grid, "%s", text_of(t->name));
}

char *out_report_frame(const struct sum *sum, uint32_t key)
{
	const char *name;
	char *text;

	if (key == STACKS_OTHERS)
		return must_strdup("[others]");
	name = function_of(sum, key / 2)->name;
	if (asprintf(&text, "%s%s", key % 2 ? "delay: " : "", text_of(name)) < 0)
		abort();
	return text;
}

/* ---- functions ---- */

static const struct out_col function_cols[] = {
	{ "own", OUT_FIGURE, 0 },  { "total", OUT_FIGURE, 2 }, { "calls", OUT_FIGURE, 2 },
	{ "mean", OUT_FIGURE, 2 }, { "p50", OUT_FIGURE, 1 },   { "p90", OUT_FIGURE, 1 },
	{ "p99", OUT_FIGURE, 1 },  { "max", OUT_FIGURE, 1 },   { "function", OUT_NAME, 2 },
	{ "module", OUT_NAME, 2 },
};

static int by_own(const void *a, const void *b)
{
	const struct report_row *x = a, *y = b;

	if (x->times->own_ns != y->times->own_ns)
		return x->times->own_ns < y->times->own_ns ? 1 : -1;
	if (x->times->total_ns != y->times->total_ns)
		return x->times->total_ns < y->times->total_ns ? 1 : -1;
	return (x->f > y->f) - (x->f < y->f);
}

struct report_row *report_rows(const struct sum *sum, size_t *n)
{
	struct report_row *row = must_calloc(2 * sum->n_functions + 1, sizeof(*row));

	*n = 0;
	for (size_t i = 0; i < sum->n_functions; i++)
		for (int kind = 0; kind < 2; kind++)
			if (sum->function[i].of[kind])
				row[(*n)++] = (struct report_row){ &sum->function[i],
								   sum->function[i].of[kind],
								   (enum trace_kind)kind };
	qsort(row, *n, sizeof(*row), by_own);
	return row;
}

/* Of a module's path; JSON has all of it. */
static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void print_functions(FILE *to, const struct sum *sum)
{
	struct out_grid grid = { function_cols, sizeof(function_cols) / sizeof(*function_cols),
				 NULL, 0 };
	size_t n;
	struct report_row *row = report_rows(sum, &n);

	for (size_t i = 0; i < n && i < REPORT_ROWS_MAX; i++) {
		const struct sum_times *t = row[i].times;

		add_time(&grid, (double)t->own_ns);
		add_time(&grid, (double)t->total_ns);
		out_grid_add(&grid, "%" PRIu64, t->n);
		add_time(&grid, (double)t->total_ns / (double)t->n);
		add_time(&grid, sum_quantile(sum, t, 0.5));
		add_time(&grid, sum_quantile(sum, t, 0.9));
		add_time(&grid, sum_quantile(sum, t, 0.99));
		add_time(&grid, (double)t->max_ns);
		add_name(&grid, row[i].f, row[i].kind);
		out_grid_add(&grid, "%s", file_name(text_of(row[i].f->module)));
	}
	if (n)
		out_grid_print(&grid, to);
	if (n > REPORT_ROWS_MAX)
		fprintf(to, "  and %zu more (--json has all)\n", n - REPORT_ROWS_MAX);
	free(row);
}

/* ---- processes and threads ---- */

static const struct out_col thread_cols[] = {
	{ "in calls", OUT_FIGURE, 0 }, { "off CPU", OUT_FIGURE, 2 }, { "spans", OUT_FIGURE, 2 },
	{ "first", OUT_FIGURE, 2 },    { "last", OUT_FIGURE, 2 },    { "pid", OUT_FIGURE, 2 },
	{ "process", OUT_TEXT, 2 },    { "tid", OUT_FIGURE, 2 },     { "thread", OUT_TEXT, 2 },
};

/* Column 1 is `off CPU`: only where the trace has that. Returns how many columns there are. */
static size_t choose(const struct out_col *all, size_t n, const struct sum *sum, struct out_col *to)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (i != 1 || sum->off_cpu)
			to[k++] = all[i];
	return k;
}

static void add_times(struct out_grid *grid, const struct sum *sum, uint64_t in_calls,
		      uint64_t off_cpu)
{
	add_time(grid, (double)in_calls);
	if (sum->off_cpu)
		add_time(grid, off_cpu ? (double)off_cpu : -1);
}

static int by_time(const void *a, const void *b)
{
	const struct sum_thread *x = *(struct sum_thread *const *)a,
				*y = *(struct sum_thread *const *)b;

	if (x->in_calls_ns != y->in_calls_ns)
		return x->in_calls_ns < y->in_calls_ns ? 1 : -1;
	if (x->off_cpu_ns != y->off_cpu_ns)
		return x->off_cpu_ns < y->off_cpu_ns ? 1 : -1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Threads with calls, those with the most time first. The caller frees. */
static const struct sum_thread **threads_of(const struct sum *sum, size_t *n)
{
	const struct sum_thread **list = must_calloc(sum->n_threads + 1, sizeof(*list));

	*n = 0;
	for (size_t i = 0; i < sum->n_threads; i++)
		if (sum->thread[i].spans)
			list[(*n)++] = &sum->thread[i];
	qsort(list, *n, sizeof(*list), by_time);
	return list;
}

static void print_threads(FILE *to, const struct sum *sum)
{
	struct out_col cols[sizeof(thread_cols) / sizeof(*thread_cols)];
	struct out_grid grid = {
		cols, choose(thread_cols, sizeof(thread_cols) / sizeof(*thread_cols), sum, cols),
		NULL, 0
	};
	size_t n;
	const struct sum_thread **list = threads_of(sum, &n);

	for (size_t i = 0; i < n && i < THREADS_MAX; i++) {
		const struct sum_thread *t = list[i];

		add_times(&grid, sum, t->in_calls_ns, t->off_cpu_ns);
		out_grid_add(&grid, "%" PRIu64, t->spans);
		add_since(&grid, sum, t->first_ns);
		add_since(&grid, sum, t->last_ns);
		out_grid_add(&grid, "%" PRId32, t->pid);
		out_grid_add(&grid, "%s", process_name(sum, t->pid));
		add_thread(&grid, t);
	}
	fputc('\n', to);
	out_grid_print(&grid, to);
	if (n > THREADS_MAX)
		fprintf(to, "  and %zu more threads (--json has all)\n", n - THREADS_MAX);
	free(list);
}

static const struct out_col process_cols[] = {
	{ "in calls", OUT_FIGURE, 0 }, { "off CPU", OUT_FIGURE, 2 }, { "spans", OUT_FIGURE, 2 },
	{ "threads", OUT_FIGURE, 2 },  { "pid", OUT_FIGURE, 2 },     { "process", OUT_TEXT, 2 },
};

static void print_processes(FILE *to, const struct sum *sum)
{
	struct out_col cols[sizeof(process_cols) / sizeof(*process_cols)];
	struct out_grid grid = {
		cols, choose(process_cols, sizeof(process_cols) / sizeof(*process_cols), sum, cols),
		NULL, 0
	};
	size_t n = 0;

	for (size_t i = 0; i < sum->n_processes; i++) {
		const struct sum_process *p = &sum->process[i];

		if (!p->spans || n++ >= PROCESSES_MAX)
			continue;
		add_times(&grid, sum, p->in_calls_ns, p->off_cpu_ns);
		out_grid_add(&grid, "%" PRIu64, p->spans);
		out_grid_add(&grid, "%" PRIu32, p->threads);
		out_grid_add(&grid, "%" PRId32, p->pid);
		out_grid_add(&grid, "%s", text_of(p->name));
	}
	if (n > 1) {
		fputc('\n', to);
		out_grid_print(&grid, to);
	} else {
		for (size_t i = 0; i < grid.n_cells; i++)
			free(grid.cell[i]);
		free(grid.cell);
	}
	if (n > PROCESSES_MAX)
		fprintf(to, "  and %zu more processes (--json has all)\n", n - PROCESSES_MAX);
}

/* ---- the whole ---- */

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void print_head(FILE *to, const struct sum *sum, const char *file)
{
	char length[32];

	out_shown(to, file);
	fprintf(to, ": %" PRIu64 " span%s", sum->spans, plural(sum->spans));
	if (sum->spans)
		fprintf(to, " in %s",
			out_time((double)(sum->last_ns - sum->first_ns), length, sizeof(length)));
	if (sum->filtered)
		fprintf(to, "; %" PRIu64 " left out by the filter", sum->filtered);
	if (sum->command) {
		fputs("\nrecorded by: ", to);
		out_shown(to, sum->command);
	}
	fputs("\n\n", to);
}

void out_report(FILE *to, const struct sum *sum, const char *file)
{
	print_head(to, sum, file);
	print_functions(to, sum);
	if (sum->spans)
		print_threads(to, sum);
	print_processes(to, sum);
	out_report_cuda(to, sum);
	out_report_locks(to, sum);
	out_report_notices(to, sum);
}

static void print_missing(FILE *to, const struct sum *sum)
{
	const struct trace_reading *r = &sum->reading;

	if (r->ended && sum->end.lost)
		fprintf(to,
			"lost: %" PRIu64
			" call%s came faster than they could be recorded: no figure has them, "
			"but own times of their callers do\n",
			sum->end.lost, plural(sum->end.lost));
	if (r->ended && sum->end.filtered)
		fprintf(to, "filtered: %" PRIu64 " call%s left out when the trace was recorded\n",
			sum->end.filtered, sum->end.filtered == 1 ? " was" : "s were");
	if (r->ended && sum->end.spans != r->spans)
		fprintf(to,
			"missing: the trace ends with %" PRIu64 " spans, %" PRIu64 " were read\n",
			sum->end.spans, r->spans);
	if (*r->damage)
		fprintf(to, "damaged: %s, at byte %" PRIu64 "; what follows was not read\n",
			r->damage, r->bytes);
	else if (r->cut)
		fprintf(to,
			"cut off: the trace has no end; it was read up to byte %" PRIu64
			", and how many calls were lost is not known\n",
			r->bytes);
	if (r->skipped)
		fprintf(to, "skipped: %" PRIu64 " event%s that %s no span\n", r->skipped,
			plural(r->skipped), r->skipped == 1 ? "is" : "are");
	if (r->open)
		fprintf(to, "open: %" PRIu64 " call%s began and did not end in the trace\n",
			r->open, plural(r->open));
}

void out_report_notices(FILE *to, const struct sum *sum)
{
	char time[32];

	print_missing(to, sum);
	if (sum->crossing)
		fprintf(to,
			"crossing: %" PRIu64 " call%s of one thread overlap%s others without being "
			"made in them (coroutines); own times there are not exact\n",
			sum->crossing, plural(sum->crossing), sum->crossing == 1 ? "s" : "");
	if (sum->guessed)
		fprintf(to,
			"estimated: the own time of %" PRIu64 " call%s, which hold a part of very "
			"many calls\n",
			sum->guessed, plural(sum->guessed));
	if (sum->stacks.lost_ns)
		fprintf(to, "stacks: %s of own time is not shown: too many different stacks\n",
			out_time((double)sum->stacks.lost_ns, time, sizeof(time)));
}

/* ---- the slowest, the gaps ---- */

static const struct out_col slow_cols[] = {
	{ "took", OUT_FIGURE, 0 },   { "own", OUT_FIGURE, 2 }, { "at", OUT_FIGURE, 2 },
	{ "function", OUT_NAME, 2 }, { "in", OUT_NAME, 2 },    { "pid", OUT_FIGURE, 2 },
	{ "process", OUT_TEXT, 2 },  { "tid", OUT_FIGURE, 2 }, { "thread", OUT_TEXT, 2 },
	{ "values", OUT_TEXT, 2 },
};

static void add_values(struct out_grid *grid, const struct sum_slow *slow)
{
	char text[VALUE_MAX * (VALUE_NAME_SIZE + TEXT_QUOTE_SIZE) + 1], one[TEXT_QUOTE_SIZE];
	char *at = text;

	*at = '\0';
	for (uint32_t i = 0; i < slow->span.n_values; i++) {
		const struct trace_value *v = &slow->value[i];

		at = stpcpy(stpcpy(at, i ? " " : ""), v->name);
		at = stpcpy(stpcpy(at, "="),
			    !v->known		 ? "?" :
			    v->type == VALUE_STR ? text_quote(v->text, one, sizeof(one)) :
						   value_text(v->type, v->value, one, sizeof(one)));
	}
	out_grid_add(grid, "%s", slow->span.n_values ? text : "-");
}

static bool any_values(const struct sum *sum)
{
	for (size_t i = 0; i < sum->n_slow; i++)
		if (sum->slow[i].span.n_values)
			return true;
	return false;
}

/* Its callers as its stack had them, which need not be timed calls. */
static void print_stack(FILE *to, const struct sum *sum, const struct sum_slow *slow)
{
	char took[32];

	if (!slow->stack)
		return;
	fputs("\n", to);
	out_shown(to, function_of(sum, slow->span.function)->name);
	fprintf(to, " at %.6f, which took %s, was called by\n",
		(double)(slow->span.start_ns - sum->begin_ns) / 1e9,
		out_time((double)slow->span.dur_ns, took, sizeof(took)));
	for (uint32_t i = 0; i < slow->stack->n; i++) {
		fputs("  ", to);
		out_shown(to, slow->stack->frame[i]);
		fputc('\n', to);
	}
	if (!slow->stack->end)
		return;
	fputs("  ... ", to);
	out_shown(to, slow->stack->end);
	fputc('\n', to);
}

void out_report_slowest(FILE *to, const struct sum *sum)
{
	const bool values = any_values(sum);
	struct out_grid grid = { slow_cols, sizeof(slow_cols) / sizeof(*slow_cols) - !values, NULL,
				 0 };

	for (size_t i = 0; i < sum->n_slow; i++) {
		const struct sum_slow *slow = &sum->slow[i];
		const struct sum_thread *t = &sum->thread[slow->span.thread - 1];

		add_time(&grid, (double)slow->span.dur_ns);
		add_time(&grid, (double)slow->own_ns);
		add_since(&grid, sum, slow->span.start_ns);
		add_name(&grid, function_of(sum, slow->span.function), slow->span.kind);
		if (slow->caller)
			add_name(&grid, function_of(sum, slow->caller), slow->caller_kind);
		else
			out_grid_add(&grid, "-");
		out_grid_add(&grid, "%" PRId32, t->pid);
		out_grid_add(&grid, "%s", process_name(sum, t->pid));
		add_thread(&grid, t);
		if (values)
			add_values(&grid, slow);
	}
	if (!sum->n_slow)
		return;
	fprintf(to, "\nslowest (at: seconds since the trace began; in: the timed call that made "
		    "it):\n");
	out_grid_print(&grid, to);
	for (size_t i = 0; i < sum->n_slow; i++)
		print_stack(to, sum, &sum->slow[i]);
}

static const struct out_col gap_cols[] = {
	{ "lasted", OUT_FIGURE, 0 }, { "from", OUT_FIGURE, 2 },	 { "to", OUT_FIGURE, 2 },
	{ "pid", OUT_FIGURE, 2 },    { "process", OUT_TEXT, 2 }, { "tid", OUT_FIGURE, 2 },
	{ "thread", OUT_TEXT, 2 },
};

void out_report_gaps(FILE *to, const struct sum *sum)
{
	struct out_grid grid = { gap_cols, sizeof(gap_cols) / sizeof(*gap_cols), NULL, 0 };

	for (size_t i = 0; i < sum->n_gaps; i++) {
		const struct sum_gap *gap = &sum->gap[i];
		const struct sum_thread *t = &sum->thread[gap->thread - 1];

		add_time(&grid, (double)gap->dur_ns);
		add_since(&grid, sum, gap->start_ns);
		add_since(&grid, sum, gap->start_ns + gap->dur_ns);
		out_grid_add(&grid, "%" PRId32, t->pid);
		out_grid_add(&grid, "%s", process_name(sum, t->pid));
		add_thread(&grid, t);
	}
	fprintf(to, "\ngaps between calls of a thread%s\n", sum->n_gaps ? ":" : ": none");
	if (sum->n_gaps)
		out_grid_print(&grid, to);
}
