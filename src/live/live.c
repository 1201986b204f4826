/* SPDX-License-Identifier: MIT */
/*
 * A sweep of a living process. The session's hooks stay planted throughout; an arm is a few stores
 * into its control pages. The tracer reads the counters of all threads at one instant, and the
 * progress with them if that is a target's hits. Other sources are read right before or after.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "later.h"
#include "read.h"
#include "sides.h"
#include "source.h"
#include "inject/clock.h"
#include "src/base/log.h"
#include "src/base/must.h"

#define MS 1000000ull

enum { PUMP_MS = 20, TIMING_MS = 2000 };
enum { LATER_WAIT_MS = 5, LATER_LOOKS = 5, LATER_LOOKS_UNSEEN = 20 };

#define ITEM_LONG_NS 100e3

struct live {
	struct sweep_job *job;
	struct client *client;
	struct sweep_reader *reader;
	struct drive *drive;
	size_t n_all; /* targets of the session */
	uint64_t start_ns;
	double item_ns;		     /* time per item of the last window; 0: unknown */
	struct source_rhythm rhythm; /* of the progress */
	uint64_t changed_ns;	     /* of the end of the last wait for one; 0: none */
	bool timed;		     /* calls are timed now */
	double completed;	 /* of the responses, at the end of the window before; 0: unknown */
	struct sides *sides;	 /* NULL: no evidence */
	struct sweep_scan *scan; /* in a window; else NULL */
	struct sweep_reading before; /* at the beginning of the window before */
	bool over;		     /* the user, or the target, has ended the sweep */
	struct sb_err *err;
};

/* A target that counts in every arm: the progress, the responses, what is adjusted for. */
static bool always_counts(const struct sweep_job *job, size_t target)
{
	bool counts = target == job->progress_index ||
		      (job->response_calls && target == job->response_index);

	for (size_t i = 0; i < job->cfg.n_adjust; i++)
		counts |= !job->covariate[i].source && job->covariate[i].index == target;
	return counts;
}

/* What counts in every arm is delayed only if the step says so. */
static int set_arm(struct live *l, const struct drive_step *step)
{
	json_t *list = json_array(), *answer;

	for (size_t i = 0; i < l->n_all; i++) {
		bool counts = always_counts(l->job, i);
		bool asked = i < l->job->cfg.n_targets;
		json_int_t delay = asked && step->hooked ? (json_int_t)step->delay_ns[i] : 0;

		if (json_array_append_new(
			    list, json_pack("{s:I s:b s:I s:b}", "index", (json_int_t)i, "on",
					    step->hooked || counts, "delay_ns", delay, "time",
					    asked && step->timed && l->job->cfg.can_time[i])))
			abort();
	}
	answer = sweep_ask(l->reader, json_pack("{s:s s:o}", "op", "arm", "targets", list), l->err);
	json_decref(answer);
	sweep_event(l->job, step);
	return answer ? 0 : -1;
}

/* ---- waiting ---- */

/* False: the user, or the end of the target, has ended the wait. */
static bool wait_until(struct live *l, uint64_t until)
{
	/* Signals are also read with answers: many short waits must not outlast Ctrl-C. */
	l->over |= client_interrupted(l->client);
	for (uint64_t now = clock_ns(); now < until && !l->over; now = clock_ns()) {
		uint64_t left = until - now;

		if (l->scan)
			sweep_scan_look(l->scan, now);

		if (left < MS) {
			nanosleep(&(struct timespec){ .tv_nsec = (long)left }, NULL);
			continue;
		}
		l->over = !client_pump(l->client, left > PUMP_MS * MS ? PUMP_MS : (int)(left / MS));
		l->over |= client_interrupted(l->client);
	}
	return !l->over;
}

/*
 * A source that is published at intervals (a counter in a file that is written each second) is read
 * right after a change: this avoids rounding to its period. It is polled only around the time when
 * a change is due, since a read may cost its owner something.
 */
static int await_change(struct live *l)
{
	uint64_t limit = clock_ns() + 4 * l->rhythm.period_ns + 200 * MS,
		 poll = l->rhythm.period_ns / 50;
	uint64_t most = progress_poll_ns(l->job->progress);
	struct progress_value before, v;

	poll = poll > most ? most : poll < MS ? MS : poll;
	l->changed_ns = 0;
	if (progress_read(l->job->progress, &before, l->err) < 0)
		return -1;
	while (clock_ns() < limit) {
		if (!wait_until(l, clock_ns() + poll) ||
		    progress_read(l->job->progress, &v, l->err) < 0)
			return -1;
		if (v.count != before.count && v.count - before.count >= l->rhythm.jump) {
			l->changed_ns = clock_ns();
			break;
		}
		before = v;
	}
	return 0;
}

