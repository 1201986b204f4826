/* SPDX-License-Identifier: MIT */
#include "sum.h"

#include <stdlib.h>
#include <string.h>
#include "callstack.h"
#include "nest.h"
#include "slowest.h"
#include "src/base/must.h"

enum {
	ROOTS = 32768, /* of a lane */
	ROOTS_ALL = 2 << 20,
	ROOTS_SHORT = 16, /* of a lane, where there are so many in all */
	BINNED_MAX = 4096,
};

struct sum *sum_new(const struct sum_options *options)
{
	struct sum *s = must_calloc(1, sizeof(*s));

	s->options = *options;
	s->slow = must_calloc(options->slowest + 1, sizeof(*s->slow));
	s->gap = must_calloc(options->gaps + 1, sizeof(*s->gap));
	s->bin_ns = 64;
	return s;
}

void sum_free(struct sum *s)
{
	kernels_free(&s->kernels);
	devices_free(&s->devices);
	lockorder_free(s->lockorder);
	for (unsigned int k = 0; k < SUM_APIS; k++)
		allocated_free(&s->allocated[k]);
	for (size_t i = 0; i < s->n_processes; i++)
		free(s->process[i].name);
	for (size_t i = 0; i < s->n_threads; i++) {
		free(s->thread[i].name);
		free(s->thread[i].bin);
		for (unsigned int k = 0; k < SUM_APIS; k++)
			free(s->thread[i].launch[k]);
		for (unsigned int k = 0; k < s->thread[i].n_lanes; k++)
			nest_free(&s->thread[i].lane[k]);
		if (s->thread[i].cover)
			nest_free(s->thread[i].cover);
		free(s->thread[i].cover);
		free(s->thread[i].lane);
	}
	for (size_t i = 0; i < s->n_functions; i++) {
		free(s->function[i].name);
		free(s->function[i].module);
		free(s->function[i].of[0]);
		free(s->function[i].of[1]);
	}
	free(s->process);
	free(s->thread);
	free(s->function);
	free(s->version);
	free(s->command);
	for (size_t i = 0; i < s->n_slow; i++)
		slowest_free(&s->slow[i]);
	free(s->slow);
	free(s->gap);
	stacks_free(&s->stacks);
	hist_free(&s->pool);
	idmap_free(&s->by_pid);
	free(s);
}

/* ---- declarations ---- */

static char *copy(const char *text)
{
	return text ? must_strdup(text) : NULL;
}

/* Room for entry i of an array whose entries come one by one. */
static void *room_for(void *array, size_t i, size_t size)
{
	return i & (i - 1) ? array : must_realloc(array, (i ? i * 2 : 1) * size);
}

static int on_about(void *ctx, const struct trace_about *about)
{
	struct sum *s = ctx;

	s->version = copy(about->version);
	s->command = copy(about->command);
	s->begin_ns = about->begin_ns;
	s->begin_unix_ns = about->begin_unix_ns;
	return 0;
}

static struct sum_process *process_of(const struct sum *s, int32_t pid)
{
	uint32_t i = idmap_get(&s->by_pid, (uint32_t)pid);

	return i ? &s->process[i - 1] : NULL;
}

const struct sum_process *sum_process(const struct sum *s, int32_t pid)
{
	return process_of(s, pid);
}

static int on_process(void *ctx, const struct trace_process *process)
{
	struct sum *s = ctx;
	struct sum_process *p = process_of(s, process->pid);

	if (!p) {
		s->process = room_for(s->process, s->n_processes, sizeof(*p));
		p = &s->process[s->n_processes++];
		*p = (struct sum_process){ .pid = process->pid };
		idmap_put(&s->by_pid, (uint32_t)process->pid, (uint32_t)s->n_processes);
	}
	free(p->name);
	p->name = copy(process->name);
	if (s->lockorder)
		lockorder_process(s->lockorder, process->pid);
	return 0;
}

static int on_thread(void *ctx, const struct trace_thread *thread)
{
	struct sum *s = ctx;
	struct sum_thread *t;

	if (thread->id > s->n_threads) {
		s->thread = room_for(s->thread, s->n_threads, sizeof(*t));
		t = &s->thread[s->n_threads++];
		*t = (struct sum_thread){ .id = thread->id, .pid = thread->pid };
	}
	t = &s->thread[thread->id - 1];
	free(t->name);
	t->name = copy(thread->name);
	t->tid = thread->tid;
	t->shown = trace_filter_thread(&s->options.filter, thread);
	return 0;
}

