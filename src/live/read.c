/* SPDX-License-Identifier: MIT */
#include "read.h"
#include "src/base/json.h"
#include "src/base/must.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "elf/module.h"
#include "inject/clock.h"

struct role {
	pid_t pid;
	bool hands_on;
	char name[64];
};

struct sweep_reader {
	struct sweep_job *job;
	struct client *client;
	size_t n_all;
	struct role *role; /* a process keeps its first role */
	size_t n_roles;
};

struct sweep_reader *sweep_reader_new(struct sweep_job *job, struct client *client, size_t n_all)
{
	struct sweep_reader *reader = must_calloc(1, sizeof(*reader));

	reader->job = job;
	reader->client = client;
	reader->n_all = n_all;
	return reader;
}

void sweep_reader_free(struct sweep_reader *reader)
{
	if (reader)
		free(reader->role);
	free(reader);
}

json_t *sweep_ask(struct sweep_reader *reader, json_t *request, struct sb_err *err)
{
	char *text = json_document(request, false);
	const char *answer = client_ask(reader->client, text);
	json_t *out = answer ? json_loads(answer, 0, NULL) : NULL;

	json_decref(request);
	free(text);
	if (!out) {
		err_set(err, SB_ENOPROC, "the target has ended");
		return NULL;
	}
	if (json_is_true(json_object_get(out, "ok")))
		return out;
	err_set(err, SB_EINTERNAL, "%s", json_string_value(json_object_get(out, "what")));
	json_decref(out);
	return NULL;
}

/* ---- a reading ---- */

int sweep_row_order(const void *a, const void *b)
{
	const struct sweep_row *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	return (x->slot > y->slot) - (x->slot < y->slot);
}

static uint64_t number(const json_t *row, size_t at)
{
	return (uint64_t)json_integer_value(json_array_get(row, at));
}

static void take_rows(struct sweep_reading *r, const json_t *list)
{
	const json_t *row;
	size_t i;

	r->row = must_calloc(json_array_size(list) + 1, sizeof(*r->row));
	json_array_foreach((json_t *)list, i, row) r->row[r->n_rows++] = (struct sweep_row){
		.target = number(row, 0),
		.pid = (pid_t)number(row, 1),
		.slot = number(row, 2),
		.hits = number(row, 3),
		.spent_ns = number(row, 4) + number(row, 5),
		.overrun_ns = number(row, 5),
		.tid = (pid_t)number(row, 6),
	};
	qsort(r->row, r->n_rows, sizeof(*r->row), sweep_row_order);
}

static void take_own(const struct sweep_reader *reader, struct sweep_reading *r, json_t *answer)
{
	json_t *row;
	size_t i;

	r->timing = json_is_true(json_object_get(answer, "timing"));
	r->own = must_calloc(reader->n_all, sizeof(*r->own));
	json_array_foreach(json_object_get(answer, "spans"), i,
			   row) if (number(row, 0) < reader->n_all)
		r->own[number(row, 0)] = (struct drive_own){
		.ns = (double)number(row, 1),
		.calls = (double)number(row, 2),
		.missed = (double)number(row, 3),
	};
}

static int by_bound(const void *a, const void *b)
{
	const struct sweep_bucket *x = a, *y = b;

	return (x->lo_ns > y->lo_ns) - (x->lo_ns < y->lo_ns);
}

/* The timed calls that are the responses. */
static void take_calls(struct sweep_reading *r, const json_t *times)
{
	const json_t *list = json_object_get(times, "histogram"), *row;
	size_t i;

	r->response_sum_ns = (double)json_integer_value(json_object_get(times, "inclusive_ns"));
	r->response_count = (double)json_integer_value(json_object_get(times, "calls"));
	r->bucket = must_calloc(json_array_size(list) + 1, sizeof(*r->bucket));
	r->sparse = true;
	json_array_foreach((json_t *)list, i, row) r->bucket[r->n_buckets++] =
		(struct sweep_bucket){ (double)number(row, 0), (double)number(row, 1),
				       (double)number(row, 2) };
	qsort(r->bucket, r->n_buckets, sizeof(*r->bucket), by_bound);
}

/* The growth of a published histogram is counted from bound to bound. */
static void take_published(struct sweep_reading *r, const struct progress_value *v)
{
	double lo = 0, below = 0;

	r->response_sum_ns = v->sum * 1e9;
	r->response_count = v->count;
	r->bucket = v->n_buckets ? must_calloc(v->n_buckets, sizeof(*r->bucket)) : NULL;
	for (size_t i = 0; i < v->n_buckets; i++) {
		double hi = v->bucket[i].le * 1e9;

		r->bucket[r->n_buckets++] = (struct sweep_bucket){ fmin(lo, hi), hi,
								   v->bucket[i].count - below };
		lo = hi;
		below = v->bucket[i].count;
	}
}

