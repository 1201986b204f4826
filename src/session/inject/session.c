/* SPDX-License-Identifier: MIT */
#include "priv.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "recover.h"
#include "device.h"
#include "python.h"
#include "inject/tree-task.h"
#include "src/base/log.h"
#include "src/base/must.h"

#define MS 1000000ull

enum {
	TICK_MS = 100,
	LEASE_MS = 1000,
	REFINE_MS = 1000,
	AWAIT_PYTHON_MS = 10000,
	ADOPT_MS = 300,
	SETTLE_MS = 1000
};

static int check_machine(struct inject_session *s, struct sb_err *err)
{
	int ret = 0;

	s->clock_ok = arch->clock_trusted(s->clock_why, sizeof(s->clock_why));
	for (size_t i = 0; i < s->n_targets && ret == 0; i++) {
		ret = inject_check_spec(&s->core, s->target[i].spec, err);
		s->filtered |= s->target[i].spec->thread != NULL;
	}
	return ret;
}

static void measure_machine(struct inject_session *s)
{
	clock_open(&s->clk);
	if (clock_hook_cost(&s->clk, s->cfg->by_function, &s->cost, &s->bench) < 0)
		session_warn(s,
			     "the hook's own cost could not be measured here and is not taken off");
	if (s->spans && clock_span_cost(s->cfg->by_function, s->cfg->trace_fd, &s->cost) < 0)
		session_warn(s, "the cost of measuring calls could not be measured here and is not "
				"taken off their times");
	for (size_t i = 0; i < s->n_targets; i++)
		values_measure(s, s->target[i].spec);
	log_debug("timed call: %.1f ns, %.1f ns of them in its own time",
		  clock_to_ns(&s->clk, s->cost.span_cost),
		  clock_to_ns(&s->clk, s->cost.span_within));
	log_debug("clock: %.4f ticks/ns, step %.0f ticks; hook: count %.1f ns, off %.1f ns, "
		  "delay +%.1f ns (within %.1f ns), floor %.1f ns, not the Nth %.1f ns",
		  s->clk.ticks_per_ns, s->clk.quantum_ticks, s->cost.count_ns, s->cost.off_ns,
		  clock_to_ns(&s->clk, s->cost.delay_ticks),
		  clock_to_ns(&s->clk, s->cost.spread_ticks), s->cost.floor_ns, s->cost.nth_ns);
	for (size_t i = 0; i < s->n_targets; i++) {
		const struct target *t = &s->target[i];
		bool int3 = s->cfg->mechanism == MECHANISM_INT3;

		if (t->delay_ns && (double)t->delay_ns < s->cost.floor_ns && !int3)
			session_warn(s,
				     "target '%s': a delay below %.0f ns cannot be given on this "
				     "machine; 'given' shows the actual delay",
				     t->spec->text, s->cost.floor_ns);
		if (int3 && t->delay_ns && t->delay_ns < 30000)
			session_warn(s,
				     "target '%s': by int3 each hit takes 8 to 30 us more than "
				     "the delay, for the trap",
				     t->spec->text);
	}
}

static void tracing_spec(struct inject_session *s, size_t target)
{
	const struct spec *spec = s->target[target].spec;
	uint8_t bit = s->own[target].span_bit;

	tracing_target(s->tracing, bit, spec->text, "");
	if (spec->n_values)
		values_trace(s->tracing, bit, spec);
}

/* The number of the nth timed target: no bit 63. */
static uint8_t span_bit_of(unsigned int n)
{
	return (uint8_t)(n + n / SB_PAGE_SPAN_BITS);
}

void own_init(struct inject_session *s, size_t target)
{
	const struct spec *spec = s->target[target].spec;
	struct own_target *own = &s->own[target];

	free(own->past_spans);
	*own = (struct own_target){ .timed = spec->timed };
	own->can_time = spec->timed ||
			(s->cfg->sweeping && session_can_time(s->backend, spec) &&
			 (spec->kind == SPEC_PYTHON || s->span_bits < SB_PAGE_SPAN_BITS));
	if (own->can_time && spec->kind != SPEC_PYTHON)
		own->span_bit = span_bit_of(s->span_bits++);
	if (s->attached_ns)
		values_measure(s, spec);
	if (s->tracing && own->can_time && spec->kind != SPEC_PYTHON)
		tracing_spec(s, target);
}

