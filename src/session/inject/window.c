/* SPDX-License-Identifier: MIT */
/*
 * Puts in force when a target counts and delays, and in which threads: all by stores into the
 * control pages.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "priv.h"
#include "python.h"
#include "elf/symbol.h"
#include "src/base/must.h"

enum { OVERRUN_NS = 200, PAUSE_ABOVE_NS = 1000, MAX_FILTER = 4096 };

/* The measured time that a stub may carry from hit to hit, to even out the steps of the clock. */
static uint64_t residual_max(const struct inject_session *s, uint64_t delay_ticks)
{
	return delay_ticks / 2 + (uint64_t)(4 * s->clk.quantum_ticks);
}

/*
 * A spin that ends later than this was interrupted: by the machine, the kernel or a signal handler
 * of the target. Any other spin ends within one step of the spin, which the floor includes.
 */
static uint64_t overrun_limit(const struct inject_session *s)
{
	double floor = 4 * s->cost.floor_ns;

	return clock_ticks(&s->clk, floor > OVERRUN_NS ? floor : OVERRUN_NS);
}

static void setting_of(const struct inject_session *s, const struct target *t,
		       struct page_setting *set)
{
	double ticks = (double)clock_ticks(&s->clk, (double)t->delay_ns) / target_delays(t->spec) -
		       target_cost_ticks(s, (size_t)(t - s->target));

	memset(set, 0, sizeof(*set));
	set->enabled = t->open;
	set->delay = t->delay_ns > 0 && !s->slow_measuring;
	/* Of at=exit alone, the exits are the only sites. */
	set->delay_exit = set->delay && t->spec->at &&
			  (s->own[t - s->target].can_time || t->spec->at == SPEC_AT_BOTH);
	if (t->spec->at == SPEC_AT_EXIT && set->delay_exit)
		set->delay = false;
	set->filter = t->spec->thread != NULL;
	set->spans = s->own[t - s->target].timed;
	set->span_bit = s->own[t - s->target].span_bit;
	values_setting(t->spec, set->value);
	set->delay_ticks = ticks > 0 ? (uint64_t)(ticks + 0.5) : 0;
	set->every = t->every;
	set->overrun_limit = overrun_limit(s);
	set->residual_max = residual_max(s, set->delay_ticks);
	set->pause_above = clock_ticks(&s->clk, PAUSE_ABOVE_NS);
}

/* Process 0 is the entry of unregistered processes, children that were never seen: a pid= target
 * cannot tell which of them it includes. */
static void apply_unregistered(struct page *page, size_t i, const struct target *t,
			       const struct page_setting *set)
{
	struct page_setting copy = *set;

	copy.enabled = set->enabled && !t->spec->pid && !t->spec->thread;
	page_set(page, 0, (uint32_t)i, &copy);
}

static void apply_target(struct inject_session *s, struct record *rec, size_t i)
{
	struct space *space = rec->space;
	struct page_setting set;
	bool spans;

	setting_of(s, &s->target[i], &set);
	spans = set.spans;
	set.spans = false; /* an unregistered process has no space for them */
	space_allow(space, page_most_shift(&set));
	apply_unregistered(&space->control->page, i, &s->target[i], &set);
	set.enabled = set.enabled && rec->in_scope[i];
	set.spans = spans;
	if (space->proc)
		page_set(&space->control->page, space->proc, (uint32_t)i, &set);
	if (space->control->page.spans_full && !s->spans_full) {
		s->spans_full = true;
		session_warn(s,
			     "there is no space for the times of so many targets and processes: "
			     "from process %d on, calls count as missed",
			     rec->pid);
	}
}

void window_apply(struct inject_session *s, struct record *rec)
{
	if (!rec->space || !rec->space->control)
		return;
	for (size_t i = 0; i < s->n_targets; i++)
		apply_target(s, rec, i);
	python_changed(s, rec);
}

void window_apply_target(struct inject_session *s, size_t target)
{
	for (struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && rec->space && rec->space->control)
			apply_target(s, rec, target);
}

void window_arguments(struct inject_session *s)
{
	for (size_t i = 0; i < s->n_targets; i++) {
		struct target *t = &s->target[i];

		if (!t->arguments_new)
			continue;
		t->arguments_new = false;
		if (s->tracing && s->own[i].can_time)
			values_trace(s->tracing, s->own[i].span_bit, t->spec);
		window_apply_target(s, i);
		if (t->left_out)
			session_warn(s, "target '%s': %s", t->spec->text, t->left_out);
	}
}

void window_apply_all(struct inject_session *s)
{
	for (struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended)
			window_apply(s, rec);
}

/* An agent has to apply what opens and closes. */
void inject_apply(struct session_core *core, size_t target)
{
	struct inject_session *s = session_of(core);

	window_apply_target(s, target);
	for (struct record *rec = s->records; rec; rec = rec->next)
		if (s->target[target].spec->kind == SPEC_PYTHON && !rec->ended && rec->space &&
		    rec->space->control)
			python_changed(s, rec);
}

