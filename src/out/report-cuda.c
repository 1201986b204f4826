/* SPDX-License-Identifier: MIT */
#include "report-cuda.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "device.h"
#include "grid.h"
#include "out.h"
#include "report-caused.h"
#include "src/base/json.h"
#include "src/base/must.h"
#include "src/result/device.h"

enum { THREADS_MAX = 20, KERNELS_SHOWN = 20 };

static const char *const apis[SUM_APIS] = { "cuda", "cudart" };

/* The threads of one API that have launches or waits. */
struct row {
	const struct sum_thread *thread;
	const struct launch *l;
	const char *api;
};

static int most_launches_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->l->launches != y->l->launches)
		return x->l->launches < y->l->launches ? 1 : -1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->api > y->api) - (x->api < y->api);
}

/* The caller frees. */
static struct row *rows_of(const struct sum *sum, size_t *n)
{
	struct row *row = must_calloc(sum->n_threads * SUM_APIS + 1, sizeof(*row));

	*n = 0;
	for (size_t i = 0; i < sum->n_threads; i++)
		for (unsigned int k = 0; k < SUM_APIS; k++)
			if (sum->thread[i].launch[k])
				row[(*n)++] = (struct row){ &sum->thread[i],
							    sum->thread[i].launch[k], apis[k] };
	qsort(row, *n, sizeof(*row), most_launches_first);
	return row;
}

/* Why gaps are not known: a launch that the trace lacks would make two of them one. */
static const char *gaps_unknown(const struct sum *sum)
{
	return !sum->reading.ended ? "the trace has no end, so calls may be missing" :
	       sum->end.lost	   ? "calls were lost when the trace was recorded" :
	       sum->end.filtered   ? "calls were left out when the trace was recorded" :
				     NULL;
}

static double wait_share(const struct launch *l)
{
	uint64_t ns = l->last_ns - l->first_ns;

	return l->wait.n && ns ? (double)l->wait.total_ns / (double)ns : -1;
}

/* ---- text ---- */

static const struct out_col cols[] = {
	{ "launches", OUT_FIGURE, 0 }, { "gap p50", OUT_FIGURE, 2 }, { "p90", OUT_FIGURE, 1 },
	{ "max", OUT_FIGURE, 1 },      { "total", OUT_FIGURE, 1 },   { "in waits", OUT_FIGURE, 1 },
	{ "waits", OUT_FIGURE, 2 },    { "waited", OUT_FIGURE, 1 },  { "share", OUT_FIGURE, 1 },
	{ "longest", OUT_FIGURE, 1 },  { "of", OUT_TEXT, 2 },	     { "pid", OUT_FIGURE, 2 },
	{ "tid", OUT_FIGURE, 2 },      { "thread", OUT_TEXT, 2 },
};

static void add_time(struct out_grid *grid, bool known, double ns)
{
	char buf[32];

	out_grid_add(grid, "%s", known && ns >= 0 ? out_time(ns, buf, sizeof(buf)) : "-");
}

static const char *text_of(const char *text)
{
	return text ? text : "-";
}

static void add_tid(struct out_grid *grid, const struct sum_thread *t)
{
	if (t->tid)
		out_grid_add(grid, "%" PRId32, t->tid);
	else
		out_grid_add(grid, "-");
}

static void add_row(struct out_grid *grid, const struct sum *sum, const struct row *r, bool gaps)
{
	const struct launch *l = r->l;
	bool any = gaps && l->gap.n;
	double share = wait_share(l);

	out_grid_add(grid, "%" PRIu64, l->launches);
	add_time(grid, any, launch_quantile(&sum->pool, &l->gap, 0.5));
	add_time(grid, any, launch_quantile(&sum->pool, &l->gap, 0.9));
	add_time(grid, any, (double)l->gap.max_ns);
	add_time(grid, any, (double)l->gap.total_ns);
	add_time(grid, any, (double)l->gap_wait_ns);
	out_grid_add(grid, "%" PRIu64, l->wait.n);
	add_time(grid, l->wait.n, (double)l->wait.total_ns);
	if (share < 0)
		out_grid_add(grid, "-");
	else
		out_grid_add(grid, "%.1f%%", share * 100);
	add_time(grid, l->wait.n, (double)l->wait.max_ns);
	out_grid_add(grid, "%s", r->api);
	out_grid_add(grid, "%" PRId32, r->thread->pid);
	add_tid(grid, r->thread);
	out_grid_add(grid, "%s", text_of(r->thread->name));
}

