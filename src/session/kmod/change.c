/* SPDX-License-Identifier: MIT */
/* Changes of a running session of the kernel module, from a second terminal or a sweep. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "files.h"
#include "priv.h"
#include "inject/clock.h"
#include "src/base/log.h"
#include "src/base/must.h"

int ksession_add(struct session *s, const struct spec *spec, size_t *index, struct sb_err *err)
{
	struct target *t;
	int ret = ksession_check_spec(spec, err);

	if (ret == 0)
		ret = targets_place(s->target, s->n_targets, s->max_targets, spec, index, err);
	if (ret < 0)
		return ret;
	targets_enter(s->target, &s->n_targets, *index, spec);
	t = &s->target[*index];
	ret = ksession_find(s, t, err);
	if (ret == 0)
		ret = ksession_put_in(s, t, err);
	if (ret == 0)
		return 0;
	ksession_take_out(t);
	if (!t->again)
		ksession_free_lines(t);
	targets_forget(s->target, &s->n_targets, *index);
	return ret;
}

int ksession_remove(struct session *s, size_t index, struct sb_err *err)
{
	(void)err;
	ksession_take_out(&s->target[index]);
	s->target[index].removed = true;
	return 0;
}

void ksession_update(struct session *s, size_t index, uint64_t delay_ns, uint64_t every)
{
	struct target *t = &s->target[index];
	struct sb_err ignored = { 0 };

	target_change(t, delay_ns, every);
	for (size_t i = 0; i < t->n_lines; i++)
		if (t->line[i].in)
			kmod_write("targets", &ignored, "=%s %llu", t->line[i].name,
				   (unsigned long long)delay_ns);
}

void ksession_enable(struct session *s, bool on)
{
	struct sb_err ignored = { 0 };

	s->enabled = on;
	kmod_write("enabled", &ignored, on ? "1" : "0");
}

bool ksession_enabled(const struct session *s)
{
	return s->enabled;
}

void ksession_mute(struct session *s, size_t index, bool mute)
{
	struct target *t = &s->target[index];
	struct sb_err err = { 0 };

	if (mute == t->muted || t->removed)
		return;
	t->muted = mute;
	if (mute)
		ksession_take_out(t);
	else if (ksession_put_in(s, t, &err) < 0)
		log_warn("%s", err.what);
}

size_t ksession_targets(const struct session *s)
{
	return s->n_targets;
}

void ksession_state(const struct session *s, size_t index, struct session_target *out)
{
	const struct target *t = &s->target[index];

	target_show(t, out);
	out->open = t->open && s->enabled;
	out->pending = !t->n_lines;
}

void ksession_target(struct session *s, size_t index, struct session_target *out)
{
	struct result_counts *counts = must_calloc(s->n_targets + 1, sizeof(*counts));

	ksession_state(s, index, out);
	ksession_counts_of(s, counts);
	out->counts = counts[index];
	free(counts);
}

size_t ksession_lanes(struct session *s, struct session_lane **lanes, uint64_t *t_ns)
{
	struct result_counts *counts = must_calloc(s->n_targets + 1, sizeof(*counts));
	size_t n = 0;

	*t_ns = clock_ns();
	*lanes = must_calloc(s->n_targets + 1, sizeof(**lanes));
	ksession_counts_of(s, counts);
	for (size_t i = 0; i < s->n_targets; i++)
		if (!s->target[i].removed)
			(*lanes)[n++] =
				(struct session_lane){ .pid = ksession_whom(s, &s->target[i]),
						       .target = i,
						       .hits = counts[i].hits,
						       .injected_ns = counts[i].injected_ns };
	free(counts);
	return n;
}

size_t ksession_pids(struct session *s, pid_t **pids)
{
	size_t n = 0;

	*pids = NULL;
	if (s->cfg->n_pids || s->cfg->launched)
		result_add_pid(pids, &n, s->cfg->n_pids ? s->cfg->pids[0] : s->cfg->launched);
	return n;
}