static bool thread_matches(const char *wanted, pid_t tid)
{
	char path[64], comm[64] = "";
	FILE *f;

	if (wanted[0] && !wanted[strspn(wanted, "0123456789")] && strtol(wanted, NULL, 10) == tid)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(comm, sizeof(comm), f))
		comm[0] = '\0';
	fclose(f);
	comm[strcspn(comm, "\n")] = '\0';
	return glob_match(wanted, comm);
}

/* The pointer of a thread is read while the thread is stopped anyway; else it is stopped once for
 * this. */
static uint64_t thread_pointer(struct inject_session *s, struct thread *t)
{
	struct arch_regs regs;

	if (t->thread_pointer)
		return t->thread_pointer;
	if (!tree_stop_thread(&s->tree, t, 20000))
		return 0;
	if (pt_get_regs(t->tid, &regs) == 0)
		t->thread_pointer = arch->thread_pointer(&regs);
	tree_resume_thread(&s->tree, t);
	return t->thread_pointer;
}

static void filter_process(struct inject_session *s, struct proc *proc, size_t target)
{
	const char *wanted = s->target[target].spec->thread;
	uint64_t base[MAX_FILTER];
	pid_t tids[MAX_FILTER];
	struct sb_err err = { 0 };
	size_t n_tids = 0, n = 0;
	pid_t pid = proc->pid;

	/* By id: reading a thread pointer dispatches events, which may change the list. */
	for (struct thread *t = proc->threads; t && n_tids < MAX_FILTER; t = t->next)
		tids[n_tids++] = t->tid;
	for (size_t i = 0; i < n_tids; i++) {
		struct thread *t = tree_thread(&s->tree, tids[i]);
		uint64_t tp;

		if (!t || !thread_matches(wanted, t->tid))
			continue;
		tp = thread_pointer(s, t);
		if (tp)
			base[n++] = tp;
	}
	proc = tree_proc(&s->tree, pid);
	if (proc && proc->space && proc->space->control && proc->space->proc &&
	    page_set_threads(&proc->space->control->page, proc->space->proc, (uint32_t)target, base,
			     n, &err) < 0)
		session_warn(s, "%s", err.what);
}

void window_threads(struct inject_session *s)
{
	for (size_t i = 0; i < s->n_targets && s->filtered; i++) {
		if (!s->target[i].spec->thread)
			continue;
		/* By record: dispatched events may free processes meanwhile. */
		for (struct record *rec = s->records; rec; rec = rec->next) {
			struct proc *p = rec->ended ? NULL : tree_proc(&s->tree, rec->pid);

			if (p && p->traced && p->space)
				filter_process(s, p, i);
		}
	}
}

void window_name_thread(struct inject_session *s, struct record *rec, pid_t tid, uint64_t pointer)
{
	size_t i = 0;

	if (!s->cfg->name_threads || !rec)
		return;
	while (i < rec->n_named && rec->named[i].pointer != pointer)
		i++;
	if (i == rec->n_named)
		rec->named = must(reallocarray(rec->named, ++rec->n_named, sizeof(*rec->named)));
	rec->named[i] = (struct named_thread){ tid, pointer };
}

static void name_process(struct inject_session *s, struct record *rec, bool again)
{
	const struct proc *proc = tree_proc(&s->tree, rec->pid);
	pid_t pid = rec->pid;
	pid_t tids[MAX_FILTER];
	size_t n = 0;

	if (!proc || !proc->traced)
		return;
	/* By id, as in filter_process(). */
	for (const struct thread *t = proc->threads; t && n < MAX_FILTER; t = t->next)
		tids[n++] = t->tid;
	for (size_t i = 0; i < n; i++) {
		struct thread *t = tree_thread(&s->tree, tids[i]);
		uint64_t pointer;

		if (!t)
			continue;
		if (again)
			t->thread_pointer = 0;
		pointer = thread_pointer(s, t);
		if (!pointer)
			continue;
		window_name_thread(s, rec, tids[i], pointer);
		if (s->tracing)
			tracing_thread(s->tracing, pid, tids[i], pointer, true);
	}
}

void window_name_threads(struct inject_session *s, pid_t pid, bool again)
{
	/* By record: dispatched events may free processes meanwhile. */
	for (struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended && (!pid || rec->pid == pid))
			name_process(s, rec, again);
}

void inject_time(struct session_core *core, size_t target, bool on)
{
	struct inject_session *s = session_of(core);
	struct own_target *own = &s->own[target];

	if (own->timed == on || !own->can_time || s->target[target].spec->timed)
		return;
	own->timed = on;
	own->timed_once = true;
	window_apply_all(s);
}
