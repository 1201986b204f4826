/* SPDX-License-Identifier: MIT */
/* The evidence: what is computed of it, and what it sees of this very process. */
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "evidence/bpf/contention.h"
#include "evidence/class.h"
#include "evidence/evidence.h"
#include "evidence/proc.h"
#include "src/live/explain-infer.h"
#include "src/result/result.h"
#include "src/run/events.h"
#include "sweep/ratio.h"

static void names_are_distinct(void **state)
{
	(void)state;
	for (int i = 0; i < EVIDENCE_COUNTERS; i++) {
		assert_non_null(evidence_kinds[i].name);
		assert_non_null(evidence_kinds[i].help);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(evidence_kinds[i].name, evidence_kinds[k].name);
	}
	for (int i = 0; i < EVIDENCE_REASONS; i++) {
		size_t len = strlen(evidence_reason(i));

		assert_memory_equal(evidence_kinds[i].name, evidence_reason(i), len);
		assert_string_equal(evidence_kinds[i].name + len, "_ns");
	}
}

static void calls_have_classes(void **state)
{
	__u8 class_of[EVIDENCE_CALLS];

	(void)state;
	evidence_classes(class_of);
	assert_int_equal(class_of[SYS_futex], EVIDENCE_STATE_FUTEX);
	assert_int_equal(class_of[SYS_clock_nanosleep], EVIDENCE_STATE_SLEEP);
	assert_int_equal(class_of[SYS_read], EVIDENCE_BY_FILE);
	assert_int_equal(class_of[SYS_pread64], EVIDENCE_STATE_IO);
	assert_int_equal(class_of[SYS_recvfrom], EVIDENCE_STATE_NETWORK);
	assert_int_equal(class_of[SYS_ppoll], EVIDENCE_STATE_NETWORK);
	assert_int_equal(class_of[SYS_restart_syscall], EVIDENCE_RESTARTED);
	assert_int_equal(class_of[SYS_wait4], EVIDENCE_STATE_OTHER);
	assert_int_equal(class_of[EVIDENCE_CALLS - 1], EVIDENCE_STATE_OTHER);
}

static void ratio_has_interval(void **state)
{
	const double part[] = { 10, 22, 28, 40 }, items[] = { 1, 2, 3, 4 }, none[4] = { 0 };
	struct ratio r = ratio_of(part, items, 4, 0.95);

	(void)state;
	assert_true(fabs(r.est - 10) < 1e-12);
	/* Residuals 0, 2, -2, 0: sqrt(4 / 3 * 8) / 10 times t(0.975, 3) = 3.18245. */
	assert_true(fabs(r.hi - 10 - 3.18245 * sqrt(32.0 / 3) / 10) < 1e-4);
	assert_true(fabs(r.lo + r.hi - 20) < 1e-12);
	r = ratio_of(part, items, 2, 0.95);
	assert_true(isfinite(r.est) && isnan(r.lo) && isnan(r.hi));
	assert_true(isnan(ratio_of(part, none, 4, 0.95).est));
}

/* A thread spins for a mutex, sleeps, is woken too late, spins and sleeps again: one wait, from the
 * first begin. A second spinlock at the same address is a second wait. */
static void a_mutex_begins_several_times(void **state)
{
	enum { SPINS = CONTENTION_MUTEX | CONTENTION_SPIN };
	struct evidence_lock lock[EVIDENCE_LOCKS] = { 0 }, *begun;

	(void)state;
	begun = contention_begin(lock, 0x1000, SPINS);
	assert_ptr_equal(begun, &lock[EVIDENCE_LOCK_MUTEX]);
	begun->since = 10;
	assert_null(contention_begin(lock, 0x1000, CONTENTION_MUTEX));
	assert_null(contention_begin(lock, 0x1000, SPINS));
	assert_null(contention_begin(lock, 0x1000, CONTENTION_MUTEX));
	begun = contention_begin(lock, 0x2000, CONTENTION_SPIN); /* an interrupt */
	assert_ptr_equal(begun, &lock[EVIDENCE_LOCK_SPIN]);
	assert_non_null(contention_begin(lock, 0x2000, CONTENTION_SPIN));
	assert_int_equal(contention_end(lock, 0x2000), EVIDENCE_LOCK_SPIN);
	assert_int_equal(contention_end(lock, 0x2000), EVIDENCE_LOCKS);
	assert_int_equal(lock[EVIDENCE_LOCK_MUTEX].since, 10);
	assert_int_equal(contention_end(lock, 0x1000), EVIDENCE_LOCK_MUTEX);
	assert_non_null(contention_begin(lock, 0x1000, SPINS)); /* the next wait */
	assert_ptr_equal(contention_begin(lock, 0x3000, 2), &lock[EVIDENCE_LOCK_RWSEM]);
}