static bool is_off_cpu(const struct trace_function *function)
{
	return function->code == TRACE_KERNEL && function->name &&
	       !strncmp(function->name, TRACE_OFF_CPU, strlen(TRACE_OFF_CPU));
}

static int on_function(void *ctx, const struct trace_function *function)
{
	struct sum *s = ctx;
	enum lock_op lock = s->options.lock ? s->options.lock(function) : LOCK_NONE;

	if (lock != LOCK_NONE && !s->lockorder)
		s->lockorder = lockorder_new();
	s->function = room_for(s->function, s->n_functions, sizeof(*s->function));
	s->function[s->n_functions++] = (struct sum_function){
		.id = function->id,
		.shown = trace_filter_function(&s->options.filter, function),
		.code = function->code,
		.off_cpu = is_off_cpu(function),
		.lock = lock,
		.role = s->options.role ? s->options.role(function) : (struct sum_role){ 0 },
		.name = copy(function->name),
		.module = copy(function->module),
	};
	return 0;
}

static int on_end(void *ctx, const struct trace_end *end)
{
	((struct sum *)ctx)->end = *end;
	return 0;
}

/* ---- the timeline ---- */

/* Twice the width for each bin, to the right, or so that as much time before them has room. */
static void widen(struct sum *s, bool left)
{
	size_t at = left ? SUM_BINS / 2 : 0;

	for (size_t t = 0; t < s->n_threads; t++) {
		uint64_t *bin = s->thread[t].bin, half[SUM_BINS / 2];

		for (size_t i = 0; bin && i < SUM_BINS / 2; i++)
			half[i] = bin[2 * i] + bin[2 * i + 1];
		if (bin) {
			memset(bin, 0, SUM_BINS * sizeof(*bin));
			memcpy(bin + at, half, sizeof(half));
		}
	}
	s->bins_from_ns -= left ? (int64_t)(SUM_BINS * s->bin_ns) : 0;
	s->bin_ns *= 2;
}

/* Times are less than 2^62 (decl.c): they and their differences have a sign. */
static void add_bins(struct sum *s, struct sum_thread *t, uint64_t start, uint64_t end)
{
	uint64_t from, to;

	if (!s->options.timeline || end <= start)
		return;
	if (!s->n_binned)
		s->bins_from_ns = (int64_t)start;
	while ((int64_t)start < s->bins_from_ns)
		widen(s, true);
	from = start - (uint64_t)s->bins_from_ns;
	to = end - (uint64_t)s->bins_from_ns;
	while (to / SUM_BINS >= s->bin_ns)
		widen(s, false);
	if (!t->bin) {
		if (s->n_binned == BINNED_MAX)
			return;
		s->n_binned++;
		t->bin = must_calloc(SUM_BINS, sizeof(*t->bin));
	}
	for (uint64_t i = from / s->bin_ns; from < to; i++) {
		uint64_t next = (i + 1) * s->bin_ns < to ? (i + 1) * s->bin_ns : to;

		t->bin[i] += next - from;
		from = next;
	}
}

/* What a call covers beside the calls in it. A group's gaps are closed evenly. */
static void cover_gaps(struct sum *s, struct sum_thread *t, const struct nest *nest, size_t first,
		       uint64_t start, uint64_t end)
{
	for (size_t i = first; i < nest->n; i++) {
		add_bins(s, t, start, nest->root[i].start);
		start = nest->root[i].end;
	}
	if (start < end)
		add_bins(s, t, start, end);
}

/* Counted calls and the time in them: crossing ones become one. */
static void cover(struct sum *s, struct sum_thread *t, const struct trace_span *span, uint64_t end)
{
	struct nest_root root = {
		.start = span->start_ns, .end = end, .dur = span->dur_ns, .n = 1
	};
	struct nest *nest = t->cover = t->cover ? t->cover : must_calloc(1, sizeof(*nest));
	enum nest_fit fit;
	size_t first;

	fit = nest_fit(nest, span->start_ns, &first);
	if (nest->n > first && nest->root[nest->n - 1].end > root.end)
		root.end = nest->root[nest->n - 1].end;
	if (fit == NEST_FITS || !first || !nest->root) {
		cover_gaps(s, t, nest, first, root.start, root.end);
	} else {
		const struct nest_root *before = &nest->root[--first];

		if (before->end < root.end)
			cover_gaps(s, t, nest, first + 1, before->end, root.end);
		root.dur = before->dur + (root.end > before->end ? root.end - before->end : 0);
		root.start = before->start;
		root.end = root.end > before->end ? root.end : before->end;
		root.n = before->n;
	}
	s->roots -= nest->n;
	nest_put(nest, first, &root);
	nest_bound(nest, s->roots > ROOTS_ALL ? ROOTS_SHORT : ROOTS, NULL, NULL);
	s->roots += nest->n;
}

