/* SPDX-License-Identifier: MIT */
/*
 * A sweep of a process that lives. The session's hooks stay planted throughout; an arm is a few
 * stores into its control pages. Counters of all threads and, where the progress is a target's
 * hits, of the progress are read at one instant by the tracer; other sources are read right beside.
 */
#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "client.h"
#include "log.h"
#include "sweep-job.h"
#include "../inject/clock.h"

#define MS 1000000ull

enum { PUMP_MS = 20, MOVE_LIMIT_S = 10, BUSY_THREADS = 512 };

/* What stood on the counters at one instant. */
struct reading {
	uint64_t t_ns; /* of the counters */
	uint64_t progress_ns;
	double items, response_sum, response_count;
	uint64_t *hits; /* by target, the progress target included */
	struct lane_count *lane;
	size_t n_lanes;
	double busiest_ns; /* CPU time of the busiest thread so far; NAN unknown */
};

struct live {
	struct sweep_job *job;
	struct client *client;
	struct drive *drive;
	size_t n_all; /* targets of the session */
	uint64_t start_ns;
	const bool *treated;
	struct sb_err *err;
};

static uint64_t now_ns(void)
{
	return clock_ns();
}

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

/* ---- asking the session ---- */

static json_t *ask(struct live *l, json_t *request)
{
	char *text = must(json_dumps(request, JSON_COMPACT));
	const char *answer = client_ask(l->client, text);
	json_t *out = answer ? json_loads(answer, 0, NULL) : NULL;

	json_decref(request);
	free(text);
	if (!out) {
		err_set(l->err, SB_ENOPROC, "the target has ended");
		err_hint(l->err, "what was measured until then is shown");
		return NULL;
	}
	if (json_is_true(json_object_get(out, "ok")))
		return out;
	err_set(l->err, SB_EINTERNAL, "%s", json_string_value(json_object_get(out, "what")));
	json_decref(out);
	return NULL;
}

/* The progress target counts in every arm; it is delayed only where the step says so. */
static int set_arm(struct live *l, const struct drive_step *step)
{
	json_t *list = must(json_array()), *answer;

	for (size_t i = 0; i < l->n_all; i++) {
		bool progress = i == l->job->progress_index;
		bool asked = i < l->job->cfg.n_targets;
		json_int_t delay = asked && step->hooked ? (json_int_t)step->delay_ns[i] : 0;
		json_t *o = json_pack("{s:I s:b s:I}", "index", (json_int_t)i, "on",
				      step->hooked || progress, "delay_ns", delay);

		json_array_append_new(list, must(o));
	}
	answer = ask(l, json_pack("{s:s s:o}", "op", "arm", "targets", list));
	json_decref(answer);
	sweep_event(l->job, step);
	return answer ? 0 : -1;
}

/* ---- reading ---- */

static void reading_free(struct reading *r)
{
	free(r->hits);
	free(r->lane);
	*r = (struct reading){ 0 };
}

static size_t lane_index(struct live *l, pid_t pid, size_t slot)
{
	char role[64];

	sweep_role(pid, role, sizeof(role));
	return drive_lane(l->drive, role, pid, (int)slot);
}

static void take_lane(struct live *l, struct reading *r, const json_t *row)
{
	size_t target = (size_t)json_integer_value(json_array_get(row, 0));
	pid_t pid = (pid_t)json_integer_value(json_array_get(row, 1));
	size_t slot = (size_t)json_integer_value(json_array_get(row, 2)), at;
	uint64_t hits = (uint64_t)json_integer_value(json_array_get(row, 3));
	uint64_t spent = (uint64_t)json_integer_value(json_array_get(row, 4)) +
			 (uint64_t)json_integer_value(json_array_get(row, 5));

	if (target >= l->n_all)
		return;
	r->hits[target] += hits;
	if (target >= l->job->cfg.n_targets || !l->treated[target])
		return;
	at = lane_index(l, pid, slot);
	if (at >= r->n_lanes) {
		r->lane = must(reallocarray(r->lane, at + 1, sizeof(*r->lane)));
		memset(r->lane + r->n_lanes, 0, (at + 1 - r->n_lanes) * sizeof(*r->lane));
		r->n_lanes = at + 1;
	}
	r->lane[at].hits += hits;
	r->lane[at].injected_ns += spent;
}

static int read_counters(struct live *l, struct reading *r)
{
	json_t *answer = ask(l, json_pack("{s:s}", "op", "lanes")), *row;
	size_t i;

	if (!answer)
		return -1;
	r->hits = must(calloc(l->n_all, sizeof(*r->hits)));
	json_array_foreach(json_object_get(answer, "lanes"), i, row) take_lane(l, r, row);
	r->t_ns = (uint64_t)json_integer_value(json_object_get(answer, "t_ns"));
	json_decref(answer);
	return 0;
}

