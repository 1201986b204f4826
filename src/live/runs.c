/* SPDX-License-Identifier: MIT */
/*
 * A sweep by whole runs of a command, in random order: for programs that start, work and end. Each
 * run is a session of its own; in the OFF arm the command runs without a session.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "job.h"
#include "inject/clock.h"
#include "src/base/log.h"
#include "src/base/must.h"
#include "src/run/client.h"

struct run {
	double items;
	uint64_t time_ns;
	int status;
	struct result *result; /* NULL: not hooked */
};

struct runs {
	struct sweep_job *job;
	struct drive *drive;
	uint64_t start_ns;
	const struct drive_step *step;
	struct sb_err *err;
	bool interrupted;
};

/* If the command's standard output is the source, it passes through us to our own stderr: stdout is
 * for the result. */
static int divert_stdout(int pipe_fd[2], int *saved)
{
	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return -1;
	*saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	fflush(stdout);
	return dup2(pipe_fd[1], STDOUT_FILENO) < 0 ? -1 : 0;
}

static void bring_back(int pipe_fd[2], int saved)
{
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(pipe_fd[1]);
}

static void drain(struct runs *r, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char buf[16384];
	ssize_t n;

	while (poll(&p, 1, 0) > 0 && (n = read(fd, buf, sizeof(buf))) > 0) {
		progress_feed(r->job->progress, buf, (size_t)n);
		if (!r->job->quiet && write(STDERR_FILENO, buf, (size_t)n) < 0)
			return;
	}
}

static void set_delays(struct runs *r)
{
	struct spec_list *list = &r->job->opt->session.targets;

	for (size_t i = 0; i < list->count; i++)
		list->spec[i].delay_ns = i < r->job->cfg.n_targets && r->step->hooked ?
						 r->step->delay_ns[i] :
						 0;
}

/* Without any hook: forks and waits, with the same parent and the same streams. */
static int run_plain(struct runs *r, int out_fd, struct run *run)
{
	uint64_t from = clock_ns();
	struct launch l;
	struct sb_err err = { 0 };

	if (launch_start(&l, r->job->opt->command, false, &err) < 0 || launch_go(&l, 0, &err) < 0) {
		*r->err = err;
		return -1;
	}
	while (!launch_poll(&l)) {
		struct pollfd p = { .fd = out_fd, .events = POLLIN };

		poll(&p, out_fd >= 0, 1);
		if (out_fd >= 0)
			drain(r, out_fd);
	}
	run->time_ns = clock_ns() - from;
	run->status = launch_exit_status(&l);
	return 0;
}

static int run_hooked(struct runs *r, int out_fd, struct run *run)
{
	struct client_outcome out;
	struct client *c;
	uint64_t from, to;

	set_delays(r);
	r->job->opt->session.timed = r->step->timed;
	c = client_open(r->job->opt, r->job->backend, true, &out);
	if (!c) {
		*r->err = out.error;
		return -1;
	}
	from = clock_ns();
	if (client_release(c) == 0)
		while (client_pump(c, out_fd >= 0 ? 5 : -1) && out_fd >= 0)
			drain(r, out_fd);
	to = clock_ns();
	r->interrupted |= client_interrupted(c);
	client_close(c);
	run->time_ns = to - from;
	run->status = out.command_status;
	run->result = out.result;
	if (!out.error.code)
		return 0;
	*r->err = out.error;
	return -1;
}

static int run_once(struct runs *r, struct run *run)
{
	bool text = r->job->progress != NULL;
	struct progress_value before = { 0 }, after = { 0 };
	int pipe_fd[2] = { -1, -1 }, saved = -1, ret;

	if (text && progress_read(r->job->progress, &before, r->err) < 0)
		return -1;
	if (text && divert_stdout(pipe_fd, &saved) < 0)
		return err_sys(r->err, SB_ESYS, "pipe");
	ret = r->step->hooked ? run_hooked(r, pipe_fd[0], run) : run_plain(r, pipe_fd[0], run);
	if (text) {
		bring_back(pipe_fd, saved);
		drain(r, pipe_fd[0]);
		close(pipe_fd[0]);
	}
	if (ret < 0)
		return ret;
	if (text && progress_read(r->job->progress, &after, r->err) < 0)
		return -1;
	run->items = !text			? 1 :
		     after.count > before.count ? after.count - before.count :
						  after.count;
	return 0;
}

static int check_run(struct runs *r, const struct run *run)
{
	if (run->status)
		return err_set(r->err, SB_EFILE,
			       "the command ended with status %d: a sweep needs "
			       "runs that succeed",
			       run->status);
	if (run->items <= 0) {
		err_set(r->err, SB_EFILE, "progress: '%s' matched nothing in a run",
			r->job->progress_text);
		err_hint(r->err, "the pattern is an extended regular expression over each line");
		return -SB_EFILE;
	}
	return 0;
}

static bool was_hit(const struct result_process *process, const bool *treated, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (treated[i] && process->counts[i].hits)
			return true;
	return false;
}

/* How long at least one of the processes that were hit was there. They are in the order of birth.
 */
static double union_ns(const struct result *res, const bool *treated, size_t n)
{
	uint64_t sum = 0, until = 0;

	for (size_t p = 0; p < res->n_processes; p++) {
		uint64_t from = res->process[p].began_ns, to = res->process[p].ended_ns;

		if (!was_hit(&res->process[p], treated, n))
			continue;
		from = from < until ? until : from;
		if (to > from)
			sum += to - from;
		until = to > until ? to : until;
	}
	return (double)sum;
}