/* The first call that comes after another one and holds it is the one that made it. */
static void find_callers(struct sum *s, struct sum_thread *t, const struct trace_span *span,
			 unsigned int lane)
{
	uint64_t last = 0;

	if (!t->orphans || span->start_ns > t->orphan_last)
		return;
	for (size_t i = 0; i < s->n_slow; i++) {
		struct sum_slow *slow = &s->slow[i];

		if (!slow->orphan || slow->span.thread != span->thread)
			continue;
		if (slow->lane == lane && slow->span.start_ns >= span->start_ns) {
			slow->orphan = false;
			slow->caller = span->function;
			slow->caller_kind = span->kind;
			t->orphans--;
		} else if (slow->span.start_ns > last) {
			last = slow->span.start_ns;
		}
	}
	t->orphan_last = last;
}

/* ---- spans ---- */

static void merge_trees(struct nest_root *into, const struct nest_root *from, void *ctx)
{
	stacks_join(ctx, &into->tree, from->tree);
}

static unsigned int choose_lane(struct sum_thread *t, uint64_t start, enum nest_fit *fit,
				size_t *first)
{
	for (unsigned int i = 0; i < t->n_lanes; i++) {
		*fit = nest_fit(&t->lane[i], start, first);
		if (*fit != NEST_CROSSES)
			return i;
	}
	*fit = NEST_FITS;
	*first = 0;
	if (t->n_lanes < SUM_LANES) {
		t->lane = must_realloc(t->lane, (t->n_lanes + 1) * sizeof(*t->lane));
		t->lane[t->n_lanes++] = (struct nest){ 0 };
		return t->n_lanes - 1;
	}
	return SUM_LANES;
}

static uint32_t tree_of(struct sum *s, const struct trace_span *span, uint64_t own, bool counted)
{
	uint32_t key = span->function * 2 + (span->kind == TRACE_DELAY);

	return s->options.stacks ? stacks_new(&s->stacks, key, counted ? own : 0) : 0;
}

/* Puts the calls made in it into a call. Returns their durations. */
static uint64_t take_calls(struct sum *s, struct nest *nest, size_t first, enum nest_fit fit,
			   struct nest_root *root)
{
	uint64_t inner = 0;

	if (fit == NEST_GUESSED) {
		struct nest_root part = nest_part(nest, first, root->start);

		inner = part.dur;
		root->launches = part.launches;
		root->owed = part.owed;
		s->guessed++;
	}
	for (size_t i = first; i < nest->n; i++) {
		inner += nest->root[i].dur;
		root->launches += nest->root[i].launches;
		root->owed += nest->root[i].owed;
		if (nest->root[i].end > root->end)
			root->end = nest->root[i].end;
	}
	return inner;
}

/*
 * Launches belong to the innermost Python function above them, and are within all of those above. A
 * launch in another one, as of the driver's API in one of the runtime's, is the same launch.
 */
static void caused(struct sum *s, const struct trace_span *span, bool counted,
		   struct nest_root *root)
{
	struct sum_function *f = &s->function[span->function - 1];
	bool launch = f->role.known && f->role.role == LAUNCH_CALL;

	if (!counted || span->kind != TRACE_CALL)
		return;
	if (launch && root->owed == root->launches) {
		s->caused.launches -= root->launches;
		s->caused.launches++;
		root->launches = root->owed = 1;
	}
	if (f->code != TRACE_PYTHON)
		return;
	f->launches_within += root->launches;
	f->launches_own += root->owed;
	s->caused.python += root->owed;
	root->owed = 0;
}

static void take_trees(struct sum *s, const struct nest *nest, size_t first, uint32_t tree)
{
	for (size_t i = first; s->options.stacks && i < nest->n; i++)
		if (nest->root[i].tree)
			stacks_take(&s->stacks, tree, nest->root[i].tree);
}

