/* SPDX-License-Identifier: MIT */
/* Changes of a running session of uprobes, from a second terminal or a sweep. No thread is ever
 * stopped. */
#include <stdlib.h>
#include "priv.h"
#include "inject/clock.h"

static int judge_file(struct session *s, size_t index, struct sb_err *err)
{
	pid_t *pids;
	size_t n = usession_pids(s, &pids);
	int ret = target_check_file(&s->target[index], pids, n, err);

	free(pids);
	return ret;
}

int usession_add(struct session *s, const struct spec *spec, size_t *index, struct sb_err *err)
{
	int ret = usession_check_spec(s, spec, err);

	usession_hear(s); /* libraries loaded before the request */
	if (ret == 0)
		ret = targets_place(s->target, s->n_targets, s->max_targets, spec, index, err);
	if (ret < 0)
		return ret;
	targets_enter(s->target, &s->n_targets, *index, spec);
	s->target[*index].root = usession_root(s, spec->pid);
	if (!s->target[*index].root && spec->pid)
		ret = err_set(err, SB_ENOMEM, "there are too many different pid= already");
	if (ret == 0)
		ret = usession_roots(s, err);
	if (ret == 0) {
		usession_look_everywhere(s);
		usession_look_files(s);
		ret = usession_judge(s, *index, err);
	}
	if (ret == 0)
		ret = judge_file(s, *index, err);
	if (ret < 0) {
		targets_forget(s->target, &s->n_targets, *index);
		return ret;
	}
	usession_apply(s, *index);
	usession_windows(s, clock_ns());
	return 0;
}

int usession_remove(struct session *s, size_t index, struct sb_err *err)
{
	struct target *t = &s->target[index];

	(void)err;
	t->removed = true;
	usession_windows(s, clock_ns());
	for (size_t i = 0; i < s->n_places; i++) {
		struct uplace *p = &s->place[i];

		if (p->bell || p->target != index || !p->armed)
			continue;
		uprobes_disarm(s->u, p->id);
		p->armed = false;
	}
	t->planted = false;
	return 0;
}

void usession_update(struct session *s, size_t index, uint64_t delay_ns, uint64_t every)
{
	target_change(&s->target[index], delay_ns, every);
	usession_apply(s, index);
}

void usession_enable(struct session *s, bool on)
{
	s->enabled = on;
	usession_windows(s, clock_ns());
}

bool usession_enabled(const struct session *s)
{
	return s->enabled;
}

void usession_mute(struct session *s, size_t index, bool mute)
{
	s->target[index].muted = mute;
	usession_windows(s, clock_ns());
}

size_t usession_targets(const struct session *s)
{
	return s->n_targets;
}

void usession_state(const struct session *s, size_t index, struct session_target *out)
{
	target_show(&s->target[index], out);
	out->pending = !s->target[index].planted;
}

void usession_target(struct session *s, size_t index, struct session_target *out)
{
	struct page_sums sums;

	usession_state(s, index, out);
	usession_target_sums(s, index, &sums);
	usession_counts_from(&sums, &out->counts);
}

/* One lane for each process: the kernel counts by processor, which says nothing about threads. */
size_t usession_lanes(struct session *s, struct session_lane **lanes, uint64_t *t_ns)
{
	size_t n = 0, cap = 0;

	*lanes = NULL;
	*t_ns = clock_ns();
	for (const struct urecord *rec = s->records; rec; rec = rec->next) {
		for (size_t i = 0; i < s->n_targets && !rec->ended; i++) {
			struct page_sums sums = { 0 };
			struct result_counts counts;

			usession_sums(s, rec, i, &sums);
			if (s->target[i].removed || !sums.hits)
				continue;
			usession_counts_from(&sums, &counts);
			if (n == cap)
				*lanes = must(reallocarray(*lanes, cap = cap ? cap * 2 : 16,
							   sizeof(**lanes)));
			(*lanes)[n++] = (struct session_lane){ .pid = rec->pid,
							       .target = i,
							       .hits = counts.hits,
							       .injected_ns = counts.injected_ns,
							       .overrun_ns = counts.overrun_ns };
		}
	}
	return n;
}

size_t usession_pids(struct session *s, pid_t **pids)
{
	size_t n = 0;

	*pids = NULL;
	for (const struct urecord *rec = s->records; rec; rec = rec->next)
		if (!rec->ended)
			result_add_pid(pids, &n, rec->pid);
	return n;
}

/* Refuses what the kernel's side cannot do in any process. */
int usession_check_spec(const struct session *s, const struct spec *spec, struct sb_err *err)
{
	uint64_t delay = spec->delay_ns == SPEC_DELAY_UNSET ? SPEC_DEFAULT_NS : spec->delay_ns;

	(void)s;
	if (spec->kind == SPEC_PYTHON) {
		err_set(err, SB_EUSAGE, "target '%s': uprobes do not know Python functions",
			spec->text);
		err_hint(err, "--backend inject does");
	} else if (spec->thread) {
		err_set(err, SB_EUSAGE,
			"target '%s': the uprobe backend has no thread=", spec->text);
		err_hint(err, "--backend inject has");
	} else if (spec->exit) {
		err_set(err, SB_EUSAGE,
			"target '%s': the uprobe backend has no at=exit: a breakpoint is only put "
			"where a function begins",
			spec->text);
		err_hint(err, "--backend inject has");
	} else if (delay > UPROBE_DELAY_MAX) {
		err_set(err, SB_EUSAGE,
			"target '%s': a delay above 10 ms is refused: in a uprobe it is spent in "
			"the "
			"kernel, where the thread can be neither killed nor preempted",
			spec->text);
		err_hint(err, "--backend inject gives up to 10 s");
	}
	return -(int)err->code;
}