static const struct out_col wait_cols[] = {
	{ "waited", OUT_FIGURE, 0 }, { "at", OUT_FIGURE, 2 },  { "function", OUT_NAME, 2 },
	{ "pid", OUT_FIGURE, 2 },    { "tid", OUT_FIGURE, 2 }, { "thread", OUT_TEXT, 2 },
};

static void print_waits(FILE *to, const struct sum *sum)
{
	struct out_grid grid = { wait_cols, sizeof(wait_cols) / sizeof(*wait_cols), NULL, 0 };

	for (size_t i = 0; i < sum->n_waits; i++) {
		const struct sum_wait *w = &sum->wait[i];
		const struct sum_thread *t = &sum->thread[w->thread - 1];

		add_time(&grid, true, (double)w->dur_ns);
		out_grid_add(&grid, "%.6f", (double)(w->start_ns - sum->begin_ns) / 1e9);
		out_grid_add(&grid, "%s", text_of(sum->function[w->function - 1].name));
		out_grid_add(&grid, "%" PRId32, t->pid);
		add_tid(&grid, t);
		out_grid_add(&grid, "%s", text_of(t->name));
	}
	if (!sum->n_waits)
		return;
	fputs("\nlongest waits (at: seconds since the trace began):\n", to);
	out_grid_print(&grid, to);
}

static const struct out_col kernel_cols[] = {
	{ "launches", OUT_FIGURE, 0 }, { "host time", OUT_FIGURE, 2 }, { "kernel", OUT_FIGURE, 2 },
	{ "of", OUT_TEXT, 2 },	       { "pid", OUT_FIGURE, 2 },       { "name", OUT_NAME, 2 },
};

static int most_launched_first(const void *a, const void *b)
{
	const struct kernels_row *x = a, *y = b;

	if (x->launches != y->launches)
		return x->launches < y->launches ? 1 : -1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->handle > y->handle) - (x->handle < y->handle);
}

/* The caller frees. */
static struct kernels_row *kernels_of(const struct sum *sum)
{
	const struct kernels *k = &sum->kernels;
	struct kernels_row *row = must_calloc(k->n + 1, sizeof(*row));

	memcpy(row, k->row, k->n * sizeof(*row));
	qsort(row, k->n, sizeof(*row), most_launched_first);
	return row;
}

static void print_kernels(FILE *to, const struct sum *sum)
{
	struct out_grid grid = { kernel_cols, sizeof(kernel_cols) / sizeof(*kernel_cols), NULL, 0 };
	const struct kernels *k = &sum->kernels;
	struct kernels_row *row = kernels_of(sum);

	for (size_t i = 0; i < k->n && i < KERNELS_SHOWN; i++) {
		out_grid_add(&grid, "%" PRIu64, row[i].launches);
		add_time(&grid, true, (double)row[i].total_ns);
		out_grid_add(&grid, "0x%" PRIx64, row[i].handle);
		out_grid_add(&grid, "%s", apis[row[i].api]);
		out_grid_add(&grid, "%" PRId32, row[i].pid);
		out_grid_add(&grid, "%s", text_of(row[i].name));
	}
	free(row);
	if (!k->n)
		return;
	fputs("\nlaunches by kernel (its handle, or the address of its function in the program; "
	      "its name, where the trace has it):\n",
	      to);
	out_grid_print(&grid, to);
	if (k->n > KERNELS_SHOWN)
		fprintf(to, "  and %zu more kernels (--json has them)\n", k->n - KERNELS_SHOWN);
	if (k->others)
		fprintf(to, "  and %" PRIu64 " launches of further kernels\n", k->others);
	if (k->unknown)
		fprintf(to, "  and %" PRIu64 " launches of kernels that were not recorded\n",
			k->unknown);
}

static const struct out_col error_cols[] = {
	{ "calls", OUT_FIGURE, 0 },
	{ "code", OUT_FIGURE, 2 },
	{ "result", OUT_TEXT, 2 },
	{ "function", OUT_NAME, 2 },
};

static const char *result_name(const struct sum *sum, const struct returns_row *r)
{
	unsigned int api = sum->function[r->function - 1].role.api;

	return sum->options.result_name ? sum->options.result_name(api, r->code) : NULL;
}

static int most_calls_first(const void *a, const void *b)
{
	const struct returns_row *x = a, *y = b;

	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return (x->code > y->code) - (x->code < y->code);
}

/* The caller frees. */
static struct returns_row *errors_of(const struct sum *sum)
{
	const struct returns *r = &sum->returned;
	struct returns_row *row = must_calloc(r->n + 1, sizeof(*row));

	memcpy(row, r->row, r->n * sizeof(*row));
	qsort(row, r->n, sizeof(*row), most_calls_first);
	return row;
}