/* True: a window of the same arm ended at a change just now; this one begins at the same. */
static bool at_change(const struct live *l, const struct drive_step *step)
{
	return !step->guard_ns && l->changed_ns &&
	       clock_ns() - l->changed_ns < l->rhythm.period_ns / 10;
}

/*
 * An interpreter begins or ends timing at its next safe point. Waits for that, so that no delayed
 * window pays for it. The readings reveal an interpreter that does not reach one.
 */
static int await_timing(struct live *l, const struct drive_step *step)
{
	uint64_t limit = clock_ns() + TIMING_MS * MS;
	bool in_force = step->timed == l->timed;

	l->timed = step->timed;
	while (!in_force && clock_ns() < limit) {
		struct sweep_reading r = { 0 };
		bool taken;

		if (!wait_until(l, clock_ns() + PUMP_MS * MS / 2))
			return -1;
		taken = sweep_reading_take(l->reader, &r, l->err) == 0;
		in_force = r.timing;
		sweep_reading_free(&r);
		if (!taken)
			return -1;
	}
	return 0;
}

/* ---- windows ---- */

/*
 * One end of a window. If few items fit into a window, a count at any moment is off by up to an
 * item, and not by chance alone: windows fall into step with the items. A count right after an item
 * is not rounded. (Windows then end at the first item after their time, which is a stopping time:
 * the mean over them is not biased, by Wald's identity.)
 */
static int take_items(struct live *l, struct sweep_reading *r)
{
	uint64_t limit = clock_ns() + (uint64_t)(8 * l->item_ns) + 100 * MS;
	uint64_t poll = (uint64_t)fmin(fmax(l->item_ns / 20, 50e3), 1e6);
	uint64_t over = l->start_ns + l->job->cfg.time_ns;

	/* A response is a mean over completed items: nothing is rounded to whole items there. */
	if (l->job->progress || l->job->cfg.response || l->item_ns < ITEM_LONG_NS)
		return sweep_reading_take(l->reader, r, l->err);
	for (;;) {
		if (sweep_reading_take_after(l->reader, poll, r, l->err) < 0)
			return -1;
		if (r->moved || clock_ns() >= (limit < over ? limit : over) ||
		    !wait_until(l, clock_ns() + 1))
			return 0;
		sweep_reading_free(r);
	}
}

static int take_edge(struct live *l, struct sweep_reading *r)
{
	if (take_items(l, r) < 0)
		return -1;
	return sweep_reading_covariates(l->reader, r, l->err);
}

/* The growth of what is adjusted for. */
static int take_amounts(struct live *l, const struct sweep_reading *a,
			const struct sweep_reading *b, struct drive_window *window)
{
	for (size_t i = 0; i < l->job->cfg.n_adjust; i++) {
		window->amount[i] = b->amount[i] - a->amount[i];
		if (window->amount[i] >= 0)
			continue;
		err_set(l->err, SB_EFILE, "adjust: '%s' went back, from %.15g to %.15g",
			l->job->covariate[i].text, a->amount[i], b->amount[i]);
		return err_hint(l->err, "a sweep adjusts for a number that only grows"), -1;
	}
	return 0;
}

/* What the window has of a part of drive_parts(), or SWEEP_SCAN_ALL. */
static struct drive_part take_part(struct live *l, const struct sweep_reading *a,
				   const struct sweep_reading *b, size_t part)
{
	bool all = part == SWEEP_SCAN_ALL;
	const bool *treated = all ? drive_treated(l->drive) : drive_part_treated(l->drive, part);
	struct drive_part out = { 0 };

	out.lane = sweep_reading_lanes(l->reader, l->drive, treated, a, b, &out.n_lanes);
	if (l->scan)
		out.scan = sweep_scan_seen(l->scan, part, &out.n_scans);
	out.counter = sides_between(l->sides, treated, all && drive_parts(l->drive), b,
				    b->t_ns - a->t_ns);
	return out;
}