/* Nests a call. Returns its own time; root gets its end with all calls in it. */
static uint64_t nest_span(struct sum *s, struct sum_thread *t, const struct trace_span *span,
			  bool counted, unsigned int *lane, uint64_t *end)
{
	struct nest_root root = { .start = span->start_ns, .dur = span->dur_ns, .n = 1 };
	enum nest_fit fit;
	struct nest *nest;
	uint64_t inner, own;
	size_t first;

	root.end = root.start + root.dur;
	*lane = choose_lane(t, root.start, &fit, &first);
	*end = root.end;
	s->crossing += *lane > 0;
	if (*lane == SUM_LANES) { /* by itself */
		uint32_t tree = tree_of(s, span, root.dur, counted);

		caused(s, span, counted, &root);
		s->caused.none += root.owed;
		stacks_join(&s->stacks, &s->stack_list, tree);
		return root.dur;
	}
	nest = &t->lane[*lane];
	inner = take_calls(s, nest, first, fit, &root);
	own = root.dur > inner ? root.dur - inner : 0;
	root.covered = root.end - root.start;
	caused(s, span, counted, &root);
	root.tree = tree_of(s, span, own, counted);
	take_trees(s, nest, first, root.tree);
	*end = root.end;
	s->roots -= nest->n;
	nest_put(nest, first, &root);
	nest_bound(nest, s->roots > ROOTS_ALL ? ROOTS_SHORT : ROOTS,
		   s->options.stacks ? merge_trees : NULL, &s->stacks);
	s->roots += nest->n;
	return own;
}

static void add_times(struct sum *s, const struct trace_span *span, uint64_t own)
{
	struct sum_times **at = &s->function[span->function - 1].of[span->kind], *times;

	if (!*at) {
		*at = must_calloc(1, sizeof(**at));
		(*at)->min_ns = UINT64_MAX;
	}
	times = *at;
	times->n++;
	times->total_ns += span->dur_ns;
	times->own_ns += own;
	times->min_ns = span->dur_ns < times->min_ns ? span->dur_ns : times->min_ns;
	times->max_ns = span->dur_ns > times->max_ns ? span->dur_ns : times->max_ns;
	hist_add(&s->pool, &times->hist, span->dur_ns);
}

static void add_range(uint64_t *first, uint64_t *last, bool any, uint64_t start, uint64_t end)
{
	*first = any && *first < start ? *first : start;
	*last = any && *last > end ? *last : end;
}

static void add_wait(struct sum *s, const struct trace_span *span)
{
	size_t i = s->n_waits;

	if (i == SUM_WAITS && s->wait[i - 1].dur_ns >= span->dur_ns)
		return;
	i -= i == SUM_WAITS;
	for (; i && s->wait[i - 1].dur_ns < span->dur_ns; i--)
		s->wait[i] = s->wait[i - 1];
	s->wait[i] = (struct sum_wait){ span->thread, span->function, span->start_ns,
					span->dur_ns };
	s->n_waits += s->n_waits < SUM_WAITS;
}

/* What is known of functions of an API: launches, waits, and what they returned. */
static void add_launch(struct sum *s, struct sum_thread *t, const struct trace_span *span)
{
	const struct sum_role *role = &s->function[span->function - 1].role;
	struct launch **launch = &t->launch[role->api];

	if (!role->known || span->kind != TRACE_CALL)
		return;
	returns_add(&s->returned, span);
	allocated_add(&s->allocated[role->api], t->pid, span);
	copies_add(&s->copies[role->api], s->function[span->function - 1].name, span);
	if (role->role == LAUNCH_NONE)
		return;
	if (role->role == LAUNCH_WAIT)
		add_wait(s, span);
	else
		kernels_add(&s->kernels, t->pid, role->api, span);
	if (!*launch)
		*launch = must_calloc(1, sizeof(**launch));
	launch_add(*launch, &s->pool, role->role, span->start_ns, span->dur_ns);
}

static int on_span(void *ctx, const struct trace_span *in)
{
	struct sum *s = ctx;
	struct sum_thread *t = &s->thread[in->thread - 1];
	struct trace_span span = *in;
	uint64_t own, end;
	unsigned int lane;
	bool counted;

	if (span.dur_ns > UINT64_MAX - span.start_ns)
		span.dur_ns = UINT64_MAX - span.start_ns;
	/* The filters would leave holes in what a thread holds. */
	if (s->lockorder)
		lockorder_call(s->lockorder, s->function[span.function - 1].lock, t->pid,
			       t->tid != 0, &span);
	counted = t->shown && s->function[span.function - 1].shown &&
		  trace_filter_time(&s->options.filter, span.start_ns - s->begin_ns);
	s->filtered += !counted;
	if (!t->shown)
		return 0;
	own = nest_span(s, t, &span, counted, &lane, &end);
	find_callers(s, t, &span, lane);
	if (!counted)
		return 0;
	add_times(s, &span, own);
	slowest_add(s, t, &span, own, lane);
	add_launch(s, t, &span);
	if (s->function[span.function - 1].code == TRACE_DEVICE)
		devices_add(&s->devices, t->pid, s->function[span.function - 1].module,
			    s->function[span.function - 1].name, &span);
	if (s->function[span.function - 1].off_cpu) {
		s->off_cpu = true;
		t->off_cpu_ns += span.dur_ns;
	} else {
		cover(s, t, &span, end);
	}
	add_range(&s->first_ns, &s->last_ns, s->spans, span.start_ns, end);
	add_range(&t->first_ns, &t->last_ns, t->spans, span.start_ns, end);
	s->spans++;
	t->spans++;
	return 0;
}