static void print_errors(FILE *to, const struct sum *sum)
{
	struct out_grid grid = { error_cols, sizeof(error_cols) / sizeof(*error_cols), NULL, 0 };
	const struct returns *r = &sum->returned;
	struct returns_row *row = errors_of(sum);

	for (size_t i = 0; i < r->n; i++) {
		out_grid_add(&grid, "%" PRIu64, row[i].calls);
		out_grid_add(&grid, "%" PRId64, row[i].code);
		out_grid_add(&grid, "%s", text_of(result_name(sum, &row[i])));
		out_grid_add(&grid, "%s", text_of(sum->function[row[i].function - 1].name));
	}
	free(row);
	if (!r->failed)
		return;
	fprintf(to, "\nerrors: %" PRIu64 " of %" PRIu64 " calls returned another code than 0:\n",
		r->failed, r->known);
	out_grid_print(&grid, to);
	if (r->others)
		fprintf(to, "  and %" PRIu64 " more calls, with further codes\n", r->others);
}

static const struct out_col copy_cols[] = {
	{ "copies", OUT_FIGURE, 0 },  { "bytes", OUT_FIGURE, 2 }, { "host time", OUT_FIGURE, 2 },
	{ "direction", OUT_TEXT, 2 }, { "of", OUT_TEXT, 2 },
};

static void print_copies(FILE *to, const struct sum *sum)
{
	struct out_grid grid = { copy_cols, sizeof(copy_cols) / sizeof(*copy_cols), NULL, 0 };
	bool any = false;

	for (unsigned int k = 0; k < SUM_APIS; k++) {
		for (unsigned int d = 0; d < COPIES_DIRECTIONS; d++) {
			const struct copies_sum *c = &sum->copies[k].of[d];

			if (!c->n)
				continue;
			any = true;
			out_grid_add(&grid, "%" PRIu64, c->n);
			if (c->unsized)
				out_grid_add(&grid, "-");
			else
				out_grid_add(&grid, "%" PRIu64, c->bytes);
			add_time(&grid, true, (double)c->total_ns);
			out_grid_add(&grid, "%s", copies_name(d));
			out_grid_add(&grid, "%s", apis[k]);
		}
	}
	if (!any)
		return;
	fputs("\ncopies by direction, as far as the call says it:\n", to);
	out_grid_print(&grid, to);
}

/* Why what is in use is not known; NULL: it is. */
static const char *memory_unknown(const struct sum *sum, const struct allocated *a)
{
	return gaps_unknown(sum) ? gaps_unknown(sum) :
	       a->too_many	 ? "there are too many allocations" :
	       a->unknown	 ? "the address, size or result of a call is not known" :
				   NULL;
}

static void print_memory(FILE *to, const struct sum *sum)
{
	for (unsigned int k = 0; k < SUM_APIS; k++) {
		const struct allocated *a = &sum->allocated[k];
		const char *why = memory_unknown(sum, a);

		if (!a->n && !a->unknown)
			continue;
		fprintf(to, "\nmemory (%s): ", apis[k]);
		if (why) {
			fprintf(to, "what is in use is not known: %s\n", why);
			continue;
		}
		fprintf(to,
			"%" PRIu64 " allocations of %" PRIu64 " bytes, %" PRIu64 " freed (%" PRIu64
			" bytes); in use at the end %" PRIu64 " bytes, at most %" PRIu64 "\n",
			a->allocations, a->bytes, a->frees - a->older, a->freed_bytes,
			a->live_bytes, a->peak_bytes);
		if (a->older)
			fprintf(to, "  and %" PRIu64 " freed that the trace does not know\n",
				a->older);
	}
}

/* What devices did, as far as it is in the trace. The caller frees it. */
static struct result_device device_of(const struct sum *sum)
{
	const struct devices *d = &sum->devices;
	struct result_device out = { .asked = d->kernels.n || d->copies.n || d->memsets.n };

	out.known = out.asked && sum->reading.ended;
	if (out.asked && !out.known)
		out.reason = must_strdup("the trace has no end, so records may be missing");
	if (out.known)
		out_device_fill(&out, d);
	return out;
}

static void print_device(FILE *to, const struct sum *sum)
{
	struct result_device d = device_of(sum);

	if (d.asked)
		fputc('\n', to);
	out_device(to, &d);
	result_device_free(&d);
}

