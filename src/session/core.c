/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <stdlib.h>
#include <unistd.h>
#include "inject/clock.h"
#include "src/base/must.h"

/* In the words of a user of time=yes, and of `sbinject trace`. */
static int check_timed(const struct backend *backend, const struct session_config *cfg,
		       const struct spec *spec, struct sb_err *err)
{
	if (!spec->timed || (backend->times && backend->times_of_kernel == spec_in_kernel(spec)))
		return 0;
	err_set(err, SB_EUSAGE,
		"target '%s': the %s backend cannot %s: it hooks functions only where they begin",
		spec->text, backend->name,
		spec->n_values || spec->arguments ?
			"record arguments and return values (arg=, args=, ret)" :
			"measure how long calls take (time=yes)");
	err_hint(err, cfg->all ? "--backend inject can: name the processes with -p" :
				 "--backend inject can");
	return -SB_EUSAGE;
}

/* A request of sbctl's; the command line gives them a session of their own. */
static int check_place(const struct backend *backend, const struct spec *spec, struct sb_err *err)
{
	if (!spec_in_kernel(spec) || backend->times_of_kernel)
		return 0;
	err_set(err, SB_EUSAGE, "target '%s': a session of the %s backend has none in the kernel",
		spec->text, backend->name);
	err_hint(err, "start a session for it: sbinject %s 0 -p PID", spec->text);
	return -SB_EUSAGE;
}

int session_check_traced(const struct session_config *cfg, struct sb_err *err)
{
	if (cfg->look_only || cfg->mechanism != MECHANISM_INT3 || (cfg->follow && cfg->children))
		return 0;
	err_set(err, SB_EUSAGE,
		"--mechanism int3 needs the tracer for as long as it is planted: --no-%s excludes "
		"it",
		cfg->follow ? "children" : "follow");
	err_hint(err, "leave one of them out");
	return -SB_EUSAGE;
}

struct session_core *session_open(const struct backend *backend, const struct session_config *cfg,
				  struct sb_err *err)
{
	struct session_core *s;

	if (session_check_traced(cfg, err) < 0)
		return NULL;
	for (size_t i = 0; i < cfg->targets.count; i++)
		if (check_place(backend, &cfg->targets.spec[i], err) < 0 ||
		    check_timed(backend, cfg, &cfg->targets.spec[i], err) < 0)
			return NULL;
	s = must_calloc(1, backend->size);
	s->backend = backend;
	s->cfg = cfg;
	s->enabled = true;
	s->n_targets = cfg->targets.count;
	s->max_targets = s->n_targets + backend->spare_targets;
	s->target = must_calloc(s->max_targets, sizeof(*s->target));
	for (size_t i = 0; i < s->n_targets; i++)
		target_init(&s->target[i], &cfg->targets.spec[i]);
	s->start_on_target = targets_start_on(s->target, s->n_targets, cfg->start_on);
	if (backend->open(s, err) == 0)
		return s;
	session_free(s);
	return NULL;
}

void session_free(struct session_core *s)
{
	s->backend->close(s);
	for (size_t i = 0; i < s->n_targets; i++)
		target_free(&s->target[i]);
	free(s->target);
	warnings_free(&s->warnings);
	free(s);
}

/* ---- attach and detach ---- */

int session_attach(struct session_core *s, struct sb_err *err)
{
	int ret;

	s->started_real = clock_realtime_ns();
	ret = s->backend->attach(s, err);
	if (ret < 0)
		session_detach(s);
	return ret;
}

void session_arm(struct session_core *s)
{
	s->attached_ns = clock_ns();
	s->armed = true;
	s->slow_measuring = s->cfg->max_slowdown > 0;
}

static double armed_s(const struct session_core *s, uint64_t now)
{
	return s->armed ? (double)(now - s->attached_ns) / 1e9 : 0;
}

void session_detach(struct session_core *s)
{
	uint64_t now = clock_ns();

	if (s->detached)
		return;
	s->detached = true;
	for (size_t i = 0; i < s->n_targets; i++)
		if (s->target[i].open)
			target_switch(&s->target[i], false, now);
	s->wall_s = armed_s(s, now);
	s->backend->detach(s);
	s->ended_real = clock_realtime_ns();
}

/* ---- windows ---- */