static int read_response(struct live *l, struct reading *r)
{
	struct progress_value v;

	if (!l->job->response)
		return 0;
	if (progress_read(l->job->response, &v, l->err) < 0)
		return -1;
	r->response_sum = v.sum;
	r->response_count = v.count;
	return 0;
}

static int take_reading(struct live *l, struct reading *r)
{
	struct progress_value v = { 0 };

	*r = (struct reading){ .busiest_ns = NAN };
	if (l->job->progress && progress_read(l->job->progress, &v, l->err) < 0)
		return -1;
	r->progress_ns = now_ns();
	if (read_counters(l, r) < 0 || read_response(l, r) < 0)
		return -1;
	r->items = v.count;
	if (l->job->progress_index != DRIVE_NONE) {
		r->items = (double)r->hits[l->job->progress_index];
		r->progress_ns = r->t_ns;
	}
	return 0;
}

/* ---- waiting ---- */

/* False: the user, or the target's end, ends it. */
static bool wait_until(struct live *l, uint64_t until)
{
	for (uint64_t now = now_ns(); now < until; now = now_ns()) {
		uint64_t left = until - now;

		if (left < MS) {
			nanosleep(&(struct timespec){ .tv_nsec = (long)left }, NULL);
			continue;
		}
		if (!client_pump(l->client, left > PUMP_MS * MS ? PUMP_MS : (int)(left / MS)) ||
		    client_interrupted(l->client))
			return false;
	}
	return !client_interrupted(l->client);
}

/*
 * A source that is published now and then (a gauge of each tenth of a second) is read at the moment
 * it changes. Up to `limit`; *changes counts what was seen. 1: it changed, 0: it did not, -1: an
 * end.
 */
static int await_change(struct live *l, uint64_t limit, uint64_t *changes)
{
	struct progress_value before, v;

	if (progress_read(l->job->progress, &before, l->err) < 0)
		return -1;
	while (now_ns() < limit) {
		if (!wait_until(l, now_ns() + progress_poll_ns(l->job->progress)) ||
		    progress_read(l->job->progress, &v, l->err) < 0)
			return -1;
		if (v.count == before.count)
			continue;
		++*changes;
		return 1;
	}
	return 0;
}

static bool slow_source(const struct live *l)
{
	return l->job->progress != NULL;
}

/* A window of at least window_ns, from change to change where the source is one that is polled. */
static int wait_window(struct live *l, uint64_t window_ns, uint64_t *changes)
{
	uint64_t end = now_ns() + window_ns, limit = end + window_ns / 2 + 200 * MS;

	*changes = 0;
	if (!slow_source(l))
		return wait_until(l, end) ? 0 : -1;
	while (now_ns() < end)
		if (await_change(l, end, changes) < 0)
			return -1;
	return await_change(l, limit, changes) < 0 ? -1 : 0;
}

/* ---- windows ---- */

/* CPU time of the thread that has used most, over the session's processes; NAN where that is too
 * much to read. */
static double thread_cpu_ns(pid_t pid, pid_t tid)
{
	char path[64];
	unsigned long long ns = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	fclose(f);
	return (double)ns;
}

struct cpu {
	pid_t tid;
	double ns;
};

static size_t read_process_cpu(pid_t pid, struct cpu *cpu, size_t cap)
{
	char path[64];
	struct dirent *e;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && n < cap && (e = readdir(dir)))
		if (e->d_name[0] != '.') {
			pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

			cpu[n++] = (struct cpu){ tid, thread_cpu_ns(pid, tid) };
		}
	if (dir)
		closedir(dir);
	return n;
}

static size_t read_cpu(struct live *l, struct cpu *cpu, size_t cap)
{
	json_t *answer = ask(l, json_pack("{s:s}", "op", "status")), *pid;
	size_t n = 0, i;

	json_array_foreach(json_object_get(answer, "pids"), i, pid)
		n += read_process_cpu((pid_t)json_integer_value(pid), cpu + n, cap - n);
	json_decref(answer);
	return n;
}

static double busiest(const struct cpu *a, size_t n, const struct cpu *b, size_t m, double ns)
{
	double most = 0;

	for (size_t i = 0; i < m; i++)
		for (size_t k = 0; k < n; k++)
			if (a[k].tid == b[i].tid && b[i].ns - a[k].ns > most)
				most = b[i].ns - a[k].ns;
	return n && n < BUSY_THREADS && ns > 0 ? most / ns : NAN;
}

static struct lane_count *lane_difference(const struct reading *a, const struct reading *b)
{
	struct lane_count *d = must(calloc(b->n_lanes + 1, sizeof(*d)));

	for (size_t i = 0; i < b->n_lanes; i++) {
		d[i] = b->lane[i];
		if (i < a->n_lanes && a->lane[i].hits <= d[i].hits &&
		    a->lane[i].injected_ns <= d[i].injected_ns) {
			d[i].hits -= a->lane[i].hits;
			d[i].injected_ns -= a->lane[i].injected_ns;
		}
	}
	return d;
}