void out_report_cuda(FILE *to, const struct sum *sum)
{
	struct out_grid grid = { cols, sizeof(cols) / sizeof(*cols), NULL, 0 };
	const char *why = gaps_unknown(sum);
	uint64_t unsure = 0;
	size_t n;
	struct row *row = rows_of(sum, &n);

	for (size_t i = 0; i < n; i++) {
		unsure += row[i].l->unsure;
		if (i < THREADS_MAX)
			add_row(&grid, sum, &row[i], !why);
	}
	if (n) {
		fputs("\nlaunches by thread (gap: from the end of one to the begin of the next; "
		      "share: "
		      "waited, of the time from the first launch or wait to the last):\n",
		      to);
		out_grid_print(&grid, to);
	}
	if (n > THREADS_MAX)
		fprintf(to, "  and %zu more rows (--json has all)\n", n - THREADS_MAX);
	if (n && why)
		fprintf(to, "gaps between launches are not known: %s\n", why);
	if (unsure)
		fprintf(to,
			"overlapping: %" PRIu64
			" launches or waits began before another one of the thread had ended: gaps "
			"there are not exact\n",
			unsure);
	free(row);
	out_report_caused(to, sum);
	print_kernels(to, sum);
	print_copies(to, sum);
	print_memory(to, sum);
	print_waits(to, sum);
	print_errors(to, sum);
	print_device(to, sum);
}

/* ---- JSON ---- */

static json_t *number(uint64_t n)
{
	return json_must(json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n));
}

static json_t *quantile(const struct sum *sum, const struct launch_sum *s, double q)
{
	double ns = launch_quantile(&sum->pool, s, q);

	return ns < 0 ? json_null() : json_must(json_integer((json_int_t)ns));
}

static json_t *sum_json(const struct sum *sum, const struct launch_sum *s)
{
	json_t *o = json_must(json_object());

	json_put(o, "n", number(s->n));
	json_put(o, "total_ns", number(s->total_ns));
	json_put(o, "p50_ns", quantile(sum, s, 0.5));
	json_put(o, "p90_ns", quantile(sum, s, 0.9));
	json_put(o, "max_ns", s->n ? number(s->max_ns) : json_null());
	return o;
}

static void put_thread(json_t *o, const struct sum_thread *t)
{
	json_put(o, "pid", json_must(json_integer(t->pid)));
	json_put(o, "tid", t->tid ? json_must(json_integer(t->tid)) : json_null());
	json_put(o, "thread", json_name(t->name));
}

static json_t *row_json(const struct sum *sum, const struct row *r, const char *gaps_why)
{
	const struct sum_thread *t = r->thread;
	double share = wait_share(r->l);
	json_t *o = json_must(json_object()), *gaps;

	json_put(o, "preset", json_must(json_string(r->api)));
	put_thread(o, t);
	json_put(o, "launches", number(r->l->launches));
	gaps = gaps_why ? json_null() : sum_json(sum, &r->l->gap);
	if (!gaps_why)
		json_put(gaps, "waited_ns", number(r->l->gap_wait_ns));
	json_put(o, "gaps", gaps);
	if (gaps_why)
		json_put(o, "gaps_reason", json_must(json_string(gaps_why)));
	json_put(o, "syncs", sum_json(sum, &r->l->wait));
	json_put(o, "sync_share", share < 0 ? json_null() : json_must(json_real(share)));
	if (share < 0)
		json_put(o, "sync_share_reason",
			 json_must(json_string("the trace has no wait of this thread")));
	json_put(o, "overlapping", number(r->l->unsure));
	return o;
}

static json_t *waits_json(const struct sum *sum)
{
	json_t *list = json_must(json_array());

	for (size_t i = 0; i < sum->n_waits; i++) {
		const struct sum_wait *w = &sum->wait[i];
		json_t *o = json_must(json_object());

		json_put(o, "function", json_name(sum->function[w->function - 1].name));
		json_put(o, "start_ns", number(w->start_ns - sum->begin_ns));
		json_put(o, "dur_ns", number(w->dur_ns));
		put_thread(o, &sum->thread[w->thread - 1]);
		json_add(list, o);
	}
	return list;
}

static json_t *kernels_json(const struct sum *sum)
{
	json_t *list = json_must(json_array());
	struct kernels_row *row = kernels_of(sum);
	char handle[VALUE_TEXT_SIZE];

	for (size_t i = 0; i < sum->kernels.n; i++) {
		json_t *o = json_must(json_object());

		value_text(VALUE_PTR, row[i].handle, handle, sizeof(handle));
		json_put(o, "preset", json_must(json_string(apis[row[i].api])));
		json_put(o, "pid", json_must(json_integer(row[i].pid)));
		json_put(o, "kernel", json_must(json_string(handle)));
		json_put(o, "name", json_name(row[i].name));
		json_put(o, "launches", number(row[i].launches));
		json_put(o, "total_ns", number(row[i].total_ns));
		json_add(list, o);
	}
	free(row);
	return list;
}

