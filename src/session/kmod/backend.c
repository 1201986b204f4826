/* SPDX-License-Identifier: MIT */
/*
 * The kernel module as a backend. A session adds its targets to the module's list, limited to the
 * process by pid=, and removes them at the end. What the module does not report (the process, the
 * length of each single hit) is unknown in the result.
 *
 * The list belongs to the whole machine, so a session needs it for itself alone. It leaves the list
 * empty and disabled.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "files.h"
#include "priv.h"
#include "elf/resolve.h"
#include "inject/clock.h"
#include "inject/tree-task.h"
#include "src/base/log.h"
#include "src/base/must.h"
#include "src/base/text.h"
#include "src/session/check.h"
#include "src/session/processes.h"

enum { SPARE_TARGETS = 64, TICK_MS = 100 };

/* Does the file contain this word? An unreadable file contains nothing. */
static bool says(const char *path, const char *word)
{
	char text[128] = "";
	FILE *f = fopen(path, "re");
	bool got = f && fgets(text, sizeof(text), f) && strstr(text, word);

	if (f)
		fclose(f);
	return got;
}

static bool wants_signature(void)
{
	return says("/sys/kernel/security/lockdown", "[integrity]") ||
	       says("/sys/kernel/security/lockdown", "[confidentiality]") ||
	       says("/sys/module/module/parameters/sig_enforce", "Y");
}

static int kmod_probe(struct sb_err *err)
{
	if (!kmod_dir()) {
		err_set(err, SB_ECONFINED,
			"the kernel module is not loaded: there is no "
			"/sys/kernel/speed_bump");
		err_hint(err, "%s",
			 wants_signature() ?
				 "this kernel is locked down and takes signed modules only: sign "
				 "speed_bump.ko with a key that it trusts, or boot without "
				 "lockdown (Secure Boot may bring it)" :
				 "make kmod and insmod inject/kmod/speed_bump.ko");
		return -SB_ECONFINED;
	}
	if (geteuid()) {
		err_set(err, SB_EPERM, "the kernel module is for root");
		return -SB_EPERM;
	}
	return 0;
}

/* ---- open and check ---- */

static int check_config(const struct session_config *cfg, struct sb_err *err)
{
	int ret = 0;

	if (cfg->by_function)
		return err_set(err, SB_EUSAGE, "--hits-by-function is for the inject backend");
	if (cfg->perf_map || cfg->perf_map_keep)
		return err_set(err, SB_EUSAGE, "--perf-map is for the inject backend");
	if (cfg->n_pids > 1) {
		err_set(err, SB_EUSAGE,
			"the kernel module limits a target to one process and its "
			"descendants: name one -p, or -a");
		return -SB_EUSAGE;
	}
	if (cfg->start_ns || cfg->start_on || cfg->max_slowdown > 0 ||
	    cfg->mechanism != MECHANISM_AUTO || !cfg->children) {
		err_set(err, SB_EUSAGE,
			"the kernel module does not know --start, --start-on, --max-slowdown, "
			"--mechanism and --no-children");
		err_hint(err, "--backend inject does");
		return -SB_EUSAGE;
	}
	for (size_t i = 0; i < cfg->targets.count && ret == 0; i++)
		ret = ksession_check_spec(&cfg->targets.spec[i], err);
	return ret;
}

static int kmod_open(struct session_core *core, struct sb_err *err)
{
	struct kmod_session *s = ksession(core);

	s->own = must_calloc(s->max_targets, sizeof(*s->own));
	return check_config(s->cfg, err);
}

static void kmod_close(struct session_core *core)
{
	struct kmod_session *s = ksession(core);

	for (size_t i = 0; i < s->n_targets; i++)
		ksession_free_lines(&s->own[i]);
	free(s->own);
}

