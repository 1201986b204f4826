/* SPDX-License-Identifier: MIT */
#include "sides.h"
#include "sides-futex.h"

#include <math.h>
#include <stdlib.h>
#include "inject/clock.h"
#include "src/base/log.h"
#include "src/base/must.h"
#include "src/run/witness.h"

/* Where no evidence was asked for, a reading that takes longer is not worth the time that it takes
 * from the windows. */
#define UNASKED_MOST_NS 10000000ull

struct caller {
	pid_t pid, tid; /* tid 0: any of its threads */
};

struct sides {
	struct sweep_job *job;
	struct sweep_reader *reader;
	struct evidence *evidence;
	struct evidence_reading begin, end;
	struct sides_futexes *futexes; /* NULL: not known */
	struct caller *caller;	       /* of this window, sorted */
	size_t n_callers;
	uint64_t end_ns;     /* of this window */
	const bool *treated; /* whose waits in futexes are added up; NULL: of none */
};

/* The processes of a launched command are known to the session. */
static void add_processes(struct sides *s)
{
	struct sb_err err = { 0 };
	json_t *answer, *pid;
	size_t i;

	witness_add(s->evidence, &s->job->opt->session);
	answer = sweep_ask(s->reader, json_pack("{s:s}", "op", "status"), &err);
	json_array_foreach(json_object_get(answer, "pids"), i, pid)
		evidence_add(s->evidence, (pid_t)json_integer_value(pid));
	json_decref(answer);
	evidence_begin(s->evidence);
}

static bool too_slow(struct sides *s)
{
	uint64_t from = clock_ns(), took;

	sides_begin(s);
	took = clock_ns() - from;
	if (s->job->sides.asked || took < UNASKED_MOST_NS)
		return false;
	err_set(&s->job->sides.limit, SB_EUSAGE, "a reading of all threads takes %.0f ms",
		(double)took / 1e6);
	err_hint(&s->job->sides.limit, "--evidence reads them all the same");
	return true;
}

static bool is_unknown(const struct sides *s, size_t counter)
{
	bool proc = evidence_limit(s->evidence) != NULL;

	if (!s->job->sides.group[sides_group(counter)])
		return true;
	if (counter == SIDES_OFF_CPU)
		return !proc;
	return evidence_unknown(s->evidence, (enum evidence_counter)counter) != NULL;
}

static void describe(struct sides *s)
{
	struct sides_about *about = &s->job->sides;
	const struct sb_err *limit = evidence_limit(s->evidence);

	about->read = true;
	about->bpf = !limit;
	if (limit)
		about->limit = *limit;
	if (limit && about->asked)
		log_note("--evidence is what /proc has: %s; %s", limit->what, err_remedy(limit));
	for (size_t i = 0; i < SIDES_COUNTERS; i++)
		about->unknown[i] = is_unknown(s, i);
	about->sample = evidence_sample(s->evidence);
}

struct sides *sides_open(struct sweep_job *job, struct sweep_reader *reader)
{
	bool children = job->opt->session.children || !job->opt->session.n_pids;
	struct evidence_config cfg = { .groups = EVIDENCE_ALL,
				       .sample = job->opt->session.evidence_sample };
	struct sides *s;

	if (job->sides_off)
		return NULL;
	s = must_calloc(1, sizeof(*s));
	s->job = job;
	s->reader = reader;
	cfg.children = children;
	if (job->sides.group[GROUP_HARDWARE])
		cfg.groups |= 1u << GROUP_HARDWARE;
	s->evidence = job->sides.asked ? evidence_open(&cfg) : evidence_open_proc(children);
	add_processes(s);
	if (too_slow(s)) {
		evidence_close(s->evidence);
		evidence_reading_free(&s->begin);
		free(s);
		return NULL;
	}
	describe(s);
	if (job->sides.bpf)
		s->futexes = sides_futexes_open(job->cfg.n_targets);
	return s;
}

void sides_stop(struct sides *s)
{
	if (!s)
		return;
	s->job->sides.lost = evidence_lost(s->evidence);
	hardware_tell(s->evidence, &s->job->sides.hardware);
	sides_futexes_fill(s->futexes, &s->end, &s->job->sides);
	evidence_close(s->evidence);
	s->evidence = NULL;
}

void sides_close(struct sides *s, const struct sweep_result *res)
{
	if (!s)
		return;
	sides_futexes_compare(s->futexes, res, &s->job->sides);
	sides_futexes_close(s->futexes);
	evidence_reading_free(&s->begin);
	evidence_reading_free(&s->end);
	free(s->caller);
	free(s);
}

void sides_begin(struct sides *s)
{
	if (!s)
		return;
	evidence_reading_free(&s->begin);
	evidence_take(s->evidence, &s->begin);
}