static int tell(struct live *l, const struct reading *a, const struct reading *b, uint64_t changes,
		double busy)
{
	struct lane_count *lane = lane_difference(a, b);
	uint64_t *hits = must(calloc(l->n_all, sizeof(*hits)));
	struct drive_told told = {
		.now_ns = now_ns() - l->start_ns,
		.time_ns = b->progress_ns - a->progress_ns,
		.items = b->items - a->items,
		.response_sum_ns = (b->response_sum - a->response_sum) * 1e9,
		.response_count = b->response_count - a->response_count,
		.changes = changes,
		.hits = hits,
		.lane = lane,
		.n_lanes = b->n_lanes,
		.busy = busy,
	};
	int ret = 0;

	for (size_t i = 0; i < l->n_all; i++)
		hits[i] = b->hits[i] >= a->hits[i] ? b->hits[i] - a->hits[i] : 0;
	if (told.items < 0) {
		ret = err_set(l->err, SB_EFILE, "progress: '%s' went back, from %.15g to %.15g",
			      l->job->progress_text, a->items, b->items);
		err_hint(l->err, "a sweep needs a source that only grows: was it restarted?");
	} else {
		ret = drive_tell(l->drive, &told, l->err);
	}
	free(hits);
	free(lane);
	return ret;
}

/* CPU times are read in SHAM only: that is what tells an idle program from a busy one. */
static int one_window(struct live *l, const struct drive_step *step)
{
	static struct cpu before[BUSY_THREADS], after[BUSY_THREADS];
	bool look = step->arm == ARM_SHAM;
	struct reading a = { 0 }, b = { 0 };
	uint64_t changes = 0, none = 0;
	size_t n = 0, m = 0;
	int ret = -1;

	l->treated = drive_treated(l->drive);
	if (set_arm(l, step) < 0 || !wait_until(l, now_ns() + step->guard_ns))
		return -1;
	if (slow_source(l) && await_change(l, now_ns() + step->window_ns, &none) < 0)
		return -1;
	if (look)
		n = read_cpu(l, before, BUSY_THREADS);
	if (take_reading(l, &a) == 0 && wait_window(l, step->window_ns, &changes) == 0 &&
	    take_reading(l, &b) == 0) {
		if (look)
			m = read_cpu(l, after, BUSY_THREADS);
		ret = tell(l, &a, &b, changes,
			   look ? busiest(before, n, after, m,
					  (double)(b.progress_ns - a.progress_ns)) :
				  NAN);
	}
	reading_free(&a);
	reading_free(&b);
	return ret;
}

/* ---- the whole ---- */

/* A source that does not move is found now, not after a minute of windows. */
static int check_moves(struct live *l)
{
	uint64_t limit = now_ns() + MOVE_LIMIT_S * 1000 * MS;
	struct reading first = { 0 }, r = { 0 };
	double was;

	l->treated = drive_treated(l->drive);
	if (take_reading(l, &first) < 0)
		return -1;
	was = first.items;
	reading_free(&first);
	while (now_ns() < limit) {
		double is;

		if (!wait_until(l, now_ns() + 100 * MS) || take_reading(l, &r) < 0)
			return -1;
		is = r.items;
		reading_free(&r);
		if (is != was)
			return 0;
	}
	err_set(l->err, SB_EFILE, "progress: '%s' does not move: it was %.15g for %d s",
		l->job->progress_text, was, MOVE_LIMIT_S);
	err_hint(l->err,
		 "is the program under load? sbinject -p PID '%s' 0 counts a function's "
		 "calls",
		 l->job->progress_text);
	return -1;
}

static void crank(struct live *l)
{
	struct drive_step step;

	if (check_moves(l) < 0)
		return;
	for (;;) {
		drive_next(l->drive, &step);
		if (step.what == DRIVE_DONE || one_window(l, &step) < 0)
			break;
		sweep_show(l->job, l->drive, false);
	}
	sweep_show(l->job, l->drive, true);
}

struct sweep_result *sweep_live(struct sweep_job *job, struct sb_err *err)
{
	struct live l = { .job = job, .err = err, .n_all = job->opt->session.targets.count };
	struct client_outcome out;
	struct sweep_result *res = NULL;

	if (drive_open(&job->cfg, &l.drive, err) < 0)
		return NULL;
	l.client = client_open(job->opt, job->backend, false, &out);
	if (!l.client) {
		*err = out.error;
		drive_close(l.drive);
		return NULL;
	}
	l.start_ns = now_ns();
	crank(&l);
	client_close(l.client);
	res = drive_end(l.drive);
	drive_close(l.drive);
	if (!err->code && out.error.code)
		*err = out.error;
	result_free(out.result);
	return res;
}
