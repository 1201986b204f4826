/* SPDX-License-Identifier: MIT */
/* Checks before a target is touched. */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "priv.h"
#include "python.h"
#include "inject/tree-task.h"
#include "src/base/must.h"
#include "src/base/text.h"
#include "src/session/check.h"

static int check_pid(const struct inject_session *s, pid_t pid, struct sb_err *err)
{
	if (processes_skipped(s->cfg, pid))
		return err_set(err, SB_EBADPROC, "process %d is sbinject itself", pid);
	if (s->cfg->mechanism == MECHANISM_INT3 && check_trap(pid, err) < 0)
		return -(int)err->code;
	return check_process(pid, (uint32_t)s->n_targets, err);
}

/* What all processes have of a target. */
struct verdict {
	bool can;	       /* one of its sites can be hooked */
	struct sb_err refused; /* the first reason of another; or empty */
};

static void judge_sites(const struct found *found, struct verdict *verdict)
{
	for (size_t i = 0; i < found->count; i++) {
		const struct found_site *fs = &found->site[i];
		struct verdict *v = &verdict[fs->hook.target];

		v->can |= fs->hook.why == PLAN_OK;
		if (fs->hook.why != PLAN_OK && !v->refused.code)
			err_set(&v->refused, SB_EREFUSED, "%s%s%s", plan_refusal_text(fs->hook.why),
				fs->detail[0] ? ": " : "", fs->detail);
	}
}

/* A target is hopeless if its module is mapped somewhere and nothing of it can be hooked. */
static int judge_target(const struct target *t, const struct verdict *v, struct sb_err *err)
{
	char quoted[TEXT_QUOTE_SIZE];

	if (v->can || t->spec->kind == SPEC_PYTHON)
		return 0;
	if (v->refused.code)
		*err = v->refused;
	else if (t->module_seen && t->why.code && t->why.code != SB_ENOMODULE &&
		 t->why.code != SB_EFILE) /* unloaded between the look and the open: pending */
		*err = t->why;
	else
		return 0;
	err_prefix(err, "target '%s'", text_quote(t->spec->text, quoted, sizeof(quoted)));
	return -(int)err->code;
}

/* A target that a list of a preset stands for may be missing, but not all of them. */
static int judge_list(const struct inject_session *s, const struct verdict *v, size_t first,
		      size_t end, struct sb_err *err)
{
	const char *reason = "";

	for (size_t t = first; t < end; t++) {
		if (v[t].can || !(v[t].refused.code || s->target[t].module_seen))
			return 0;
		reason = *reason || !v[t].refused.code ? reason : v[t].refused.what;
	}
	return target_list_lost(&s->target[first], reason, err);
}

static int judge_all(const struct inject_session *s, const struct verdict *v, struct sb_err *err)
{
	int ret = 0;

	for (size_t t = 0; t < s->n_targets && ret == 0; t++) {
		size_t end = target_list_end(s->target, s->n_targets, t);

		if (end > t)
			ret = judge_list(s, v, t, end, err);
		else if (!s->target[t].spec->listed)
			ret = judge_target(&s->target[t], &v[t], err);
	}
	return ret;
}

static int check_targets(struct inject_session *s, const pid_t *pids, size_t n, struct sb_err *err)
{
	struct verdict *verdict = must_calloc(s->n_targets + 1, sizeof(*verdict));
	int ret = 0;

	for (size_t i = 0; i < n && ret == 0; i++) {
		struct found found = { 0 };
		struct sb_err why = { 0 };

		if (session_find(s, pids[i], NULL, &found, &why) == -SB_EINTERRUPTED) {
			*err = why;
			ret = -SB_EINTERRUPTED;
		}
		judge_sites(&found, verdict);
		found_free(&found);
	}
	if (ret == 0)
		ret = judge_all(s, verdict, err);
	free(verdict);
	return ret < 0 ? ret : python_check(s, pids, n, err);
}