static int kmod_check(struct session_core *core, struct sb_err *err)
{
	char *stats = kmod_read("stats");
	uint64_t there = kmod_number(stats, "targets: ");

	ksession(core)->delay_before = kmod_number(stats, "total_delay_ns: ");
	free(stats);
	if (there) {
		err_set(err, SB_EHOOKED, "the kernel module is in use: it has %llu target%s",
			(unsigned long long)there, there == 1 ? "" : "s");
		err_hint(err, "sbctl --kmod list shows them, sbctl --kmod clear removes them");
		return -SB_EHOOKED;
	}
	return core->cfg->n_pids ? check_readable(core->cfg->pids[0], err) : 0;
}

/* ---- the list ---- */

static void kmod_detach(struct session_core *core)
{
	struct sb_err ignored = { 0 };

	kmod_write("enabled", &ignored, "0"); /* delays in progress end */
	for (size_t i = 0; i < core->n_targets; i++)
		ksession_take_out(ksession(core), i);
}

static int find_and_put_in(struct session_core *core, size_t index, struct sb_err *err)
{
	int ret = ksession_find(ksession(core), index, err);

	return ret < 0 ? ret : ksession_put_in(ksession(core), index, err);
}

static int kmod_attach(struct session_core *core, struct sb_err *err)
{
	int ret = 0;

	for (size_t i = 0; i < core->n_targets && ret == 0; i++)
		ret = find_and_put_in(core, i, err);
	if (ret == 0)
		ret = kmod_write("enabled", err, "1");
	if (ret < 0)
		return ret;
	session_arm(core);
	session_windows(core, core->attached_ns);
	return 0;
}

/* The first process of the session; 0: every process. */
static pid_t process_of(const struct session_config *cfg)
{
	return cfg->n_pids ? cfg->pids[0] : cfg->launched;
}

static enum session_end kmod_step(struct session_core *core, int *next_ms, struct sb_err *err)
{
	pid_t pid = process_of(core->cfg);

	(void)err;
	*next_ms = TICK_MS;
	if (!session_left(core, clock_ns()))
		return SESSION_END_FOR;
	return pid && task_ended(pid) ? SESSION_END_TARGET : SESSION_RUNS;
}

static int kmod_fd(const struct session_core *core)
{
	(void)core;
	return -1;
}

/* ---- changes ---- */

static int kmod_check_spec(struct session_core *core, const struct spec *spec, struct sb_err *err)
{
	(void)core;
	return ksession_check_spec(spec, err);
}

static int kmod_add(struct session_core *core, size_t index, struct sb_err *err)
{
	int ret = find_and_put_in(core, index, err);

	if (ret == 0)
		return 0;
	ksession_take_out(ksession(core), index);
	if (!core->target[index].again)
		ksession_free_lines(&ksession(core)->own[index]);
	return ret;
}

static int kmod_remove(struct session_core *core, size_t index, struct sb_err *err)
{
	(void)err;
	ksession_take_out(ksession(core), index);
	return 0;
}

static void kmod_apply(struct session_core *core, size_t index)
{
	struct target *t = &core->target[index];
	struct sb_err err = { 0 };

	if (!t->open) {
		ksession_take_out(ksession(core), index);
	} else if (ksession_put_in(ksession(core), index, &err) < 0) {
		log_warn("%s", err.what);
		target_switch(t, false, clock_ns());
	}
}

static void kmod_enable(struct session_core *core, bool on)
{
	struct sb_err ignored = { 0 };

	(void)core;
	kmod_write("enabled", &ignored, on ? "1" : "0");
}

/* ---- figures ---- */

static void kmod_counts(struct session_core *core, size_t first, size_t n,
			struct result_counts *counts)
{
	struct result_counts *all = must_calloc(core->n_targets + 1, sizeof(*all));

	ksession_counts_of(ksession(core), all);
	memcpy(counts, all + first, n * sizeof(*counts));
	free(all);
}