/* ---- the breakdown ---- */

enum { BLOCKS = 6 };

enum { FUTEXES = 12 };

struct world {
	struct explain_edge edge[BLOCKS + 1];
	struct evidence_futex futex[BLOCKS + 1][FUTEXES];
	struct evidence_thread thread[BLOCKS + 1][3];
};

static void set_thread(struct evidence_thread *t, pid_t tid, uint64_t t_ns, const uint64_t *ns)
{
	*t = (struct evidence_thread){ .pid = 1, .tid = tid, .began_ns = 5, .t_ns = t_ns };
	for (int i = 0; i < EVIDENCE_REASONS; i++) {
		t->values.of[i] = ns[i];
		t->span_ns += ns[i];
	}
	t->values.of[EVIDENCE_VOLUNTARY] = ns[EVIDENCE_ON_CPU] / 100;
}

/*
 * Blocks of a second, with 10 items each. The first thread works for 0.7 s and waits for 0.3 s, the
 * second works for 0.1 s and sleeps for 0.9 s, the third sleeps. lost: ns of the first thread that
 * are missing in its counters.
 */
static void make_world(struct world *w, uint64_t lost)
{
	const uint64_t s = 1000000000;

	memset(w, 0, sizeof(*w));
	for (uint64_t b = 0; b <= BLOCKS; b++) {
		struct evidence_reading *r = &w->edge[b].reading;
		uint64_t a[EVIDENCE_REASONS] = { [EVIDENCE_ON_CPU] = b * (s / 10 * 7 - lost),
						 [EVIDENCE_FUTEX] = b * s / 10 * 3 };
		uint64_t c[EVIDENCE_REASONS] = {
			[EVIDENCE_ON_CPU] = b * s / 10, [EVIDENCE_SLEEP] = b * s / 10 * 9
		};
		uint64_t idle[EVIDENCE_REASONS] = { [EVIDENCE_SLEEP] = b * s };

		r->t_ns = 7 * s + b * s;
		set_thread(&w->thread[b][0], 10, r->t_ns, a);
		set_thread(&w->thread[b][1], 11, r->t_ns, c);
		set_thread(&w->thread[b][2], 12, r->t_ns, idle);
		r->thread = w->thread[b];
		r->n_threads = 3;
		for (int i = 0; i < 3; i++)
			evidence_values_add(&r->sum, &w->thread[b][i].values);
		w->edge[b].items = 100 + 10 * (double)b;
		r->futex = w->futex[b];
		r->n_futexes = FUTEXES;
	}
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

static void parts_add_up(void **state)
{
	static struct world w;
	struct explain_result *res;
	double sum = 0;

	(void)state;
	make_world(&w, 0);
	res = explain_infer(w.edge, BLOCKS + 1, true);
	assert_int_equal(res->blocks, BLOCKS);
	assert_true(near(res->items, 60) && near(res->time_s, 6));
	assert_true(near(res->time_per_item.est, 1e8));
	assert_true(near(res->threads, 2));
	assert_int_equal(res->idle, 1);
	for (int r = 0; r < EVIDENCE_REASONS; r++)
		sum += res->whole.reason[r].est;
	assert_true(near(sum, 1e8));
	assert_true(near(res->whole.reason[EVIDENCE_ON_CPU].est, 0.4e8));
	assert_true(near(res->whole.reason[EVIDENCE_FUTEX].est, 0.15e8));
	assert_true(near(res->whole.reason[EVIDENCE_SLEEP].est, 0.45e8));
	assert_true(near(res->whole.off_cpu.est, 0.6e8));
	assert_true(near(res->counter[EVIDENCE_ON_CPU].est, 0.8e8));
	assert_int_equal(res->n_threads, 2);
	assert_int_equal(res->thread[0].tid, 10);
	assert_true(near(res->thread[0].watched, 1));
	assert_true(near(res->thread[0].part.reason[EVIDENCE_ON_CPU].est, 0.7e8));
	assert_true(near(res->thread[1].part.reason[EVIDENCE_SLEEP].est, 0.9e8));
	assert_true(res->adds_up && res->off_by < 1e-12);
	explain_free(res);
}

/*
 * Of the 0.3 s a block that the first thread waits, address 1 has 2 %, address 2 has 3 %, and so on
 * up to address 10 with 11 %; address 11 has 20 %, and 15 % are of no address.
 */
static void futexes_add_up(void **state)
{
	static struct world w;
	struct explain_result *res;
	double sum = 0;

	(void)state;
	make_world(&w, 0);
	for (uint64_t b = 0; b <= BLOCKS; b++)
		for (size_t i = 0; i < FUTEXES; i++)
			w.futex[b][i] = (struct evidence_futex){
				.addr = 0x1000 * i,
				.pid = i ? 1 : 0,
				.ns = b * 3000000 *
				      (i == 0 ? 15 :
				       i < 11 ? i + 1 :
						20),
				.waits = b * i,
			};
	res = explain_infer(w.edge, BLOCKS + 1, true);
	assert_int_equal(res->n_futexes, EXPLAIN_FUTEXES);
	assert_int_equal(res->futex[0].number, 11); /* the longest one is first */
	assert_int_equal(res->futex[1].number, 10);
	assert_int_equal(res->futex[1].addr, 0xa000);
	assert_true(near(res->futex[1].all.est, 0.033e8 / 1));
	assert_true(near(res->futex[1].time.est, 0.033e8 / 2));
	assert_true(near(res->futex[1].waits.est, 1));
	assert_int_equal(res->futexes_rest, 3);
	for (int i = 0; i < EXPLAIN_FUTEXES; i++)
		sum += res->futex[i].time.est;
	assert_true(near(sum + res->futex_rest.time.est, res->whole.reason[EVIDENCE_FUTEX].est));
	assert_true(res->futexes_add_up && res->futexes_off_by < 1e-12);
	explain_free(res);

	w.futex[BLOCKS][11].ns /= 2; /* time that is missing is reported */
	res = explain_infer(w.edge, BLOCKS + 1, true);
	assert_true(!res->futexes_add_up && near(res->futexes_off_by, 0.1));
	explain_free(res);
}

/* A thread that does nothing waits all the time: that is no one's wait for an item. */
static void idle_waits_are_left_out(void **state)
{
	static struct world w;
	struct explain_result *res;

	(void)state;
	make_world(&w, 0);
	for (uint64_t b = 0; b <= BLOCKS; b++) {
		struct evidence_thread *idle = &w.thread[b][2];
		uint64_t ns = b * 1000000000;

		w.futex[b][1] = (struct evidence_futex){ 0x1000, 1, b * 300000000 + ns, b };
		idle->futex[3] = (struct evidence_futex_part){ 1, ns, 0 };
		idle->values.of[EVIDENCE_SLEEP] = 0;
		idle->values.of[EVIDENCE_FUTEX] = ns;
		w.edge[b].reading.sum.of[EVIDENCE_SLEEP] -= ns;
		w.edge[b].reading.sum.of[EVIDENCE_FUTEX] += ns;
	}
	res = explain_infer(w.edge, BLOCKS + 1, true);
	assert_int_equal(res->idle, 1);
	assert_int_equal(res->n_futexes, 1);
	assert_true(near(res->futex[0].all.est, 0.3e8));
	assert_true(res->futexes_add_up && res->futexes_off_by < 1e-9);
	explain_free(res);
}

static void missing_time_is_reported(void **state)
{
	static struct world w;
	struct explain_result *res;

	(void)state;
	make_world(&w, 100000000);
	res = explain_infer(w.edge, BLOCKS + 1, true);
	assert_false(res->adds_up);
	assert_true(near(res->off_by, 0.1));
	explain_free(res);
}

/* /proc has the time on a processor and in the run queue; the span is that of the clock. */
static void proc_has_a_part(void **state)
{
	static struct world w;
	struct explain_result *res;

	(void)state;
	make_world(&w, 0);
	res = explain_infer(w.edge, BLOCKS + 1, false);
	assert_true(near(res->whole.reason[EVIDENCE_ON_CPU].est, 0.4e8));
	assert_true(isnan(res->whole.reason[EVIDENCE_FUTEX].est));
	assert_true(near(res->whole.off_cpu.est, 0.6e8));
	assert_true(isnan(res->off_by) && !res->adds_up);
	explain_free(res);
}

/* ---- this process ---- */

static const struct evidence_config all = { .children = true, .groups = EVIDENCE_ALL };

enum { SLEEPS = 20 };

static void *sleeper(void *arg)
{
	(void)arg;
	for (int i = 0; i < SLEEPS; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	return NULL;
}

static void spin(void)
{
	struct timespec ts;
	long until;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	until = ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + 50;
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	} while (ts.tv_sec * 1000 + ts.tv_nsec / 1000000 < until);
}

static void take_work(struct evidence *e, struct evidence_values *out)
{
	struct evidence_reading before, after;
	pthread_t thread;

	evidence_add(e, getpid());
	evidence_add(e, getpid());
	evidence_take(e, &before);
	assert_int_equal(before.n_threads, 1);
	assert_int_equal(before.thread[0].tid, getpid());
	assert_int_equal(pthread_create(&thread, NULL, sleeper, NULL), 0);
	spin();
	pthread_join(thread, NULL);
	evidence_take(e, &after);
	*out = after.sum;
	evidence_values_take(out, &before.sum);
	evidence_reading_free(&before);
	evidence_reading_free(&after);
}

/* A thread that begins and ends between two readings is in the sum. */
static void bpf_sees_this_process(void **state)
{
	struct evidence *e = evidence_open(&all);
	struct evidence_values v;

	(void)state;
	if (evidence_limit(e)) {
		print_message("no BPF: %s\n", evidence_limit(e)->what);
		evidence_close(e);
		skip();
	}
	take_work(e, &v);
	assert_true(v.of[EVIDENCE_ON_CPU] >= 45000000);
	/* One that is preempted on its way to sleep may find that it is over. */
	assert_in_range(v.of[EVIDENCE_WAITS + EVIDENCE_SLEEP - EVIDENCE_FUTEX], SLEEPS / 2, SLEEPS);
	assert_true(v.of[EVIDENCE_SLEEP] >= SLEEPS / 2 * 1900000ull);
	assert_true(v.of[EVIDENCE_VOLUNTARY] >= SLEEPS / 2);
	assert_int_equal(evidence_lost(e), 0);
	/* Not each kernel permits a program at one of its functions. */
	for (int i = 0; i < EVIDENCE_COUNTERS; i++)
		if (i != EVIDENCE_FILE_OPENS && evidence_kinds[i].group != GROUP_HARDWARE)
			assert_null(evidence_unknown(e, i));
	evidence_close(e);
}

/* ---- more futexes than a thread's row has room for ---- */

enum { WORDS = 40, ROUNDS = 3 };

static uint32_t word[WORDS][16];

static void *waiter(void *arg)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	(void)arg;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < WORDS; i++)
			syscall(SYS_futex, word[i], FUTEX_WAIT_PRIVATE, 0, &ms, NULL, 0);
	return NULL;
}