static void free_part(struct drive_part *part)
{
	free((void *)part->lane);
	free((void *)part->counter);
}

/* One for each target that shares the window; free_part() them. */
static struct drive_part *take_parts(struct live *l, const struct sweep_reading *a,
				     const struct sweep_reading *b, size_t *n)
{
	struct drive_part *part;

	*n = drive_parts(l->drive);
	part = must_calloc(*n, sizeof(*part));
	for (size_t i = 0; i < *n; i++)
		part[i] = take_part(l, a, b, i);
	return part;
}

static int tell(struct live *l, const struct drive_step *step, const struct sweep_reading *a,
		const struct sweep_reading *b, double busy)
{
	struct drive_window window = {
		.now_ns = clock_ns() - l->start_ns,
		.time_ns = b->t_ns - a->t_ns,
		.items = b->items - a->items,
		.response_sum_ns = b->response_sum_ns - a->response_sum_ns,
		.response_count = b->response_count - a->response_count,
		.busy = busy,
		.exact = a->moved && b->moved,
	};
	struct drive_part all, *part;
	struct sweep_bucket *bucket = NULL;
	struct drive_own *own = NULL;
	uint64_t *hits;
	int ret;

	if (l->job->cfg.response && l->completed > 0)
		window.since = fmax(0, b->response_count - l->completed);
	l->completed = b->response_count;
	if (window.items > 0)
		l->item_ns = (double)window.time_ns / window.items;
	if (l->rhythm.period_ns)
		window.changes = (uint64_t)fmax(
			1, round((double)window.time_ns /
				 (double)l->rhythm.period_ns)); /* from a change to a change */
	if (window.items < 0 || window.response_count < 0) {
		ret = err_set(l->err, SB_EFILE, "%s: '%s' went back, from %.15g to %.15g",
			      window.items < 0 ? "progress" : "response",
			      window.items < 0 ? l->job->progress_text : l->job->response_text,
			      window.items < 0 ? a->items : a->response_count,
			      window.items < 0 ? b->items : b->response_count);
		err_hint(l->err, "a sweep needs a source that only grows: was it restarted?");
		return ret;
	}
	if (take_amounts(l, a, b, &window) < 0)
		return -1;
	window.hits = hits = sweep_reading_hits(l->reader, a, b);
	sides_window(l->sides, window.now_ns);
	all = take_part(l, a, b, SWEEP_SCAN_ALL);
	window.lane = all.lane;
	window.n_lanes = all.n_lanes;
	window.scan = all.scan;
	window.n_scans = all.n_scans;
	window.counter = all.counter;
	window.part = part = take_parts(l, a, b, &window.n_parts);
	if (step->timed)
		window.own = own = sweep_reading_own(l->reader, a, b);
	if (l->job->cfg.response)
		window.bucket = bucket = sweep_reading_buckets(a, b, &window.n_buckets);
	ret = drive_take(l->drive, &window, l->err);
	for (size_t i = 0; i < window.n_parts; i++)
		free_part(&part[i]);
	free(part);
	free_part(&all);
	free(hits);
	free(bucket);
	free(own);
	return ret;
}

/* All windows are looked at alike: looking takes a part of a processor. */
static bool wait_window(struct live *l, const struct drive_step *step,
			const struct sweep_reading *begun)
{
	uint64_t until = clock_ns() + step->window_ns;

	if (l->job->cfg.lane_mode == LANE_AUTO)
		l->scan = sweep_scan_begin(l->reader, l->drive, &l->before, begun);
	return wait_until(l, until);
}

/* CPU times are read in SHAM: they distinguish an idle program from a busy one. Of a response it
 * matters how busy a delay makes it. */
static int one_window(struct live *l, const struct drive_step *step)
{
	static struct sweep_cpu before, after;
	bool look = step->arm == ARM_SHAM || l->job->cfg.response;
	struct sweep_reading a = { 0 }, b = { 0 };
	double busy = NAN;
	int ret = -1;

	if (set_arm(l, step) < 0 || await_timing(l, step) < 0 ||
	    !wait_until(l, clock_ns() + step->guard_ns))
		return -1;
	sides_begin(l->sides); /* neither in the window, nor between a change and the edge */
	if (!at_change(l, step) && l->rhythm.period_ns && await_change(l) < 0)
		return -1;
	if (look)
		sweep_cpu_take(l->reader, &before);
	if (take_edge(l, &a) == 0 && wait_window(l, step, &a) &&
	    (!l->rhythm.period_ns || await_change(l) == 0) && take_edge(l, &b) == 0) {
		sides_end(l->sides);
		if (look) {
			sweep_cpu_take(l->reader, &after);
			busy = sweep_cpu_busiest(&before, &after, (double)(b.t_ns - a.t_ns));
		}
		ret = tell(l, step, &a, &b, busy);
	}
	sweep_scan_end(l->scan);
	l->scan = NULL;
	sweep_reading_free(&l->before);
	l->before = a;
	sweep_reading_free(&b);
	return ret;
}