static json_t *lanes_request(const struct sweep_reader *reader)
{
	json_t *request = json_pack("{s:s}", "op", "lanes");

	if (reader->job->response_calls)
		json_object_set_new(request, "times",
				    json_integer((json_int_t)reader->job->response_index));
	return request;
}

static int take_counters(struct sweep_reader *reader, json_t *request, struct sweep_reading *r,
			 struct sb_err *err)
{
	json_t *answer = sweep_ask(reader, request, err);

	if (!answer)
		return -1;
	r->moved = json_is_true(json_object_get(answer, "moved"));
	r->hits = must_calloc(reader->n_all, sizeof(*r->hits));
	r->spent_ns = must_calloc(reader->n_all, sizeof(*r->spent_ns));
	r->overrun_ns = must_calloc(reader->n_all, sizeof(*r->overrun_ns));
	take_rows(r, json_object_get(answer, "lanes"));
	take_own(reader, r, answer);
	if (reader->job->response_calls)
		take_calls(r, json_object_get(answer, "times"));
	for (size_t i = 0; i < r->n_rows; i++)
		if (r->row[i].target < reader->n_all) {
			r->hits[r->row[i].target] += r->row[i].hits;
			r->spent_ns[r->row[i].target] += r->row[i].spent_ns;
			r->overrun_ns[r->row[i].target] += r->row[i].overrun_ns;
		}
	if (reader->job->progress_index != DRIVE_NONE) {
		r->items = (double)r->hits[reader->job->progress_index];
		r->t_ns = (uint64_t)json_integer_value(json_object_get(answer, "t_ns"));
	}
	json_decref(answer);
	return 0;
}

int sweep_reading_take(struct sweep_reader *reader, struct sweep_reading *r, struct sb_err *err)
{
	struct progress_value v = { 0 };
	uint64_t before = clock_ns();

	*r = (struct sweep_reading){ 0 };
	if (reader->job->progress) {
		if (progress_read(reader->job->progress, &v, err) < 0)
			return -1;
		r->items = v.count;
		r->t_ns = before + (clock_ns() - before) / 2; /* the reading lies in between */
	}
	if (take_counters(reader, lanes_request(reader), r, err) < 0)
		return -1;
	if (!reader->job->response)
		return 0;
	if (progress_read(reader->job->response, &v, err) < 0)
		return -1;
	take_published(r, &v);
	return 0;
}

int sweep_reading_take_after(struct sweep_reader *reader, uint64_t poll_ns, struct sweep_reading *r,
			     struct sb_err *err)
{
	json_t *request = lanes_request(reader);

	json_object_set_new(request, "after",
			    json_pack("{s:I s:I}", "index", (json_int_t)reader->job->progress_index,
				      "poll_ns", (json_int_t)poll_ns));
	*r = (struct sweep_reading){ 0 };
	return take_counters(reader, request, r, err);
}

int sweep_reading_covariates(struct sweep_reader *reader, struct sweep_reading *r,
			     struct sb_err *err)
{
	const struct sweep_job *job = reader->job;
	struct progress_value v;

	for (size_t i = 0; i < job->cfg.n_adjust; i++) {
		const struct sweep_covariate *c = &job->covariate[i];

		if (c->source && progress_read(c->source, &v, err) < 0)
			return -1;
		r->amount[i] = c->source ? v.count : (double)r->hits[c->index];
	}
	return 0;
}

void sweep_reading_free(struct sweep_reading *r)
{
	free(r->row);
	free(r->hits);
	free(r->spent_ns);
	free(r->overrun_ns);
	free(r->own);
	free(r->bucket);
	*r = (struct sweep_reading){ 0 };
}

/* ---- between two ---- */

/* Is it a Go program? */
static bool hands_on(pid_t pid)
{
	struct module_list list = { 0 };
	struct sb_err err = { 0 };
	struct maps maps = { 0 };
	bool is = false;

	if (maps_read(pid, &maps, &err) < 0)
		return false;
	if (module_find(&(struct module_space){ pid, &maps, NULL }, "", &list, &err) >= 0)
		is = list.count && image_is_go(list.module[0].img);
	module_list_free(&list);
	maps_free(&maps);
	return is;
}

