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
#include "src/session/backend.h"
#include "src/session/check.h"
#include "src/session/preview.h"

#define MS 1000000ull

enum { SPARE_TARGETS = 512, TICK_MS = 100 };

/* ---- open ---- */

static void usession_free(struct session *s)
{
	uprobes_close(s->u);
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
	for (size_t i = 0; i < s->n_targets; i++)
		target_free(&s->target[i]);
	warnings_free(&s->warnings);
	free(s->place);
	free(s->pending);
	free(s->target);
	free(s);
}

static int check_config(struct session *s, struct sb_err *err)
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
		ret = usession_check_spec(s, s->target[i].spec, err);
		if (ret == 0 && s->target[i].spec->pid && !s->target[i].root)
			ret = err_set(err, SB_EUSAGE, "there are too many different pid=");
	}
	return ret;
}

static struct session *usession_open(const struct session_config *cfg, struct sb_err *err)
{
	struct session *s = must_calloc(1, sizeof(*s));

	s->cfg = cfg;
	s->enabled = true;
	s->n_targets = cfg->targets.count;
	s->max_targets = s->n_targets + SPARE_TARGETS;
	s->target = must_calloc(s->max_targets, sizeof(*s->target));
	for (size_t i = 0; i < s->n_targets; i++) {
		target_init(&s->target[i], &cfg->targets.spec[i]);
		s->target[i].root = usession_root(s, s->target[i].spec->pid);
	}
	s->start_on_target = targets_start_on(s->target, s->n_targets, cfg->start_on);
	if (check_config(s, err) < 0)
		goto fail;
	if (cfg->look_only)
		return s;
	s->u = uprobes_open((uint32_t)s->max_targets, cfg->children, err);
	if (s->u)
		return s;
fail:
	usession_free(s);
	return NULL;
}

/* ---- check ---- */

static int judge_all(const struct session *s, struct sb_err *err)
{
	int ret = 0;

	for (size_t i = 0; i < s->n_targets && ret == 0; i++)
		ret = usession_judge(s, i, err);
	return ret;
}

static int usession_check(struct session *s, struct sb_err *err)
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
static void look_ahead(struct session *s)
{
	struct sb_err err = { 0 };
	pid_t pid;

	if (preview_start(s->cfg->command, &pid, &err) < 0) {
		usession_warn(s,
			      "sbinject could not examine the command before its start (%s): its "
			      "first calls "
			      "may be missed",
			      err.what);
		return;
	}
	usession_look(s, pid, 0);
	preview_end(pid);
}

static void usession_detach(struct session *s)
{
	if (s->detached)
		return;
	s->detached = true;
	usession_close_windows(s);
	usession_ring_none(s); /* first: a program at full speed may load libraries without end */
	for (size_t i = 0; i < s->n_places; i++)
		if (s->place[i].armed)
			uprobes_disarm(s->u, s->place[i].id);
	usession_hear(s);
	for (struct urecord *rec = s->records; rec; rec = rec->next)
		usession_end_record(s, rec);
	s->ended_real = clock_realtime_ns();
}

static int usession_attach(struct session *s, struct sb_err *err)
{
	int ret;

	s->started_real = clock_realtime_ns();
	ret = usession_take_all(s, err);
	if (ret == 0) {
		usession_look_everywhere(s);
		if (s->cfg->launched && s->cfg->command)
			look_ahead(s);
		usession_look_files(s);
		ret = judge_all(s, err);
	}
	if (ret < 0) {
		usession_detach(s);
		return ret;
	}
	s->attached_ns = clock_ns();
	s->armed = true;
	s->slow_measuring = s->cfg->max_slowdown > 0;
	s->last_slow = s->attached_ns;
	usession_windows(s, s->attached_ns);
	return 0;
}

/* ---- the loop ---- */

static enum session_end usession_step(struct session *s, int *next_ms, struct sb_err *err)
{
	uint64_t now, window, until = TICK_MS * MS;

	usession_hear(s);
	now = clock_ns();
	if (s->deaf && now >= s->next_look) { /* there are no doorbells for libraries */
		usession_look_everywhere(s);
		s->next_look = now + TICK_MS * MS +
			       (clock_ns() - now) * 9; /* at most a tenth of the time */
	}
	window = usession_windows(s, now);
	if (usession_slow(s, now, err))
		return SESSION_END_SLOWDOWN;
	if (window < until)
		until = window;
	if (s->cfg->for_ns && s->window_ns) {
		uint64_t end = s->window_ns + s->cfg->for_ns;

		if (now >= end)
			return SESSION_END_FOR;
		if (end - now < until)
			until = end - now;
	}
	*next_ms = (int)((until + MS - 1) / MS);
	return usession_running(s) ? SESSION_RUNS : SESSION_END_TARGET;
}

static int usession_fd(const struct session *s)
{
	return uprobes_fd(s->u);
}

const struct backend backend_uprobe = {
	.name = "uprobe",
	.summary = "kernel uprobes, delays spent in the kernel",
	.probe = uprobes_probe,
	.open = usession_open,
	.check = usession_check,
	.attach = usession_attach,
	.step = usession_step,
	.fd = usession_fd,
	.counts = usession_counts,
	.detach = usession_detach,
	.result = usession_result,
	.add = usession_add,
	.remove = usession_remove,
	.update = usession_update,
	.enable = usession_enable,
	.enabled = usession_enabled,
	.mute = usession_mute,
	.targets = usession_targets,
	.target = usession_target,
	.state = usession_state,
	.lanes = usession_lanes,
	.pids = usession_pids,
	.list = usession_list,
	.close = usession_free,
	.delay_max_ns = UPROBE_DELAY_MAX,
};
