/* SPDX-License-Identifier: MIT */
/* `sbinject explain`: readings of the evidence and of the progress, block by block. */
#include "explain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "candidates.h"
#include "explain-infer.h"
#include "inject/clock.h"
#include "owners.h"
#include "read.h"
#include "src/base/must.h"
#include "src/run/witness.h"
#include "src/session/processes.h"

enum { BLOCKS_LEAST = 8, BLOCKS_MOST = 40, PUMP_MS = 20 };
#define BLOCK_NS 250000000ull
#define MS	 1000000ull

struct explain {
	struct sweep_job *job;
	struct evidence *evidence;
	struct candidates *candidates;
	uint64_t take_ns; /* between two takes of the candidates */
	struct owners *owners;
	struct quota *quota;
	struct client *client; /* of a target as the progress; else NULL */
	struct sweep_reader *reader;
	struct explain_edge *edge;
	size_t n_edges;
	bool over;
	struct sb_err *err;
};

/* A part of a wait; the buffers of the samples do not fill up meanwhile. */
static void wait_for(struct explain *x, uint64_t ns)
{
	uint64_t ms = ns / MS;

	if (x->client && ms) {
		x->over = !client_pump(x->client, ms < PUMP_MS ? (int)ms : PUMP_MS) ||
			  client_interrupted(x->client);
	} else {
		ns = ns < x->take_ns ? ns : x->take_ns;
		nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
	}
}

static void wait_until(struct explain *x, uint64_t until)
{
	uint64_t taken = clock_ns();

	for (uint64_t now = taken; now < until && !x->over; now = clock_ns()) {
		if (now - taken >= x->take_ns) {
			candidates_take(x->candidates);
			x->take_ns = candidates_wait_ns(x->candidates);
			taken = now;
		}
		wait_for(x, until - now);
		x->over |= x->job->ends && x->job->ends();
	}
}

static int take_items(struct explain *x, struct explain_edge *edge)
{
	struct sweep_reading r = { 0 };
	struct progress_value v;
	int ret = 0;

	if (x->reader) {
		ret = sweep_reading_take(x->reader, &r, x->err);
		edge->items = r.items;
		sweep_reading_free(&r);
	} else if (x->job->progress) {
		ret = progress_read(x->job->progress, &v, x->err);
		edge->items = v.count;
	}
	return ret;
}

/* False: the processes, or the source, are gone. */
static bool take_edge(struct explain *x)
{
	struct explain_edge *edge = &x->edge[x->n_edges];

	if (x->over || take_items(x, edge) < 0)
		return false;
	evidence_take(x->evidence, &edge->reading);
	if (!edge->reading.n_threads) {
		evidence_reading_free(&edge->reading);
		return false;
	}
	if (!x->reader && !x->job->progress)
		edge->items = (double)edge->reading.t_ns / 1e9;
	owners_look(x->owners, x->evidence, &edge->reading);
	if (x->n_edges++)
		candidates_edge(x->candidates);
	return true;
}

static void measure(struct explain *x, uint64_t time_ns)
{
	size_t blocks = time_ns / BLOCK_NS;
	uint64_t start = clock_ns();

	blocks = blocks < BLOCKS_LEAST ? BLOCKS_LEAST : blocks > BLOCKS_MOST ? BLOCKS_MOST : blocks;
	x->edge = must_calloc(blocks + 1, sizeof(*x->edge));
	x->quota = quota_open(x->job->opt->session.pids, x->job->opt->session.n_pids);
	x->candidates = candidates_open(&x->job->opt->session, time_ns, blocks);
	x->take_ns = candidates_wait_ns(x->candidates);
	for (size_t i = 0; i <= blocks; i++) {
		wait_until(x, start + time_ns / blocks * i);
		if (!take_edge(x))
			break;
	}
	x->over = x->n_edges <= blocks;
}