static size_t kmod_lanes(struct session_core *core, struct session_lane **lanes, uint64_t *t_ns)
{
	struct kmod_session *s = ksession(core);
	struct result_counts *counts = must_calloc(s->n_targets + 1, sizeof(*counts));
	size_t n = 0;

	*t_ns = clock_ns();
	*lanes = must_calloc(s->n_targets + 1, sizeof(**lanes));
	ksession_counts_of(s, counts);
	for (size_t i = 0; i < s->n_targets; i++)
		if (!s->target[i].removed)
			(*lanes)[n++] =
				(struct session_lane){ .pid = ksession_whom(s, i),
						       .target = i,
						       .hits = counts[i].hits,
						       .injected_ns = counts[i].injected_ns };
	free(counts);
	return n;
}

static size_t kmod_pids(struct session_core *core, pid_t **pids)
{
	size_t n = 0;

	*pids = NULL;
	if (process_of(core->cfg))
		result_add_pid(pids, &n, process_of(core->cfg));
	return n;
}

static void fill_sites(const struct kmod_session *s, size_t target, struct result_target *rt)
{
	const struct ktarget *own = &s->own[target];
	pid_t whom = ksession_whom(s, target);

	for (size_t i = 0; i < own->n_lines; i++) {
		const struct line *l = &own->line[i];
		struct result_site *site = target_site(rt, l->module, l->build_id, l->symbol,
						       l->address, l->size, "kmod");

		if (whom)
			result_add_pid(&site->pids, &site->n_pids, whom);
	}
}

static void kmod_result(struct session_core *core, struct result *res)
{
	struct result_counts *counts = must_calloc(core->n_targets + 1, sizeof(*counts));

	ksession_counts_of(ksession(core), counts);
	for (size_t i = 0; i < core->n_targets; i++) {
		struct result_target *rt = &res->target[i];

		rt->counts = counts[i];
		snprintf(rt->given.reason, sizeof(rt->given.reason),
			 "the kernel module measures no single hits");
		fill_sites(ksession(core), i, rt);
	}
	free(counts);
	res->stop_known = true; /* no thread is held */
	if (core->n_targets > 1)
		result_warn(res,
			    "the kernel module measures the delays of all targets together: what "
			    "each has injected is its share by hits and delay");
}

static struct result *kmod_list(struct session_core *core, struct sb_err *err)
{
	struct result *res;

	for (size_t i = 0; i < core->n_targets && !err->code; i++)
		ksession_find(ksession(core), i, err);
	core->ended_real = clock_realtime_ns();
	res = session_result(core);
	for (size_t i = 0; i < core->n_targets; i++) {
		struct result_target *rt = &res->target[i];

		rt->active_s = NAN;
		rt->outcome = rt->n_sites ? OUTCOME_MATCHED : OUTCOME_PENDING;
		rt->reason[0] = '\0';
	}
	return res;
}

/* A session has the list for itself: what is in it was left by a dead session. */
static void kmod_recover(void)
{
	struct sb_err ignored = { 0 };

	kmod_write("enabled", &ignored, "0");
	kmod_write("targets", &ignored, "-*");
}

const struct backend backend_kmod = {
	.name = "kmod",
	.summary = "the kernel module behind /sys/kernel/speed_bump",
	.size = sizeof(struct kmod_session),
	.spare_targets = SPARE_TARGETS,
	.open = kmod_open,
	.close = kmod_close,
	.attach = kmod_attach,
	.detach = kmod_detach,
	.check_spec = kmod_check_spec,
	.add = kmod_add,
	.remove = kmod_remove,
	.apply = kmod_apply,
	.enable = kmod_enable,
	.counts = kmod_counts,
	.result = kmod_result,
	.probe = kmod_probe,
	.check = kmod_check,
	.step = kmod_step,
	.fd = kmod_fd,
	.lanes = kmod_lanes,
	.pids = kmod_pids,
	.list = kmod_list,
	.recover = kmod_recover,
};