/* ---- the source, before the first measurement ---- */

/* The hits of a target. source_probe() tests other sources. */
static int check_moves(struct live *l)
{
	uint64_t limit = source_limit_ns(l->job), until = clock_ns() + limit;
	struct sweep_reading r;
	double was = NAN, is;

	while (!l->job->progress && clock_ns() < until) {
		if (sweep_reading_take(l->reader, &r, l->err) < 0)
			return -1;
		is = r.items;
		sweep_reading_free(&r);
		if (is > was)
			return 0;
		was = is;
		if (!wait_until(l, clock_ns() + 50 * MS))
			return -1;
	}
	return l->job->progress ? 0 : source_does_not_move(l->job, was, limit, l->err);
}

/* The calls whose times are the responses: that they are made and seen to return. */
static int check_calls(struct live *l)
{
	uint64_t limit = source_limit_ns(l->job), until = clock_ns() + limit;
	const char *text = l->job->response_text;
	struct sweep_reading r;
	double was = NAN, is;
	bool hit = false;

	while (l->job->response_calls && clock_ns() < until) {
		if (sweep_reading_take(l->reader, &r, l->err) < 0)
			return -1;
		is = r.response_count;
		hit |= r.hits[l->job->response_index] > 0;
		sweep_reading_free(&r);
		if (is > was)
			return 0;
		was = is;
		if (!wait_until(l, clock_ns() + 50 * MS))
			return -1;
	}
	if (!l->job->response_calls)
		return 0;
	err_set(l->err, SB_EFILE, "response: no call of '%s' %s within %.3g s", text,
		hit ? "was seen to return" : "was made", (double)limit / 1e9);
	err_hint(l->err, "sbinject list '%s' time=yes shows which functions can be timed", text);
	return -1;
}

static bool launched(const struct live *l)
{
	return l->job->opt->command && !l->job->opt->session.n_pids;
}

/* A caller that blocks signals (`find`) wants this step to end. */
static bool signal_waits(void)
{
	sigset_t set;

	sigpending(&set);
	return sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) || sigismember(&set, SIGHUP);
}

/* Without a session nothing is held up: a signal that is not blocked ends sbinject at once. */
static bool look_wait(void *of, uint64_t ns)
{
	struct live *l = of;

	if (l->client)
		return wait_until(l, clock_ns() + ns);
	nanosleep(&(struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				      .tv_nsec = (long)(ns % 1000000000) },
		  NULL);
	if (!signal_waits())
		return true;
	err_set(l->err, SB_EINTERRUPTED, "interrupted while the sources were tested");
	return false;
}

/* The time for this is part of the budget. */
static int check_sources(struct live *l)
{
	uint64_t from = clock_ns(), *time = &l->job->cfg.time_ns, spent;
	struct source_look look = { l->job, launched(l), look_wait, l };

	if (l->job->progress && source_probe(&look, &l->rhythm, l->err) < 0)
		return -1;
	l->job->cfg.aligned |= l->rhythm.period_ns > 0;
	if (l->job->response && source_probe_response(&look, l->err) < 0)
		return -1;
	if (source_probe_covariates(&look, l->err) < 0)
		return -1;
	spent = clock_ns() - from;
	*time -= spent < *time / 2 ? spent : *time / 2;
	return 0;
}

/* ---- the whole ---- */

static void crank(struct live *l)
{
	struct drive_step step;

	if (check_moves(l) < 0 || check_calls(l) < 0)
		return;
	for (;;) {
		drive_next(l->drive, &step);
		sweep_show_plan(l->job, l->drive, &step);
		if (step.what == DRIVE_DONE || one_window(l, &step) < 0)
			break;
		sweep_show(l->job, l->drive, false);
	}
	sweep_show(l->job, l->drive, true);
}