static int open_tracing(struct inject_session *s, struct sb_err *err)
{
	const struct session_config *cfg = s->cfg;

	if (!cfg->trace_fd)
		return 0;
	if (!arch->thread_pointer_readable())
		return err_set(err, SB_EREFUSED,
			       "calls cannot be recorded on this machine: programs may not use "
			       "RDFSBASE (Linux 5.9 and later permit it)");
	s->tracing = tracing_open(&(struct tracing_config){ .fd = cfg->trace_fd,
							    .clk = &s->clk,
							    .cost = &s->cost,
							    .min_ns = cfg->trace_min_ns,
							    .per_second = cfg->trace_rate,
							    .stacks = cfg->trace_stacks,
							    .follow = cfg->follow });
	if (!s->tracing)
		return err_set(err, SB_ESYS, "no thread could be started");
	for (size_t i = 0; i < s->n_targets; i++)
		if (s->own[i].can_time && s->target[i].spec->kind != SPEC_PYTHON)
			tracing_spec(s, i);
	return 0;
}

int inject_open(struct session_core *core, struct sb_err *err)
{
	struct inject_session *s = session_of(core);

	s->own = must_calloc(s->max_targets, sizeof(*s->own));
	s->spans = s->cfg->sweeping;
	for (size_t i = 0; i < s->n_targets; i++) {
		s->spans |= s->target[i].spec->timed;
		own_init(s, i);
		inject_time(core, i, s->cfg->timed);
	}
	tree_init(&s->tree, &session_tree_ops, s);
	s->answer_rings = session_rings;
	s->plans = plans_new();
	if (check_machine(s, err) < 0)
		return -(int)err->code;
	s->doorbells = doorbells_open();
	if (!s->doorbells)
		return err_set(err, SB_ESYS, "no thread could be started");
	if (s->cfg->look_only)
		clock_open(&s->clk);
	else
		measure_machine(s);
	doorbells_lease(s->doorbells, clock_ticks(&s->clk, LEASE_MS * 1e6));
	perfmap_open(s);
	return open_tracing(s, err);
}

void inject_close(struct session_core *core)
{
	struct inject_session *s = session_of(core);

	hook_bench_close(s->bench);
	device_close(s);
	tracing_close(s->tracing, &s->traced);
	tree_free(&s->tree);
	perfmap_close(s);
	while (s->records) {
		struct record *rec = s->records;

		s->records = rec->next;
		record_drop(s, rec);
	}
	for (size_t i = 0; i < s->n_sites; i++) {
		free(s->site[i].module);
		free(s->site[i].symbol);
		free(s->site[i].build_id);
	}
	python_sites_free(s);
	each_free(s);
	unrecorded_free(s);
	free(s->site);
	for (size_t i = 0; i < s->max_targets; i++)
		free(s->own[i].past_spans);
	free(s->own);
	free(s->device_why);
	foreign_free(&s->foreign);
	plans_free(s->plans);
	doorbells_close(s->doorbells);
}

static bool ends(void *s)
{
	return session_ends(s);
}

/*
 * Removes the dormant remains of an earlier session. If an agent is part of them, no other agent
 * can enter that interpreter; native targets are not affected.
 */
static void adopt_dormant(struct inject_session *s)
{
	uint64_t wait = (python_wanted(s) ? AWAIT_PYTHON_MS : ADOPT_MS) * MS, now = clock_ns();
	uint64_t until = now + wait;
	pid_t *pids;
	size_t n;

	if (s->cfg->launched)
		return;
	processes_descendants(s->cfg, &pids, &n);
	for (size_t i = 0; i < n && !session_ends(s); i++, now = clock_ns()) {
		struct sb_err why = { 0 };
		bool agent;

		if (space_has_dormant(pids[i], &agent) &&
		    !recover_dormant(pids[i], now < until ? until - now : 0, ends, s, &why) &&
		    agent && python_wanted(s))
			session_warn(s, "%s", why.what);
	}
	free(pids);
}

static int hook_all(struct inject_session *s, struct sb_err *err)
{
	struct record *rec;

	/* By pid: hooking dispatches events, which add and remove processes. */
	for (s->round++; (rec = record_next(s)); rec->looked = s->round) {
		struct proc *proc = tree_proc(&s->tree, rec->pid);
		struct sb_err why = { 0 };

		if (!proc || proc->session != rec)
			continue;
		if (session_hook(s, proc, false, &why) == 0 || why.code == SB_ENOPROC)
			continue;
		if (why.code == SB_EINTERRUPTED ||
		    (s->cfg->n_pids && rec->pid == s->cfg->pids[0])) {
			*err = why;
			return -(int)why.code;
		}
		session_bar(s, rec, &why);
	}
	return 0;
}

static void arm(struct inject_session *s)
{
	session_arm(&s->core);
	session_alive(s); /* the attach may have taken longer than a lease lasts */
	window_threads(s);
	if (s->tracing || s->cfg->name_threads)
		window_name_threads(s, 0, false);
	session_windows(&s->core, s->attached_ns);
	window_apply_all(s);
}