/* The targets are counted and not delayed; a session that is interrupted lets go. */
static int open_session(struct explain *x, struct sb_err *err)
{
	struct sweep_job *job = x->job;

	if (job->progress_index == DRIVE_NONE)
		return 0;
	/* Untraced, except that a breakpoint needs a tracer. */
	job->opt->session.follow = job->opt->session.mechanism == MECHANISM_INT3;
	x->client = client_open(job->opt, job->backend, false, &job->outcome);
	if (!x->client) {
		*err = job->outcome.error;
		return -1;
	}
	x->reader = sweep_reader_new(job, x->client, job->opt->session.targets.count);
	return 0;
}

static void close_session(struct explain *x)
{
	sweep_reader_free(x->reader);
	if (x->client)
		client_close(x->client);
	result_free(x->job->outcome.result);
	x->job->outcome = (struct client_outcome){ 0 };
}

static void close_all(struct explain *x)
{
	for (size_t i = 0; i < x->n_edges; i++)
		evidence_reading_free(&x->edge[i].reading);
	free(x->edge);
	evidence_close(x->evidence);
	candidates_close(x->candidates);
	owners_close(x->owners);
	quota_close(x->quota);
}

static void name_futexes(const struct explain *x, struct explain_result *res)
{
	for (size_t i = 0; i < res->n_futexes; i++) {
		struct explain_futex *f = &res->futex[i];
		const char *symbol = owners_symbol(x->owners, f->number);

		f->symbol = symbol ? must_strdup(symbol) : NULL;
		for (size_t k = 0; k < EXPLAIN_CALLERS; k++) {
			const char *caller = owners_caller(x->owners, f->number, k);

			f->caller[k] = caller ? must_strdup(caller) : NULL;
		}
	}
}

static void name_threads(struct explain_result *res)
{
	for (size_t i = 0; i < res->n_threads; i++) {
		struct explain_thread *t = &res->thread[i];

		processes_thread_name(t->pid, t->tid, t->name, sizeof(t->name));
	}
}

static void describe(const struct explain *x, struct explain_result *res)
{
	if (x->job->progress_text)
		res->progress = must_strdup(x->job->progress_text);
	for (int i = 0; i < EVIDENCE_COUNTERS; i++) {
		const char *why = evidence_unknown(x->evidence, i);

		res->unknown[i] = why ? must_strdup(why) : NULL;
	}
	if (evidence_limit(x->evidence))
		res->limit = *evidence_limit(x->evidence);
	res->lost = evidence_lost(x->evidence);
	res->sample = evidence_sample(x->evidence);
	hardware_tell(x->evidence, &res->hardware);
	res->ended_early = x->over;
	quota_take(x->quota, &res->quota);
	name_threads(res);
	name_futexes(x, res);
}

static int check_measured(const struct explain *x, struct sb_err *err)
{
	double first, last;

	if (err->code && err->code != SB_ENOPROC)
		return -1;
	*err = (struct sb_err){ 0 };
	if (x->n_edges < 4) {
		err_set(err, SB_ENOPROC, "the target ended before enough was measured");
		err_hint(err, "watch one that runs on, or for a shorter --time");
		return -1;
	}
	first = x->edge[0].items;
	last = x->edge[x->n_edges - 1].items;
	if (last > first)
		return 0;
	err_set(err, SB_EFILE, "progress: '%s' %s: it was %.15g at the start, and %.15g at the end",
		x->job->progress_text, last < first ? "went back" : "does not move", first, last);
	err_hint(err, "is the program under load, and is this what counts its items?");
	return -1;
}

struct explain_result *explain_live(struct sweep_job *job, uint64_t time_ns, struct sb_err *err)
{
	struct explain x = { .job = job, .err = err };
	struct explain_result *res = NULL;

	if (open_session(&x, err) < 0)
		return NULL;
	x.owners = owners_open();
	x.evidence = witness_open(&job->opt->session, false);
	witness_begin(x.evidence, &job->opt->session);
	measure(&x, time_ns);
	if (check_measured(&x, err) == 0) {
		res = explain_infer(x.edge, x.n_edges, !evidence_limit(x.evidence));
		describe(&x, res);
	}
	close_session(&x);
	if (res)
		candidates_fill(x.candidates, job, res);
	close_all(&x);
	return res;
}