static const struct role *role_of(struct sweep_reader *reader, pid_t pid)
{
	struct role *role;

	for (size_t i = 0; i < reader->n_roles; i++)
		if (reader->role[i].pid == pid)
			return &reader->role[i];
	reader->role = must(reallocarray(reader->role, reader->n_roles + 1, sizeof(*reader->role)));
	role = &reader->role[reader->n_roles++];
	role->pid = pid;
	role->hands_on = hands_on(pid);
	sweep_role(pid, role->name, sizeof(role->name));
	return role;
}

const char *sweep_role_of(struct sweep_reader *reader, pid_t pid)
{
	return role_of(reader, pid)->name;
}

bool sweep_hands_on(struct sweep_reader *reader, pid_t pid)
{
	return role_of(reader, pid)->hands_on;
}

struct lanes {
	struct lane_count *lane;
	size_t n;
};

static void add_lane(struct lanes *lanes, size_t at, const struct lane_count *count)
{
	if (at >= lanes->n) {
		lanes->lane = must(reallocarray(lanes->lane, at + 1, sizeof(*lanes->lane)));
		for (; lanes->n <= at; lanes->n++)
			lanes->lane[lanes->n] = (struct lane_count){ .gone = 1 };
	}
	lanes->lane[at].hits += count->hits;
	lanes->lane[at].injected_ns += count->injected_ns;
	lanes->lane[at].overrun_ns += count->overrun_ns;
	lanes->lane[at].gone = fmin(lanes->lane[at].gone, count->gone);
}

