/* SPDX-License-Identifier: MIT */
/*
 * The uprobe backend: kernel uprobes with a BPF program that spins, for targets that must not be
 * ptraced, and for files that are armed before a process runs them. See inject/uprobe/ and
 * session/uprobe/priv.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "priv.h"
#include "elf/image.h"
#include "inject/clock.h"
#include "src/base/log.h"
#include "src/session/check.h"
#include "src/session/preview.h"

#define MS 1000000ull

enum { SPARE_TARGETS = 512, TICK_MS = 100 };

/* ---- open ---- */

static void usession_close(struct session_core *core)
{
	struct uprobe_session *s = usession(core);

	usession_kernel_end(s);
	uprobes_close(s->u);
	usession_kernel_free(s);
	while (s->records) {
		struct urecord *rec = s->records;

		s->records = rec->next;
		usession_record_free(rec);
	}
	for (size_t i = 0; i < s->n_places; i++) {
		image_put(s->place[i].img);
		free(s->place[i].module);
		free(s->place[i].symbol);
		free(s->place[i].build_id);
		free(s->place[i].rows);
	}
	free(s->place);
	free(s->pending);
	free(s->own);
}

static int check_config(struct uprobe_session *s, struct sb_err *err)
{
	int ret = 0;

	if (s->cfg->by_function) {
		err_set(err, SB_EUSAGE, "--hits-by-function is for the inject backend");
		err_hint(err, "a uprobe counts for its target: name one function a target");
		return -SB_EUSAGE;
	}
	if (s->cfg->perf_map || s->cfg->perf_map_keep) {
		err_set(err, SB_EUSAGE, "--perf-map is for the inject backend");
		err_hint(err, "leave it out: a uprobe puts no code into the process");
		return -SB_EUSAGE;
	}
	if (s->cfg->mechanism != MECHANISM_AUTO && !s->cfg->look_only) {
		err_set(err, SB_EUSAGE, "--mechanism is for the inject backend");
		err_hint(err, "leave it out: the mechanism is a uprobe");
		return -SB_EUSAGE;
	}
	for (size_t i = 0; i < s->n_targets && ret == 0; i++) {
		ret = usession_refuses(s->target[i].spec, err);
		if (ret == 0 && s->target[i].spec->pid && !s->own[i].root)
			ret = err_set(err, SB_EUSAGE, "there are too many different pid=");
	}
	return ret;
}

/* Only the kernel's places are recorded. */
static int open_trace(struct uprobe_session *s, struct sb_err *err)
{
	enum { CHUNK = 4096 };
	int ring;

	if (!s->cfg->trace_fd)
		return 0;
	ring = uprobes_spans(s->u, (size_t)s->cfg->trace_chunks * CHUNK, err);
	if (ring < 0)
		return ring;
	s->spans = uspans_open(s->cfg, ring, err);
	return s->spans ? 0 : -(int)err->code;
}

static int usession_open(struct session_core *core, struct sb_err *err)
{
	struct uprobe_session *s = usession(core);

	s->own = must_calloc(s->max_targets, sizeof(*s->own));
	for (size_t i = 0; i < s->n_targets; i++)
		s->own[i].root = usession_root(s, s->target[i].spec->pid);
	if (check_config(s, err) < 0)
		return -(int)err->code;
	if (s->cfg->look_only)
		return 0;
	s->u = uprobes_open((uint32_t)s->max_targets, s->cfg->children, err);
	return s->u ? open_trace(s, err) : -(int)err->code;
}

/* ---- check ---- */

/* A target that a list of a preset stands for may be missing, but not all of them. */
static int judge_list(const struct uprobe_session *s, size_t first, size_t end, struct sb_err *err)
{
	const char *reason = "";

	for (size_t i = first; i < end; i++) {
		const struct target *t = &s->target[i];

		if (t->planted || !(t->n_refused || t->module_seen))
			return 0;
		reason = *reason || !t->n_refused ? reason : t->refused[0].reason;
	}
	return target_list_lost(&s->target[first], reason, err);
}

static int judge_all(const struct uprobe_session *s, struct sb_err *err)
{
	int ret = 0;

	for (size_t i = 0; i < s->n_targets && ret == 0; i++) {
		size_t end = target_list_end(s->target, s->n_targets, i);

		if (end > i)
			ret = judge_list(s, i, end, err);
		else if (!s->target[i].spec->listed && !s->target[i].spec->optional)
			ret = usession_judge(s, i, err);
	}
	return ret;
}