static const struct evidence_futex *futex_at(const struct evidence_reading *r, const void *addr)
{
	for (size_t i = 1; i < r->n_futexes; i++)
		if (r->futex[i].addr == (uint64_t)(uintptr_t)addr)
			return &r->futex[i];
	return NULL;
}

/* No wait is lost where a slot gives way to another address, nor where a thread ends. */
static void every_futex_is_counted(void **state)
{
	struct evidence *e = evidence_open(&all);
	struct evidence_reading r;
	uint64_t ns = 0, waits = 0;
	pthread_t thread;

	(void)state;
	if (evidence_limit(e)) {
		evidence_close(e);
		skip();
	}
	evidence_add(e, getpid());
	assert_int_equal(pthread_create(&thread, NULL, waiter, NULL), 0);
	pthread_join(thread, NULL);
	evidence_take(e, &r);
	for (int i = 0; i < WORDS; i++) {
		const struct evidence_futex *f = futex_at(&r, word[i]);

		assert_non_null(f);
		/* One that is preempted on its way to sleep may find that it is over. */
		assert_in_range(f->waits, 1, ROUNDS);
		assert_true(f->ns >= f->waits * 500000);
		assert_int_equal(f->pid, getpid());
	}
	for (size_t i = 0; i < r.n_futexes; i++) {
		ns += r.futex[i].ns;
		waits += r.futex[i].waits;
	}
	assert_int_equal(ns, r.sum.of[EVIDENCE_FUTEX]);
	assert_int_equal(waits, r.sum.of[EVIDENCE_WAITS]);
	evidence_reading_free(&r);
	evidence_close(e);
}