static double gone_of(const struct result *res, size_t p, double all_ns)
{
	double lived = (double)(res->process[p].ended_ns - res->process[p].began_ns);

	return all_ns > 0 ? fmin(fmax(1 - lived / all_ns, 0), 1) : 0;
}

static size_t known_targets(const struct runs *r, const struct result *res)
{
	size_t n = r->job->cfg.n_targets;

	return res && res->n_targets < n ? res->n_targets : n;
}

static uint64_t *hits_of(const struct runs *r, const struct result *res)
{
	uint64_t *hits = must_calloc(r->job->cfg.n_targets, sizeof(*hits));

	for (size_t p = 0; res && p < res->n_processes; p++)
		for (size_t i = 0; i < known_targets(r, res); i++)
			hits[i] += res->process[p].counts[i].hits;
	return hits;
}

/* A lane each process. */
static struct lane_count *lanes_of(struct runs *r, const struct result *res, const bool *treated,
				   size_t *n_lanes)
{
	size_t n = known_targets(r, res);
	double all_ns = res ? union_ns(res, treated, n) : 0;
	struct lane_count *lane = NULL;

	*n_lanes = 0;
	for (size_t p = 0; res && p < res->n_processes; p++) {
		/* Pids differ from run to run: a process is identified by its place and name. */
		size_t at = drive_lane(r->drive, res->process[p].comm ? res->process[p].comm : "",
				       (int)p, 0);

		if (at >= *n_lanes) {
			lane = must_realloc(lane, (at + 1) * sizeof(*lane));
			memset(lane + *n_lanes, 0, (at + 1 - *n_lanes) * sizeof(*lane));
			*n_lanes = at + 1;
		}
		lane[at].gone = gone_of(res, p, all_ns);
		for (size_t i = 0; i < n; i++) {
			if (!treated[i])
				continue;
			lane[at].hits += res->process[p].counts[i].hits;
			lane[at].injected_ns += res->process[p].counts[i].injected_ns +
						res->process[p].counts[i].overrun_ns;
			lane[at].overrun_ns += res->process[p].counts[i].overrun_ns;
		}
	}
	return lane;
}

/* Of a run with timed calls. The caller frees. */
static struct drive_own *own_of(const struct runs *r, const struct run *run)
{
	size_t n = r->job->cfg.n_targets;
	struct drive_own *own = calloc(n + 1, sizeof(*own));

	if (!own)
		abort();
	for (size_t i = 0; run->result && i < run->result->n_targets && i < n; i++) {
		const struct result_spans *s = &run->result->target[i].spans;

		own[i] = (struct drive_own){ (double)s->ns, (double)s->calls, (double)s->missed };
	}
	return own;
}

static int tell(struct runs *r, const struct run *run)
{
	uint64_t *hits = hits_of(r, run->result);
	struct drive_own *own = r->step->timed ? own_of(r, run) : NULL;
	size_t n_lanes = 0, n_parts = drive_parts(r->drive);
	struct lane_count *lane = lanes_of(r, run->result, drive_treated(r->drive), &n_lanes);
	struct drive_part *part = must_calloc(n_parts, sizeof(*part));
	struct drive_window window;
	int ret;

	for (size_t i = 0; i < n_parts; i++)
		part[i].lane = lanes_of(r, run->result, drive_part_treated(r->drive, i),
					&part[i].n_lanes);
	window = (struct drive_window){
		.now_ns = clock_ns() - r->start_ns,
		.time_ns = run->time_ns,
		.items = run->items,
		.hits = hits,
		.lane = lane,
		.n_lanes = n_lanes,
		.own = own,
		.busy = NAN,
		.part = part,
		.n_parts = n_parts,
	};
	ret = drive_take(r->drive, &window, r->err);
	for (size_t i = 0; i < n_parts; i++)
		free((void *)part[i].lane);
	free(part);
	free(own);
	free(hits);
	free(lane);
	return ret;
}

struct sweep_result *sweep_runs(struct sweep_job *job, struct sb_err *err)
{
	struct runs r = { .job = job, .start_ns = clock_ns(), .err = err };
	struct sweep_result *res;
	struct drive_step step;

	r.drive = sweep_drive(job, err);
	if (!r.drive)
		return NULL;
	r.step = &step;
	for (;;) {
		struct run run = { 0 };
		int ret;

		drive_next(r.drive, &step);
		sweep_show_plan(job, r.drive, &step);
		if (step.what == DRIVE_DONE || r.interrupted)
			break;
		sweep_event(job, &step);
		ret = run_once(&r, &run);
		if (ret == 0)
			ret = check_run(&r, &run);
		if (ret == 0)
			ret = tell(&r, &run);
		result_free(run.result);
		if (ret < 0)
			break;
		sweep_show(job, r.drive, false);
	}
	sweep_show(job, r.drive, true);
	res = drive_end(r.drive);
	drive_close(r.drive);
	if (r.interrupted)
		sweep_result_warn(res, "ended by the user after %.1f s", res->time_s);
	else if (err->code)
		sweep_result_warn(res, "ended after %.1f s: %s", res->time_s, err->what);
	if (err->code && !res->n_windows) {
		sweep_result_free(res);
		res = NULL;
	}
	return res;
}
