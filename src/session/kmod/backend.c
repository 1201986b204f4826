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
#include "src/session/backend.h"
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

static struct session *kmod_open(const struct session_config *cfg, struct sb_err *err)
{
	struct session *s;

	if (check_config(cfg, err) < 0)
		return NULL;
	s = must_calloc(1, sizeof(*s));
	s->cfg = cfg;
	s->enabled = true;
	s->n_targets = cfg->targets.count;
	s->max_targets = s->n_targets + SPARE_TARGETS;
	s->target = must_calloc(s->max_targets, sizeof(*s->target));
	for (size_t i = 0; i < s->n_targets; i++)
		target_init(&s->target[i], &cfg->targets.spec[i]);
	return s;
}

static void kmod_close(struct session *s)
{
	for (size_t i = 0; i < s->n_targets; i++) {
		ksession_free_lines(&s->target[i]);
		target_free(&s->target[i]);
	}
	free(s->target);
	free(s);
}

static int kmod_check(struct session *s, struct sb_err *err)
{
	char *stats = kmod_read("stats");
	uint64_t there = kmod_number(stats, "targets: ");

	s->delay_before = kmod_number(stats, "total_delay_ns: ");
	free(stats);
	if (there) {
		err_set(err, SB_EHOOKED, "the kernel module is in use: it has %llu target%s",
			(unsigned long long)there, there == 1 ? "" : "s");
		err_hint(err, "sbctl --kmod list shows them, sbctl --kmod clear removes them");
		return -SB_EHOOKED;
	}
	return s->cfg->n_pids ? check_readable(s->cfg->pids[0], err) : 0;
}

/* ---- names ---- */

/* ---- the list ---- */

static void kmod_detach(struct session *s)
{
	struct sb_err ignored = { 0 };

	if (s->detached)
		return;
	s->detached = true;
	kmod_write("enabled", &ignored, "0"); /* delays in progress end */
	for (size_t i = 0; i < s->n_targets; i++)
		ksession_take_out(&s->target[i]);
	s->wall_s = s->armed ? (double)(clock_ns() - s->attached_ns) / 1e9 : 0;
	s->ended_real = clock_realtime_ns();
}

static int kmod_attach(struct session *s, struct sb_err *err)
{
	int ret = 0;

	s->started_real = clock_realtime_ns();
	for (size_t i = 0; i < s->n_targets && ret == 0; i++) {
		ret = ksession_find(s, &s->target[i], err);
		if (ret == 0)
			ret = ksession_put_in(s, &s->target[i], err);
	}
	if (ret == 0)
		ret = kmod_write("enabled", err, "1");
	if (ret < 0) {
		kmod_detach(s);
		return ret;
	}
	s->armed = true;
	s->attached_ns = clock_ns();
	return 0;
}

static enum session_end kmod_step(struct session *s, int *next_ms, struct sb_err *err)
{
	pid_t pid = s->cfg->n_pids ? s->cfg->pids[0] : s->cfg->launched;

	(void)err;
	*next_ms = TICK_MS;
	if (s->cfg->for_ns && clock_ns() - s->attached_ns >= s->cfg->for_ns)
		return SESSION_END_FOR;
	return pid && task_ended(pid) ? SESSION_END_TARGET : SESSION_RUNS;
}

static int kmod_fd(const struct session *s)
{
	(void)s;
	return -1;
}

/* ---- figures ---- */

static void kmod_counts(struct session *s, struct result_counts *counts, double *t_s)
{
	ksession_counts_of(s, counts);
	*t_s = s->armed ? (double)(clock_ns() - s->attached_ns) / 1e9 : 0;
}

static void fill_target(struct session *s, const struct target *t, struct result_target *rt)
{
	target_fill(t, clock_ns(), rt);
	rt->outcome = rt->counts.delayed ? OUTCOME_DELAYED :
		      rt->counts.hits	 ? OUTCOME_COUNTED :
		      t->n_lines	 ? OUTCOME_NEVER_CALLED :
					   OUTCOME_PENDING;
	rt->reason = text_dup("");
	snprintf(rt->given.reason, sizeof(rt->given.reason),
		 "the kernel module measures no single hits");
	rt->site = must_calloc(t->n_lines + 1, sizeof(*rt->site));
	for (size_t i = 0; i < t->n_lines; i++) {
		rt->site[i] = (struct result_site){
			.module = text_dup(t->line[i].module),
			.build_id = text_dup(t->line[i].build_id),
			.symbol = text_dup(t->line[i].symbol),
			.name = must(symbol_shown(t->line[i].symbol)),
			.address = t->line[i].address,
			.size = t->line[i].size,
			.mechanism = text_dup("kmod"),
		};
		if (ksession_whom(s, t))
			result_add_pid(&rt->site[i].pids, &rt->site[i].n_pids, ksession_whom(s, t));
	}
	rt->n_sites = t->n_lines;
	rt->procs = t->n_lines && ksession_whom(s, t);
}

static struct result *kmod_result(struct session *s)
{
	uint64_t ended = s->ended_real ? s->ended_real : clock_realtime_ns();
	struct result *res = result_of_session(s->n_targets, "kmod", s->started_real, ended,
					       s->wall_s);
	struct result_counts *counts = must_calloc(s->n_targets + 1, sizeof(*counts));

	ksession_counts_of(s, counts);
	for (size_t i = 0; i < s->n_targets; i++) {
		res->target[i].counts = counts[i];
		fill_target(s, &s->target[i], &res->target[i]);
	}
	free(counts);
	res->stop_known = true; /* no thread is held */
	if (s->n_targets > 1)
		result_warn(res,
			    "the kernel module measures the delays of all targets together: what "
			    "each has injected is its share by hits and delay");
	return res;
}

static struct result *kmod_list(struct session *s, struct sb_err *err)
{
	struct result *res;

	for (size_t i = 0; i < s->n_targets && !err->code; i++)
		ksession_find(s, &s->target[i], err);
	res = kmod_result(s);
	for (size_t i = 0; i < s->n_targets; i++) {
		res->target[i].active_s = NAN;
		res->target[i].outcome = res->target[i].n_sites ? OUTCOME_MATCHED : OUTCOME_PENDING;
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
	.probe = kmod_probe,
	.open = kmod_open,
	.check = kmod_check,
	.attach = kmod_attach,
	.step = kmod_step,
	.fd = kmod_fd,
	.counts = kmod_counts,
	.detach = kmod_detach,
	.result = kmod_result,
	.add = ksession_add,
	.remove = ksession_remove,
	.update = ksession_update,
	.enable = ksession_enable,
	.enabled = ksession_enabled,
	.mute = ksession_mute,
	.targets = ksession_targets,
	.target = ksession_target,
	.state = ksession_state,
	.lanes = ksession_lanes,
	.pids = ksession_pids,
	.list = kmod_list,
	.close = kmod_close,
	.recover = kmod_recover,
};