/*
 * Hooks that a killed sbinject left in a descendant count in its own page: the calls would be
 * missing here, and the hooks look like those of another tool. A living sbinject keeps its
 * processes; a warning names these.
 */
static int check_left_hooked(const struct inject_session *s, const pid_t *pids, size_t n,
			     struct sb_err *err)
{
	pid_t tracer;

	for (size_t i = 0; i < n; i++) {
		if (!space_is_hooked(pids[i], &tracer) || task_is_tracer(tracer))
			continue;
		err_set(err, SB_EHOOKED,
			"process %d, a descendant of %d, was left hooked by an sbinject that was "
			"killed",
			pids[i], s->cfg->pids[0]);
		err_hint(err, "sbinject recover -p %d restores it, with all of its tree",
			 s->cfg->pids[0]);
		return -SB_EHOOKED;
	}
	return 0;
}

int inject_check(struct session_core *core, struct sb_err *err)
{
	struct inject_session *s = session_of(core);
	pid_t *pids;
	size_t n;
	int ret = check_machine_first(err);

	for (size_t i = 0; i < s->cfg->n_pids && ret == 0; i++)
		ret = check_pid(s, s->cfg->pids[i], err);
	if (ret < 0)
		return ret;
	processes_descendants(s->cfg, &pids, &n);
	ret = check_left_hooked(s, pids, n, err);
	if (n && ret == 0)
		ret = check_targets(s, pids, n, err);
	free(pids);
	return ret;
}

/* A sweep needs the time of a target's calls without those that one of them made: a bit for each.
 */
static int timed_most(const struct inject_session *s)
{
	return s->cfg->sweeping ? SB_PAGE_SPAN_BITS : SB_PAGE_SPAN_TARGETS;
}

int inject_check_spec(struct session_core *core, const struct spec *spec, struct sb_err *err)
{
	const struct inject_session *s = session_of(core);

	if (spec->delay_ns && !s->clock_ok) {
		err_set(err, SB_ECLOCK, "delays cannot be exact on this machine: %s", s->clock_why);
		err_hint(err, "a delay of 0 (count only) works");
		return -SB_ECLOCK;
	}
	if (spec->at && spec->inlined)
		return err_set(err, SB_EUSAGE,
			       "target '%s': at=exit (at=both) and inline=yes exclude each other: "
			       "the exits "
			       "of an inlined copy are not known",
			       spec->text);
	if (spec->timed && spec->inlined)
		return err_set(err, SB_EUSAGE,
			       "target '%s': time=yes and inline=yes exclude each other: the exits "
			       "of an inlined copy are not known",
			       spec->text);
	if (spec->timed && spec->kind != SPEC_PYTHON && s->cfg->mechanism == MECHANISM_INT3)
		return err_set(err, SB_EUSAGE,
			       "target '%s': time=yes and --mechanism int3 exclude each other: a "
			       "trap of 10 us and more would be a part of each time",
			       spec->text);
	if (spec->timed && spec->kind != SPEC_PYTHON &&
	    s->span_bits + (s->attached_ns > 0) > timed_most(s))
		return err_set(err, SB_ENOMEM,
			       "target '%s': at most %d targets of native functions can be timed: "
			       "a pattern may match many functions",
			       spec->text, timed_most(s));
	if (spec->timed && !s->spans && s->attached_ns)
		return err_set(err, SB_ENOMEM,
			       "target '%s': the session was started without time=yes, and has no "
			       "space for times: start it with at least one such target",
			       spec->text);
	if (spec->thread && !arch->thread_pointer_readable())
		return err_set(err, SB_EUSAGE,
			       "target '%s': thread= needs a kernel that lets programs read their "
			       "FS base (Linux 5.9)",
			       spec->text);
	if (spec->thread && !s->cfg->follow)
		return err_set(err, SB_EUSAGE,
			       "target '%s': thread= and --no-follow exclude each other: new "
			       "threads must be seen",
			       spec->text);
	return 0;
}