static json_t *by_name_json(const struct sum *sum)
{
	json_t *list = json_must(json_array());
	size_t n;
	struct kernels_name *name = kernels_by_name(&sum->kernels, &n);

	for (size_t i = 0; i < n; i++) {
		json_t *o = json_must(json_object());

		json_put(o, "preset", json_must(json_string(apis[name[i].api])));
		json_put(o, "name", json_name(name[i].name));
		json_put(o, "launches", number(name[i].launches));
		json_put(o, "total_ns", number(name[i].total_ns));
		json_put(o, "handles", number(name[i].handles));
		json_add(list, o);
	}
	free(name);
	return list;
}

static json_t *errors_json(const struct sum *sum)
{
	json_t *list = json_must(json_array());
	struct returns_row *row = errors_of(sum);

	for (size_t i = 0; i < sum->returned.n; i++) {
		const struct sum_function *f = &sum->function[row[i].function - 1];
		json_t *o = json_must(json_object());

		json_put(o, "preset", json_must(json_string(apis[f->role.api])));
		json_put(o, "function", json_name(f->name));
		json_put(o, "code", json_must(json_integer((json_int_t)row[i].code)));
		json_put(o, "name", json_name(result_name(sum, &row[i])));
		json_put(o, "calls", number(row[i].calls));
		json_add(list, o);
	}
	free(row);
	return list;
}

static json_t *copies_json(const struct sum *sum)
{
	json_t *list = json_must(json_array());

	for (unsigned int k = 0; k < SUM_APIS; k++) {
		for (unsigned int d = 0; d < COPIES_DIRECTIONS; d++) {
			const struct copies_sum *c = &sum->copies[k].of[d];
			json_t *o;

			if (!c->n)
				continue;
			o = json_must(json_object());
			json_put(o, "preset", json_must(json_string(apis[k])));
			json_put(o, "direction", json_must(json_string(copies_name(d))));
			json_put(o, "copies", number(c->n));
			json_put(o, "bytes", c->unsized ? json_null() : number(c->bytes));
			json_put(o, "total_ns", number(c->total_ns));
			json_add(list, o);
		}
	}
	return list;
}

static json_t *memory_json(const struct sum *sum)
{
	json_t *list = json_must(json_array());

	for (unsigned int k = 0; k < SUM_APIS; k++) {
		const struct allocated *a = &sum->allocated[k];
		const char *why = memory_unknown(sum, a);
		json_t *o;

		if (!a->n && !a->unknown)
			continue;
		o = json_must(json_object());
		json_put(o, "preset", json_must(json_string(apis[k])));
		json_put(o, "allocations", why ? json_null() : number(a->allocations));
		json_put(o, "allocated_bytes", why ? json_null() : number(a->bytes));
		json_put(o, "frees", why ? json_null() : number(a->frees));
		json_put(o, "freed_bytes", why ? json_null() : number(a->freed_bytes));
		json_put(o, "frees_unknown", why ? json_null() : number(a->older));
		json_put(o, "live_bytes", why ? json_null() : number(a->live_bytes));
		json_put(o, "peak_bytes", why ? json_null() : number(a->peak_bytes));
		if (why)
			json_put(o, "reason", json_must(json_string(why)));
		json_add(list, o);
	}
	return list;
}

json_t *out_report_cuda_json(const struct sum *sum)
{
	const struct returns *r = &sum->returned;
	struct result_device device = device_of(sum);
	size_t n;
	struct row *row = rows_of(sum, &n);
	json_t *o = NULL, *list = json_must(json_array());

	for (size_t i = 0; i < n; i++)
		json_add(list, row_json(sum, &row[i], gaps_unknown(sum)));
	free(row);
	if (!n && !r->known && !device.asked) {
		json_decref(list);
		return NULL;
	}
	o = json_must(json_object());
	json_put(o, "threads", list);
	json_put(o, "kernels", kernels_json(sum));
	json_put(o, "launches_by_name", by_name_json(sum));
	json_put(o, "kernels_left_out", number(sum->kernels.others));
	json_put(o, "kernels_unknown", number(sum->kernels.unknown));
	out_report_caused_put(o, sum);
	json_put(o, "copies", copies_json(sum));
	json_put(o, "memory", memory_json(sum));
	json_put(o, "longest_syncs", waits_json(sum));
	json_put(o, "results", number(r->known));
	json_put(o, "failed", number(r->failed));
	json_put(o, "errors", errors_json(sum));
	json_put(o, "errors_left_out", number(r->others));
	result_device_put(o, &device);
	result_device_free(&device);
	return o;
}