int inject_attach(struct session_core *core, struct sb_err *err)
{
	struct inject_session *s = session_of(core);
	int ret;

	adopt_dormant(s);
	session_hurry(true);
	ret = session_take_all(s, err);
	if (ret == 0)
		ret = hook_all(s, err);
	if (ret == 0) {
		/* Windows, --for and a COMMAND begin when their targets are watched. */
		if (!python_settle(s, AWAIT_PYTHON_MS))
			python_warn_of_late(s, AWAIT_PYTHON_MS);
		arm(s);
		python_settle(s, SETTLE_MS); /* agents apply the open windows */
		session_untrace(s);
	}
	session_hurry(false);
	s->hold_attach_ns = s->tree.longest_hold_ns;
	s->tree.longest_hold_ns = 0;
	return ret;
}

/* An untraced process has ended when its memory is gone. */
static void sweep_untraced(struct inject_session *s)
{
	struct proc *p = s->tree.procs, *next;
	char byte;

	for (; p; p = next) {
		next = p->next;
		if (p->traced ||
		    (!task_ended(p->pid) &&
		     (!p->space || !p->space->page_addr ||
		      memory_peek(&p->space->mem, p->space->page_addr, &byte, 1) == 1)))
			continue;
		s->tree.ops->ended(s, p, 0);
		tree_forget(&s->tree, p);
	}
}

/* The hook's cost is subtracted from delays: measures it again, in idle time, while delays are in
 * force. */
static void measure_again(struct inject_session *s)
{
	double was = s->cost.delay_ticks;
	bool any = false;

	for (size_t i = 0; i < s->n_targets && !any; i++)
		any = s->target[i].open && s->target[i].delay_ns && s->target[i].planted;
	if (!any || !s->bench || !hook_bench_step(s->bench, &s->cost))
		return;
	log_debug("hook: delay +%.1f ns, which was measured as %.1f before",
		  clock_to_ns(&s->clk, s->cost.delay_ticks), clock_to_ns(&s->clk, was));
	for (size_t i = 0; i < s->n_targets; i++)
		if (s->target[i].spec->kind != SPEC_PYTHON)
			window_apply_target(s, i);
}

static void tick(struct inject_session *s, uint64_t now, bool idle)
{
	pid_t asked;

	s->last_tick = now;
	tree_settle(&s->tree);
	if (s->filtered)
		window_threads(s);
	if (s->tracing && tracing_asks(s->tracing, &asked))
		window_name_threads(s, asked, true);
	if (!s->cfg->follow)
		sweep_untraced(s);
	else
		ids_step(s);
	if (now - s->last_refine > REFINE_MS * MS) {
		s->last_refine = now;
		clock_refine(&s->clk);
	}
	if (idle)
		measure_again(s);
}

static bool runs(const struct inject_session *s)
{
	return s->cfg->launched ? tree_proc(&s->tree, s->cfg->launched) != NULL :
				  s->tree.procs != NULL;
}

static void next_wake(const struct inject_session *s, uint64_t left, uint64_t window, int *next_ms)
{
	uint64_t until = TICK_MS * MS;

	if (window < until)
		until = window;
	if (s->slow_measuring && until > 10 * MS)
		until = 10 * MS;
	if (left < until)
		until = left;
	*next_ms = (int)((until + MS - 1) / MS);
}

enum session_end inject_step(struct session_core *core, int *next_ms, struct sb_err *err)
{
	struct inject_session *s = session_of(core);
	uint64_t now, window, left, count;
	bool more;

	session_alive(s);
	if (read(doorbells_fd(s->doorbells), &count, sizeof(count)) == sizeof(count))
		session_rings(s);
	more = tree_dispatch(&s->tree);
	now = clock_ns();
	device_reap(s);
	record_fold(s);
	tree_bury(&s->tree);
	if (now - s->last_tick >= TICK_MS * MS)
		tick(s, now, !more);
	window = session_windows(core, now);
	if ((python_step(s, now) | unrecorded_step(s, now) | device_step(s, now)) &&
	    window > 2 * MS)
		window = 2 * MS;
	unrecorded_let_go(s);
	if (session_slow(core, now, err))
		return SESSION_END_SLOWDOWN;
	session_untrace(s);
	perfmap_step(s);
	left = session_left(core, now);
	next_wake(s, left, window, next_ms);
	if (more)
		*next_ms = 0;
	if (!runs(s))
		return SESSION_END_TARGET;
	return left ? SESSION_RUNS : SESSION_END_FOR;
}

int inject_fd(const struct session_core *core)
{
	return doorbells_fd(session_of(core)->doorbells);
}
