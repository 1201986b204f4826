/* SPDX-License-Identifier: MIT */
/* Changes of a running session of uprobes, from a second terminal or a sweep. No thread is ever
 * stopped. */
#include <stdlib.h>
#include "priv.h"
#include "inject/clock.h"

static int judge_file(struct uprobe_session *s, size_t index, struct sb_err *err)
{
	pid_t *pids;
	size_t n = usession_pids(&s->core, &pids);
	int ret = target_check_file(&s->target[index], pids, n, err);

	free(pids);
	return ret;
}

int usession_add(struct session_core *core, size_t index, struct sb_err *err)
{
	struct uprobe_session *s = usession(core);
	const struct target *t = &s->target[index];
	int ret;

	if (!t->again)
		s->own[index] = (struct utarget){ 0 };
	uprobes_prepare(s->u, 0, (uint32_t)index);
	s->own[index].root = usession_root(s, t->spec->pid);
	if (!s->own[index].root && t->spec->pid)
		return err_set(err, SB_ENOMEM, "there are too many different pid= already");
	ret = usession_roots(s, err);
	if (ret < 0)
		return ret;
	if (spec_in_kernel(t->spec)) {
		ret = usession_kernel_add(s, index, err);
		if (ret == 0)
			usession_apply(core, index);
		return ret;
	}
	usession_look_everywhere(s);
	usession_look_files(s);
	ret = usession_judge(s, index, err);
	if (ret == 0)
		ret = judge_file(s, index, err);
	if (ret == 0)
		usession_apply(core, index);
	return ret;
}

int usession_remove(struct session_core *core, size_t index, struct sb_err *err)
{
	struct uprobe_session *s = usession(core);

	(void)err;
	for (size_t i = 0; i < s->n_places; i++) {
		struct uplace *p = &s->place[i];

		if (p->doorbell || p->target != index || !p->armed)
			continue;
		uprobes_disarm(s->u, p->id);
		p->armed = false;
	}
	usession_kernel_remove(s, index);
	s->target[index].planted = false;
	return 0;
}

/* One lane for each process: the kernel counts by processor, which says nothing about threads. */
size_t usession_lanes(struct session_core *core, struct session_lane **lanes, uint64_t *t_ns)
{
	struct uprobe_session *s = usession(core);
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

size_t usession_pids(struct session_core *core, pid_t **pids)
{
	size_t n = 0;

	*pids = NULL;
	for (const struct urecord *rec = usession(core)->records; rec; rec = rec->next)
		if (!rec->ended)
			result_add_pid(pids, &n, rec->pid);
	return n;
}

/* What the kernel's side cannot do in any process. */
int usession_refuses(const struct spec *spec, struct sb_err *err)
{
	uint64_t delay = spec->delay_ns == SPEC_DELAY_UNSET ? SPEC_DEFAULT_NS : spec->delay_ns;

	if (spec_in_kernel(spec) && spec->delay_ns) {
		err_set(err, SB_EUSAGE,
			"target '%s': the kernel is never delayed: its functions run with locks "
			"held and interrupts off, for every process",
			spec->text);
		err_hint(err, "0 counts its calls, sbinject trace times them; a delay is for the "
			      "function of the program that calls it");
	} else if (spec_in_kernel(spec) && (spec->thread || spec->every > 1)) {
		err_set(err, SB_EUSAGE, "target '%s': thread= and every= are not for the kernel",
			spec->text);
		err_hint(err, "leave them out: all threads of the processes count");
	} else if (spec->kind == SPEC_PYTHON) {
		err_set(err, SB_EUSAGE, "target '%s': uprobes do not know Python functions",
			spec->text);
		err_hint(err, "--backend inject does");
	} else if (spec->thread) {
		err_set(err, SB_EUSAGE,
			"target '%s': the uprobe backend has no thread=", spec->text);
		err_hint(err, "--backend inject has");
	} else if (spec->at) {
		err_set(err, SB_EUSAGE,
			"target '%s': the uprobe backend has no at=exit and at=both: a breakpoint "
			"is only put where a function begins",
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

int usession_check_spec(struct session_core *core, const struct spec *spec, struct sb_err *err)
{
	usession_hear(usession(core)); /* libraries loaded before the request */
	return usession_refuses(spec, err);
}