static int usession_check(struct session_core *s, struct sb_err *err)
{
	int ret = 0;

	for (size_t i = 0; i < s->cfg->n_pids && ret == 0; i++) {
		if (processes_skipped(s->cfg, s->cfg->pids[i]))
			return err_set(err, SB_EBADPROC, "process %d is sbinject itself",
				       s->cfg->pids[i]);
		ret = check_readable(s->cfg->pids[i], err);
	}
	return ret;
}

/* ---- attach ---- */

/* Brings a command to its entry point once, in a process of ours that ends there: so the libraries
 * of the command are armed before it runs. */
static void look_ahead(struct uprobe_session *s)
{
	struct sb_err err = { 0 };
	pid_t pid;

	if (preview_start(s->cfg->command, &pid, &err) < 0) {
		session_warn(s,
			     "sbinject could not examine the command before its start (%s): its "
			     "first calls "
			     "may be missed",
			     err.what);
		return;
	}
	usession_look(s, pid, 0);
	preview_end(pid);
}

static void usession_detach(struct session_core *core)
{
	struct uprobe_session *s = usession(core);

	for (size_t i = 0; i < s->n_targets; i++)
		usession_apply(core, i);
	usession_ring_none(s); /* first: a program at full speed may load libraries without end */
	for (size_t i = 0; i < s->n_places; i++)
		if (s->place[i].armed)
			uprobes_disarm(s->u, s->place[i].id);
	for (size_t i = 0; i < s->n_targets; i++)
		usession_kernel_remove(s, i);
	usession_hear(s);
	for (struct urecord *rec = s->records; rec; rec = rec->next)
		usession_end_record(s, rec);
	usession_end_apart(s);
	usession_kernel_end(s);
}

static int usession_attach(struct session_core *core, struct sb_err *err)
{
	struct uprobe_session *s = usession(core);
	int ret = usession_take_all(s, err);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < s->n_targets; i++)
		uprobes_prepare(s->u, 0, (uint32_t)i);
	ret = usession_kernel_add_all(s, err);
	if (ret < 0)
		return ret;
	usession_look_everywhere(s);
	if (s->cfg->launched && s->cfg->command && usession_awaits(s))
		look_ahead(s);
	usession_look_files(s);
	ret = judge_all(s, err);
	if (ret < 0)
		return ret;
	session_arm(core);
	s->last_slow = s->attached_ns;
	session_windows(core, s->attached_ns);
	return 0;
}

/* ---- the loop ---- */

static enum session_end usession_step(struct session_core *core, int *next_ms, struct sb_err *err)
{
	struct uprobe_session *s = usession(core);
	uint64_t now, window, left, until = TICK_MS * MS;

	usession_hear(s);
	now = clock_ns();
	if (s->deaf && now >= s->next_look) { /* there are no doorbells for libraries */
		usession_look_everywhere(s);
		s->next_look = now + TICK_MS * MS +
			       (clock_ns() - now) * 9; /* at most a tenth of the time */
	}
	window = session_windows(core, now);
	if (session_slow(core, now, err))
		return SESSION_END_SLOWDOWN;
	left = session_left(core, now);
	if (!left)
		return SESSION_END_FOR;
	if (window < until)
		until = window;
	if (left < until)
		until = left;
	*next_ms = (int)((until + MS - 1) / MS);
	return usession_running(s) ? SESSION_RUNS : SESSION_END_TARGET;
}

static int usession_fd(const struct session_core *core)
{
	return uprobes_fd(usession(core)->u);
}

const struct backend backend_uprobe = {
	.name = "uprobe",
	.summary = "kernel uprobes, delays spent in the kernel",
	.size = sizeof(struct uprobe_session),
	.spare_targets = SPARE_TARGETS,
	.delay_max_ns = UPROBE_DELAY_MAX,
	.open = usession_open,
	.close = usession_close,
	.attach = usession_attach,
	.detach = usession_detach,
	.check_spec = usession_check_spec,
	.add = usession_add,
	.remove = usession_remove,
	.apply = usession_apply,
	.counts = usession_counts,
	.slowdown = usession_slowdown,
	.result = usession_result,
	.probe = uprobes_probe,
	.check = usession_check,
	.step = usession_step,
	.fd = usession_fd,
	.times = usession_times,
	.times_of_kernel = true,
	.lanes = usession_lanes,
	.pids = usession_pids,
	.list = usession_list,
};
