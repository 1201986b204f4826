/* SPDX-License-Identifier: MIT */
/* What a second terminal or a sweep changes in a session of uprobes. Nobody is ever stopped. */
#include <stdlib.h>
#include <string.h>
#include "text.h"
#include "uprobe-priv.h"
#include "../inject/clock.h"

static char *copy(const char *text)
{
	return text ? text_dup(text) : NULL;
}

static struct spec *spec_copy(const struct spec *from)
{
	struct spec *to = usession_must(malloc(sizeof(*to)));

	*to = *from;
	to->text = copy(from->text);
	to->module = copy(from->module);
	to->symbol = copy(from->symbol);
	to->thread = copy(from->thread);
	return to;
}

void usession_spec_free(struct spec *spec)
{
	if (!spec)
		return;
	free(spec->text);
	free(spec->module);
	free(spec->symbol);
	free(spec->thread);
	free(spec);
}

static size_t index_of(const struct session *s, const struct spec *spec)
{
	for (size_t i = 0; i < s->n_targets; i++)
		if (s->target[i].spec->pid == spec->pid &&
		    !strcmp(s->target[i].spec->text, spec->text))
			return i;
	return s->n_targets;
}

static int new_index(const struct session *s, const struct spec *spec, size_t *index,
		     struct sb_err *err)
{
	size_t i = index_of(s, spec);

	if (i < s->n_targets && !s->target[i].removed)
		return err_set(err, SB_ESPEC, "target '%s' is there already", spec->text);
	if (i == s->max_targets) {
		err_set(err, SB_ENOMEM, "this session can hold no more than %zu targets",
			s->max_targets);
		err_hint(err, "name targets by a glob, or start a session of their own for them");
		return -SB_ENOMEM;
	}
	*index = i;
	return 0;
}

static void enter(struct session *s, size_t index, const struct spec *spec)
{
	struct utarget *t = &s->target[index];

	if (index == s->n_targets) {
		t->own = spec_copy(spec);
		usession_target_init(s, t, t->own);
		s->n_targets++;
		return;
	}
	t->removed = t->muted = false;
	usession_update(s, index, spec->delay_ns, spec->every);
}

/* A look finds every target; only the new one has anything to be armed. */
static void look_everywhere(struct session *s)
{
	pid_t(*all)[2];
	size_t n = s->cfg->all ? processes_all(&all) : 0;

	for (size_t i = 0; i < n; i++)
		usession_look(s, all[i][0], 0);
	if (s->cfg->all)
		free(all);
	for (struct urecord *rec = s->records; rec && !s->cfg->all; rec = rec->next)
		if (!rec->ended && rec->image == rec->row)
			usession_look(s, rec->pid, rec->row);
	usession_look_files(s);
}

/* One that never was is not in the result. */
static void forget(struct session *s, size_t index)
{
	struct utarget *t = &s->target[index];

	t->removed = true;
	if (index != s->n_targets - 1 || !t->own || t->active_ns)
		return;
	result_refused_free(t->refused, t->n_refused);
	usession_spec_free(t->own);
	*t = (struct utarget){ 0 };
	s->n_targets--;
}

int usession_add(struct session *s, const struct spec *spec, size_t *index, struct sb_err *err)
{
	int ret = usession_check_spec(s, spec, err);

	if (ret == 0)
		ret = new_index(s, spec, index, err);
	if (ret < 0)
		return ret;
	enter(s, *index, spec);
	if (!s->target[*index].root && spec->pid)
		ret = err_set(err, SB_ENOMEM, "there are too many different pid= already");
	if (ret == 0)
		ret = usession_roots(s, err);
	if (ret == 0) {
		look_everywhere(s);
		ret = usession_judge(s, *index, err);
	}
	if (ret < 0) {
		forget(s, *index);
		return ret;
	}
	usession_apply(s, *index);
	usession_windows(s, clock_ns());
	return 0;
}

int usession_remove(struct session *s, size_t index, struct sb_err *err)
{
	struct utarget *t = &s->target[index];

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
	struct utarget *t = &s->target[index];

	t->changed |= t->delay_ns != delay_ns;
	t->delay_ns = delay_ns;
	t->every = every ? every : 1;
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

void usession_target(struct session *s, size_t index, struct session_target *out)
{
	const struct utarget *t = &s->target[index];
	struct page_sums sums;

	usession_target_sums(s, index, &sums);
	*out = (struct session_target){
		.spec = t->spec,
		.delay_ns = t->delay_ns,
		.every = t->every,
		.removed = t->removed,
		.open = t->open,
		.pending = !t->planted,
	};
	usession_counts_from(&sums, &out->counts);
}

/* A lane a process: the kernel counts by processor, which says nothing of threads. */
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
				*lanes = usession_must(reallocarray(
					*lanes, cap = cap ? cap * 2 : 16, sizeof(**lanes)));
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