/* ---- each pause ---- */

enum { TURNS = 20000 };

static struct {
	uint32_t turn, unused[15];
} ball;

/* Two threads on one processor that pass a turn. */
static void *player(void *arg)
{
	uint32_t mine = arg != NULL;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (int i = 0; i < TURNS; i++) {
		while (__atomic_load_n(&ball.turn, __ATOMIC_ACQUIRE) != mine)
			syscall(SYS_futex, &ball.turn, FUTEX_WAIT_PRIVATE, !mine, NULL, NULL, 0);
		__atomic_store_n(&ball.turn, !mine, __ATOMIC_RELEASE);
		syscall(SYS_futex, &ball.turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return NULL;
}

struct recorded {
	const struct evidence_reading *until;
	struct evidence_pauses sum;
	uint64_t n, last_ns;
	char name[32];
};

static void take_pause(void *ctx, const struct evidence_pause *pause)
{
	struct recorded *recorded = ctx;
	const struct evidence_thread *t = evidence_find(
		recorded->until,
		&(struct evidence_thread){ .tid = pause->tid, .began_ns = pause->began_ns });

	if (t && pause->number >= t->pauses)
		return; /* this thread's, behind the reading */
	assert_true(pause->t_ns >= recorded->last_ns && pause->pid == getpid());
	recorded->last_ns = pause->t_ns;
	recorded->sum.n[pause->reason] += pause->counted;
	recorded->sum.ns[pause->reason] += pause->wait_ns;
	recorded->sum.ns[EVIDENCE_RUN_QUEUE] += pause->queue_ns;
	recorded->n++;
	snprintf(recorded->name, sizeof(recorded->name), "%s", pause->name);
}

static void play(void)
{
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, player, i ? &ball : NULL), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

/* What finds no room, because no reader takes it away, and what is left out are known to the ns. */
static void pauses_add_up(unsigned int sample, struct recorded *recorded, uint64_t *lost)
{
	const struct evidence_config cfg = { .groups = EVIDENCE_ALL,
					     .pauses = true,
					     .sample = sample };
	struct evidence *e = evidence_open(&cfg);
	enum evidence_counter differs = 0;
	struct evidence_reading r;

	if (evidence_limit(e)) {
		evidence_close(e);
		skip();
	}
	evidence_add(e, getpid());
	play();
	evidence_take(e, &r);
	recorded->until = &r;
	evidence_pauses(e, UINT64_MAX, SIZE_MAX, take_pause, recorded);
	*lost = r.pauses_lost;
	assert_true(recorded->n > 100);
	assert_true(events_agree(&r.sum, &recorded->sum, &r.unrecorded, &differs));
	evidence_reading_free(&r);
	evidence_close(e);
}

static void lost_pauses_are_counted(void **state)
{
	struct recorded recorded = { 0 };
	uint64_t lost;

	(void)state;
	pauses_add_up(1, &recorded, &lost);
	assert_true(lost > 100);
	assert_true(recorded.sum.ns[EVIDENCE_FUTEX] > 0);
}

static void sampled_pauses_are_counted(void **state)
{
	struct recorded recorded = { 0 };
	uint64_t lost;

	(void)state;
	pauses_add_up(10, &recorded, &lost);
	assert_int_equal(lost, 0);
	assert_in_range(recorded.n, TURNS / 20, TURNS);
}

static void proc_sees_this_process(void **state)
{
	struct evidence_proc *p = evidence_proc_open(true);
	struct evidence_reading before = { 0 }, after = { 0 };

	(void)state;
	evidence_proc_add(p, getpid());
	evidence_proc_take(p, &before);
	spin();
	evidence_proc_take(p, &after);
	assert_int_equal(after.n_threads, 1);
	evidence_values_take(&after.sum, &before.sum);
	/* The kernel adds up a running thread's time at its ticks. */
	assert_true(after.sum.of[EVIDENCE_ON_CPU] >= 25000000);
	assert_int_equal(after.sum.of[EVIDENCE_FUTEX], 0);
	assert_true(evidence_proc_knows(EVIDENCE_ON_CPU));
	assert_false(evidence_proc_knows(EVIDENCE_FUTEX));
	assert_null(evidence_find(&before, &(struct evidence_thread){ .tid = 1, .began_ns = 2 }));
	assert_ptr_equal(evidence_find(&before, &after.thread[0]), &before.thread[0]);
	evidence_reading_free(&before);
	evidence_reading_free(&after);
	evidence_proc_close(p);
}

/* ---- the document of a run ---- */

static void result_reads_back(void **state)
{
	struct result *res = result_new(0), *back = NULL;
	struct result_evidence *e = &res->evidence;
	struct sb_err err = { 0 };
	char *text;

	(void)state;
	e->source = strdup("proc");
	e->limit = strdup("not permitted");
	e->time_s = 1.5;
	e->sum.of[EVIDENCE_ON_CPU] = 42;
	e->unknown[EVIDENCE_FUTEX] = true;
	e->thread = calloc(1, sizeof(*e->thread));
	e->n_threads = 1;
	e->thread[0] =
		(struct result_evidence_thread){ .pid = 3, .tid = 4, .name = strdup("w\xff") };
	e->thread[0].values.of[EVIDENCE_VOLUNTARY] = UINT64_MAX;
	e->stream = (struct result_stream){
		.asked = true, .waits = 7, .lost = 8, .unwritten = 9, .agrees = true
	};
	text = result_to_json(res, true);
	assert_non_null(strstr(text, "\"futex_ns\": null"));
	assert_int_equal(result_from_json(text, &back, &err), 0);
	assert_string_equal(back->evidence.source, "proc");
	assert_string_equal(back->evidence.limit, "not permitted");
	assert_null(back->evidence.remedy);
	assert_true(back->evidence.time_s == 1.5 && back->evidence.unknown[EVIDENCE_FUTEX]);
	assert_false(back->evidence.unknown[EVIDENCE_IO]);
	assert_int_equal(back->evidence.sum.of[EVIDENCE_ON_CPU], 42);
	assert_memory_equal(&back->evidence.stream, &e->stream, sizeof(e->stream));
	assert_int_equal(back->evidence.n_threads, 1);
	assert_string_equal(back->evidence.thread[0].name, "w\xff");
	assert_true(back->evidence.thread[0].values.of[EVIDENCE_VOLUNTARY] == UINT64_MAX);
	result_free(back);
	free(text);
	free(e->source);
	e->source = NULL;
	text = result_to_json(res, true);
	assert_null(strstr(text, "evidence"));
	free(text);
	result_free(res);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_distinct),
		cmocka_unit_test(calls_have_classes),
		cmocka_unit_test(ratio_has_interval),
		cmocka_unit_test(a_mutex_begins_several_times),
		cmocka_unit_test(parts_add_up),
		cmocka_unit_test(futexes_add_up),
		cmocka_unit_test(idle_waits_are_left_out),
		cmocka_unit_test(missing_time_is_reported),
		cmocka_unit_test(proc_has_a_part),
		cmocka_unit_test(bpf_sees_this_process),
		cmocka_unit_test(every_futex_is_counted),
		cmocka_unit_test(lost_pauses_are_counted),
		cmocka_unit_test(sampled_pauses_are_counted),
		cmocka_unit_test(proc_sees_this_process),
		cmocka_unit_test(result_reads_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