/* Has the event of --start-on occurred? */
static bool triggered(struct session_core *s)
{
	struct result_counts counts;

	if (!s->cfg->start_on)
		return true;
	if (s->start_on_target == SIZE_MAX)
		return access(s->cfg->start_on, F_OK) == 0;
	s->backend->counts(s, s->start_on_target, 1, &counts);
	return counts.hits;
}

static bool should_open(const struct session_core *s, size_t i, uint64_t now)
{
	const struct target *t = &s->target[i];

	if (!s->armed || t->removed || t->muted || (!s->enabled && !s->backend->enable))
		return false;
	return i == s->start_on_target || target_in_window(t, s->window_ns, now);
}

uint64_t session_windows(struct session_core *s, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (s->armed && !s->window_ns && triggered(s))
		s->window_ns = now + s->cfg->start_ns;
	for (size_t i = 0; i < s->n_targets; i++) {
		struct target *t = &s->target[i];
		bool open = should_open(s, i, now);
		uint64_t left = target_until_change(t, s->window_ns, now);

		if (open != t->open) {
			target_switch(t, open, now);
			s->backend->apply(s, i);
		}
		if (left < next)
			next = left;
	}
	return next;
}

bool session_begun(const struct session_core *s)
{
	return s->window_ns && clock_ns() >= s->window_ns;
}

uint64_t session_left(const struct session_core *s, uint64_t now)
{
	uint64_t end = s->window_ns + s->cfg->for_ns;

	if (!s->window_ns || !s->cfg->for_ns)
		return UINT64_MAX;
	return now < end ? end - now : 0;
}

/* ---- changes ---- */

int session_add(struct session_core *s, const struct spec *spec, size_t *index, struct sb_err *err)
{
	const struct backend *b = s->backend;
	int ret = check_place(b, spec, err);

	if (ret == 0)
		ret = check_timed(b, s->cfg, spec, err);
	if (ret == 0)
		ret = b->check_spec(s, spec, err);
	if (ret == 0)
		ret = targets_place(s->target, s->n_targets, b->room ? b->room(s) : s->max_targets,
				    spec, index, err);
	if (ret < 0)
		return ret;
	targets_enter(s->target, &s->n_targets, *index, spec);
	ret = b->add(s, *index, err);
	if (ret < 0)
		targets_forget(s->target, &s->n_targets, *index);
	else
		session_windows(s, clock_ns());
	return ret;
}

int session_remove(struct session_core *s, size_t index, struct sb_err *err)
{
	struct target *t = &s->target[index];
	int ret;

	t->removed = true;
	session_windows(s, clock_ns());
	ret = s->backend->remove(s, index, err);
	if (ret < 0) { /* still in some process, without effect; a second removal is possible */
		t->removed = false;
		t->muted = true;
	}
	return ret;
}

void session_update(struct session_core *s, size_t index, uint64_t delay_ns, uint64_t every)
{
	target_change(&s->target[index], delay_ns, every);
	s->backend->apply(s, index);
}

void session_enable(struct session_core *s, bool on)
{
	s->enabled = on;
	if (s->backend->enable)
		s->backend->enable(s, on);
	session_windows(s, clock_ns());
}

bool session_enabled(const struct session_core *s)
{
	return s->enabled;
}

void session_mute(struct session_core *s, size_t index, bool mute)
{
	s->target[index].muted = mute;
	session_windows(s, clock_ns());
}

/* ---- figures ---- */

size_t session_targets(const struct session_core *s)
{
	return s->n_targets;
}

void session_state(const struct session_core *s, size_t index, struct session_target *out)
{
	target_show(&s->target[index], out);
	out->open = out->open && s->enabled;
}

void session_target(struct session_core *s, size_t index, struct session_target *out)
{
	session_state(s, index, out);
	s->backend->counts(s, index, 1, &out->counts);
}

void session_counts(struct session_core *s, struct result_counts *counts, double *t_s)
{
	s->backend->counts(s, 0, s->n_targets, counts);
	*t_s = armed_s(s, clock_ns());
}

struct result *session_result(struct session_core *s)
{
	struct result *res = result_of_session(s->n_targets, s->backend->name, s->started_real,
					       s->ended_real, s->wall_s);

	for (size_t i = 0; i < s->n_targets; i++)
		target_fill(&s->target[i], &res->target[i]);
	s->backend->result(s, res);
	for (size_t i = 0; i < s->n_targets; i++)
		target_outcome(&s->target[i], &res->target[i]);
	warnings_tell(&s->warnings, res);
	return res;
}