void sides_end(struct sides *s)
{
	if (!s)
		return;
	evidence_reading_free(&s->end);
	evidence_take(s->evidence, &s->end);
	if (s->futexes)
		sides_futexes_look(s->futexes, s->evidence, &s->end);
}

void sides_window(struct sides *s, uint64_t end_ns)
{
	if (s)
		s->end_ns = end_ns;
}

/* ---- which side ---- */

static int by_thread(const void *a, const void *b)
{
	const struct caller *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static void find_callers(struct sides *s, const bool *treated, const struct sweep_reading *r)
{
	s->caller = must(reallocarray(s->caller, r->n_rows + 1, sizeof(*s->caller)));
	s->n_callers = 0;
	for (size_t i = 0; treated && i < r->n_rows; i++) {
		const struct sweep_row *row = &r->row[i];

		if (row->pid && row->hits && row->target < s->job->cfg.n_targets &&
		    treated[row->target])
			s->caller[s->n_callers++] = (struct caller){ row->pid, row->tid };
	}
	if (s->n_callers)
		qsort(s->caller, s->n_callers, sizeof(*s->caller), by_thread);
}

static bool calls(const struct sides *s, pid_t pid, pid_t tid)
{
	struct caller key = { pid, tid };

	return s->n_callers &&
	       bsearch(&key, s->caller, s->n_callers, sizeof(key), by_thread) != NULL;
}

/* It has done nothing since the sweep began. */
static bool idle(const struct evidence_thread *t)
{
	const uint64_t *of = t->values.of;

	return !of[EVIDENCE_ON_CPU] && !of[EVIDENCE_RUN_QUEUE] && !of[EVIDENCE_VOLUNTARY] &&
	       !of[EVIDENCE_INVOLUNTARY];
}

/* ---- the growth ---- */

static void add_off_cpu(const struct evidence_thread *t, const struct evidence_thread *was,
			double *to)
{
	const uint64_t *is = t->values.of;
	double ns = (double)t->span_ns - (double)(is[EVIDENCE_ON_CPU] + is[EVIDENCE_RUN_QUEUE]);

	if (was)
		ns -= (double)was->span_ns - (double)(was->values.of[EVIDENCE_ON_CPU] +
						      was->values.of[EVIDENCE_RUN_QUEUE]);
	*to += ns;
}

static void add_values(const struct evidence_values *v, double sign, double *to)
{
	for (int i = 0; i < EVIDENCE_COUNTERS; i++)
		to[i] += sign * (double)v->of[i];
}

static void add_thread(struct sides *s, const struct evidence_thread *t, double *delayed,
		       double *others)
{
	const struct evidence_thread *was = evidence_find(&s->begin, t);
	bool delays = calls(s, t->pid, t->tid) || calls(s, t->pid, 0);
	struct evidence_values d = t->values;

	if (was)
		evidence_values_take(&d, &was->values);
	if (delays)
		add_values(&d, 1, delayed);
	if (s->treated && (delays || !idle(t)))
		sides_futexes_add(s->futexes, s->treated, delays ? SIDE_DELAYED : SIDE_OTHERS, was,
				  t);
	if (delays || idle(t))
		add_values(&d, -1, others);
	if (delays || !idle(t))
		add_off_cpu(t, was, (delays ? delayed : others) + SIDES_OFF_CPU);
}

/* The sum has the threads that ended meanwhile, too. */
double *sides_between(struct sides *s, const bool *treated, bool shared,
		      const struct sweep_reading *last, uint64_t time_ns)
{
	struct evidence_values d;
	double *counter, scale;

	if (!s || !s->begin.n_threads || !s->end.n_threads || s->end.t_ns <= s->begin.t_ns)
		return NULL;
	counter = must_calloc((size_t)SIDE_COUNT * SIDES_COUNTERS, sizeof(*counter));
	s->treated = shared || !s->futexes ? NULL : treated;
	if (s->treated)
		sides_futexes_window(s->futexes, treated, s->end_ns);
	find_callers(s, treated, last);
	d = s->end.sum;
	evidence_values_take(&d, &s->begin.sum);
	add_values(&d, 1, counter + SIDES_COUNTERS);
	for (size_t i = 0; i < s->end.n_threads; i++)
		add_thread(s, &s->end.thread[i], counter, counter + SIDES_COUNTERS);
	scale = (double)time_ns / (double)(s->end.t_ns - s->begin.t_ns);
	for (size_t i = 0; i < (size_t)SIDE_COUNT * SIDES_COUNTERS; i++)
		counter[i] = s->job->sides.unknown[i % SIDES_COUNTERS] ?
				     NAN :
				     fmax(0, counter[i]) * scale;
	return counter;
}