static uint64_t grown(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

static void take_off(struct lane_count *from, const struct lane_count *count)
{
	from->hits = grown(count->hits, from->hits);
	from->injected_ns = grown(count->injected_ns, from->injected_ns);
	from->overrun_ns = grown(count->overrun_ns, from->overrun_ns);
}

/* A slot of a thread stays when the thread ends. */
static bool gone(const struct sweep_row *row, bool grew)
{
	char path[64];

	if (!row->tid || grew)
		return !grew;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", row->pid, row->tid);
	return access(path, F_OK) < 0;
}

uint64_t *sweep_reading_hits(const struct sweep_reader *reader, const struct sweep_reading *a,
			     const struct sweep_reading *b)
{
	uint64_t *hits = must_calloc(reader->n_all, sizeof(*hits));

	for (size_t i = 0; i < reader->n_all; i++)
		hits[i] = grown(a->hits[i], b->hits[i]);
	return hits;
}

/* By target, as it grew in all processes. */
static struct lane_count *grown_all(const struct sweep_reader *reader,
				    const struct sweep_reading *a, const struct sweep_reading *b)
{
	struct lane_count *all = must_calloc(reader->n_all, sizeof(*all));

	for (size_t i = 0; i < reader->n_all; i++)
		all[i] = (struct lane_count){ grown(a->hits[i], b->hits[i]),
					      grown(a->spent_ns[i], b->spent_ns[i]),
					      grown(a->overrun_ns[i], b->overrun_ns[i]), 1 };
	return all;
}

struct lane_count *sweep_reading_lanes(struct sweep_reader *reader, struct drive *drive,
				       const bool *treated, const struct sweep_reading *a,
				       const struct sweep_reading *b, size_t *n_lanes)
{
	struct lane_count *rest = grown_all(reader, a, b);
	struct lanes lanes = { 0 };
	const char *role = "process";

	for (size_t i = 0, k = 0; i < b->n_rows; i++) {
		struct sweep_row d = b->row[i];
		struct lane_count count;

		while (k < a->n_rows && sweep_row_order(&a->row[k], &d) < 0)
			k++;
		if (k < a->n_rows && !sweep_row_order(&a->row[k], &d)) {
			d.hits = grown(a->row[k].hits, d.hits);
			d.spent_ns = grown(a->row[k].spent_ns, d.spent_ns);
			d.overrun_ns = grown(a->row[k].overrun_ns, d.overrun_ns);
		}
		if (!d.pid || d.target >= reader->job->cfg.n_targets || !treated[d.target])
			continue;
		role = sweep_role_of(reader, d.pid);
		count = (struct lane_count){ d.hits, d.spent_ns, d.overrun_ns,
					     gone(&d, d.hits > 0) };
		add_lane(&lanes, drive_lane(drive, role, d.pid, (int)d.slot), &count);
		take_off(&rest[d.target], &count);
	}
	/* One lane for all processes that ended meanwhile, or that were not seen from their
	 * birth. */
	for (size_t i = 0; i < reader->job->cfg.n_targets; i++)
		if (treated[i] && rest[i].hits)
			add_lane(&lanes, drive_lane(drive, role, 0, 0), &rest[i]);
	free(rest);
	*n_lanes = lanes.n;
	return lanes.lane;
}

struct drive_own *sweep_reading_own(const struct sweep_reader *reader,
				    const struct sweep_reading *a, const struct sweep_reading *b)
{
	struct drive_own *own;

	if (!a->timing || !b->timing)
		return NULL;
	own = must_calloc(reader->n_all, sizeof(*own));
	for (size_t i = 0; i < reader->n_all; i++)
		own[i] = (struct drive_own){
			.ns = fmax(0, b->own[i].ns - a->own[i].ns),
			.calls = fmax(0, b->own[i].calls - a->own[i].calls),
			.missed = fmax(0, b->own[i].missed - a->own[i].missed),
		};
	return own;
}

/* The bucket of a that is that of b; bounds of calls are rounded to ns. */
static const struct sweep_bucket *bucket_before(const struct sweep_reading *a,
						const struct sweep_bucket *b, size_t *at)
{
	double near = fmin(0.01 * (b->hi_ns - b->lo_ns), 1e6) + 0.6;

	while (*at < a->n_buckets && a->bucket[*at].lo_ns < b->lo_ns - near)
		(*at)++;
	return *at < a->n_buckets && a->bucket[*at].lo_ns <= b->lo_ns + near ? &a->bucket[(*at)++] :
									       NULL;
}

/* A thread may add a call while its counts are read: it is then counted twice, or not at all, and
 * rightly the next time. */
#define RACES 16

struct sweep_bucket *sweep_reading_buckets(const struct sweep_reading *a,
					   const struct sweep_reading *b, size_t *n)
{
	struct sweep_bucket *out = must_calloc(b->n_buckets + 1, sizeof(*out));
	double before = 0, found = 0, back = 0;
	size_t at = 0, seen = 0;

	*n = 0;
	for (size_t i = 0; i < a->n_buckets; i++)
		before += a->bucket[i].n;
	for (size_t i = 0; i < b->n_buckets; i++) {
		const struct sweep_bucket *was = bucket_before(a, &b->bucket[i], &at);
		double grown = b->bucket[i].n - (was ? was->n : 0);

		seen += was != NULL;
		found += was ? was->n : 0;
		back += fmax(0, -grown);
		out[*n] = b->bucket[i];
		out[*n].n = fmax(0, grown);
		*n += grown > 0 || !b->sparse;
	}
	back += before - found; /* of buckets that are there no more */
	if (b->n_buckets && back <= (b->sparse ? RACES : 0) &&
	    (b->sparse || (seen == a->n_buckets && seen == b->n_buckets)))
		return out;
	free(out);
	*n = 0;
	return NULL;
}

/* ---- CPU time ---- */

/* Time on a processor and time waiting for one: a busy thread counts as busy on a busy machine,
 * too. */
static double thread_ns(pid_t pid, pid_t tid)
{
	unsigned long long run = 0, wait = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu", &run, &wait) != 2)
		run = wait = 0;
	fclose(f);
	return (double)run + (double)wait;
}

static void take_process(pid_t pid, struct sweep_cpu *cpu)
{
	const size_t most = sizeof(cpu->thread) / sizeof(*cpu->thread);
	struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && cpu->n < most && (e = readdir(dir)))
		if (e->d_name[0] != '.') {
			pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

			cpu->thread[cpu->n++] = (struct sweep_thread){ tid, thread_ns(pid, tid) };
		}
	if (dir)
		closedir(dir);
}

void sweep_cpu_take(struct sweep_reader *reader, struct sweep_cpu *cpu)
{
	struct sb_err err = { 0 };
	json_t *answer = sweep_ask(reader, json_pack("{s:s}", "op", "status"), &err), *pid;
	size_t i;

	cpu->n = 0;
	json_array_foreach(json_object_get(answer, "pids"), i, pid)
		take_process((pid_t)json_integer_value(pid), cpu);
	json_decref(answer);
}

double sweep_cpu_busiest(const struct sweep_cpu *a, const struct sweep_cpu *b, double time_ns)
{
	double most = 0;

	for (size_t i = 0; i < b->n; i++)
		for (size_t k = 0; k < a->n; k++)
			if (a->thread[k].tid == b->thread[i].tid)
				most = fmax(most, b->thread[i].ns - a->thread[k].ns);
	if (!a->n || a->n == sizeof(a->thread) / sizeof(*a->thread) || !(time_ns > 0))
		return NAN;
	return most / time_ns;
}