/* ---- the end ---- */

static void add_gap(struct sum *s, const struct sum_gap *gap)
{
	size_t i = s->n_gaps;

	if (gap->dur_ns < s->options.gap_min_ns || !s->options.gaps)
		return;
	if (i == s->options.gaps && s->gap[i - 1].dur_ns >= gap->dur_ns)
		return;
	i -= i == s->options.gaps;
	for (; i && s->gap[i - 1].dur_ns < gap->dur_ns; i--)
		s->gap[i] = s->gap[i - 1];
	s->gap[i] = *gap;
	s->n_gaps += s->n_gaps < s->options.gaps;
}

static void finish_thread(struct sum *s, struct sum_thread *t)
{
	const struct nest *nest = t->cover;
	struct sum_process *p = process_of(s, t->pid);

	for (size_t i = 0; nest && i < nest->n; i++) {
		t->in_calls_ns += nest->root[i].dur;
		if (i)
			add_gap(s,
				&(struct sum_gap){ t->id, nest->root[i - 1].end,
						   nest->root[i].start - nest->root[i - 1].end });
	}
	for (unsigned int i = 0; i < SUM_APIS; i++)
		if (t->launch[i])
			launch_finish(t->launch[i], &s->pool);
	if (nest && nest->closed > s->gaps_closed_ns)
		s->gaps_closed_ns = nest->closed;
	for (unsigned int i = 0; i < t->n_lanes; i++)
		for (size_t k = 0; k < t->lane[i].n; k++) {
			s->caused.none += t->lane[i].root[k].owed;
			if (s->options.stacks)
				stacks_join(&s->stacks, &s->stack_list, t->lane[i].root[k].tree);
		}
	if (!p || !t->spans)
		return;
	p->threads++;
	p->spans += t->spans;
	p->in_calls_ns += t->in_calls_ns;
	p->off_cpu_ns += t->off_cpu_ns;
}

/* NULL: all calls are in the trace. */
static const char *calls_missing(const struct sum *s)
{
	const struct trace_reading *r = &s->reading;

	return *r->damage || r->cut || !r->ended ? "the trace has no end, so calls may be missing" :
	       s->end.lost			 ? "calls were lost when the trace was recorded" :
	       s->end.filtered		? "calls were left out when the trace was recorded" :
	       s->end.spans != r->spans ? "the trace has not all of its calls" :
					  NULL;
}

int sum_read(struct sum *s, int fd, const char *name, struct sb_err *err)
{
	static const struct trace_sink sink = {
		.about = on_about,
		.process = on_process,
		.thread = on_thread,
		.function = on_function,
		.span = on_span,
		.end = on_end,
	};
	int ret = trace_read(fd, name, &sink, s, &s->reading, err);

	for (size_t i = 0; i < s->n_threads; i++)
		finish_thread(s, &s->thread[i]);
	if (s->lockorder)
		lockorder_finish(s->lockorder, calls_missing(s));
	for (unsigned int k = 0; k < SUM_APIS; k++)
		allocated_finish(&s->allocated[k]);
	devices_finish(&s->devices);
	slowest_sort(s);
	if (s->options.stacks)
		stacks_total(&s->stacks, &s->stack_list);
	return ret;
}

double sum_quantile(const struct sum *s, const struct sum_times *times, double q)
{
	uint64_t rank = (uint64_t)(q * (double)times->n), ns;

	rank += (double)rank < q * (double)times->n;
	if (times->hist.incomplete || !times->n)
		return -1;
	ns = hist_rank(&s->pool, &times->hist, rank ? rank : 1);
	ns = ns < times->min_ns ? times->min_ns : ns;
	return (double)(ns > times->max_ns ? times->max_ns : ns);
}