/* The reason for an early end is part of the result; what was measured until then stays valid. */
static void say_why(struct live *l, bool interrupted, struct sweep_result *res)
{
	if (!res->ended_early)
		return;
	if (interrupted)
		sweep_result_warn(res, "ended by the user after %.1f s", res->time_s);
	else if (l->over || l->err->code == SB_ENOPROC)
		sweep_result_warn(res, "the target ended after %.1f s%s", res->time_s,
				  launched(l) ?
					  ": give the command more to do, or run it again and "
					  "again: -- sh -c 'while :; do COMMAND; done'" :
					  "");
	else if (l->err->code)
		sweep_result_warn(res, "ended after %.1f s: %s", res->time_s, l->err->what);
	if (l->over || interrupted || l->err->code == SB_ENOPROC)
		*l->err = (struct sb_err){ 0 };
}

/* Removes the hooks. Does not wait for a command of ours: the result is complete. */
static void detach(struct live *l)
{
	struct sweep_job *job = l->job;

	if (launched(l)) {
		client_detach(l->client);
		job->client = l->client;
	} else {
		client_close(l->client);
	}
	sweep_reader_free(l->reader);
	sweep_reading_free(&l->before);
}

int sweep_live_end(struct sweep_job *job, struct sb_err *err)
{
	if (job->client)
		client_close(job->client);
	job->client = NULL;
	if (job->outcome.error.code && !err->code)
		*err = job->outcome.error;
	result_free(job->outcome.result);
	job->outcome = (struct client_outcome){ 0 };
	return err->code ? -1 : 0;
}

static bool open_client(struct live *l)
{
	struct sweep_job *job = l->job;

	job->opt->session.name_threads = job->cfg.lane_mode == LANE_AUTO || job->sides.asked;
	l->client = client_open(job->opt, job->backend, false, &job->outcome);
	if (!l->client)
		*l->err = job->outcome.error;
	return l->client;
}

/*
 * The sources of a process that runs are tested before it is touched; those of a command that has
 * not started have nothing to show yet. *moves: they are as they should be; false only of the
 * latter, which is hooked by then. The drive needs to know how the progress grows.
 */
static bool open_all(struct live *l, bool *moves)
{
	bool first = launched(l);

	if ((first && !open_client(l)) || ((*moves = check_sources(l) == 0), !*moves && !first))
		return false;
	l->drive = sweep_drive(l->job, l->err);
	if (l->drive && (l->client || open_client(l)))
		return true;
	if (l->client)
		client_close(l->client);
	drive_close(l->drive);
	return false;
}

/*
 * Where processes follow one another, none runs at some instants, such as the end of a window that
 * ends with an item: some more are looked at, and many if such processes may be the reason why
 * something was not seen.
 */
static void look_for_later(struct live *l, struct later *later)
{
	bool seen = drive_all_seen(l->drive) && !l->err->code;
	int looks = seen ? LATER_LOOKS : LATER_LOOKS_UNSEEN;

	later_count(later, &l->job->opt->session);
	while (!later->unhooked && --looks > 0 && wait_until(l, clock_ns() + LATER_WAIT_MS * MS))
		later_count(later, &l->job->opt->session);
}

struct sweep_result *sweep_live(struct sweep_job *job, struct sb_err *err)
{
	struct live l = { .job = job, .err = err, .n_all = job->opt->session.targets.count };
	struct sweep_result *res = NULL;
	struct later later = { 0 };
	bool interrupted, moves, unfollowed = !launched(&l) && job->backend == &backend_inject;

	if (unfollowed)
		later_open(&later, &job->opt->session);
	if (!open_all(&l, &moves)) {
		later_close(&later);
		return NULL;
	}
	l.reader = sweep_reader_new(job, l.client, l.n_all);
	l.sides = sides_open(job, l.reader);
	l.start_ns = clock_ns();
	if (moves)
		crank(&l);
	interrupted = client_interrupted(l.client);
	sides_stop(l.sides);
	if (unfollowed)
		look_for_later(&l, &later);
	detach(&l);
	res = drive_end(l.drive);
	sides_close(l.sides, res);
	drive_close(l.drive);
	later_tell(&later, res, err);
	later_close(&later);
	say_why(&l, interrupted, res);
	if (err->code && !res->n_windows) {
		sweep_result_free(res);
		res = NULL;
	}
	return res;
}
