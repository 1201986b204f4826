/* SPDX-License-Identifier: MIT */
#include "backends.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "inject/tree-task.h"
#include "src/base/log.h"
#include "src/session/check.h"

const struct backend *const backends[] = {
	&backend_inject,
	&backend_uprobe,
	&backend_kmod,
	NULL,
};

static void list_names(char *buf, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; backends[i] && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%s", i ? ", " : "",
					backends[i]->name);
}

/* Does the process itself refuse to be traced? Any other failure is left to inject, which reports
 * it. */
static bool cannot_be_traced(const struct session_config *cfg, struct sb_err *why)
{
	static const bool refusal[SB_CODE_COUNT] = {
		[SB_EPERM] = true,   [SB_ETRACED] = true, [SB_ECONFINED] = true,
		[SB_ETARGET] = true, [SB_ENOMEM] = true,
	};

	/* Two sbinjects on one target are a mistake as a rule: inject reports it. */
	for (size_t i = 0; i < cfg->n_pids; i++)
		if (check_is_hooked(cfg->pids[i]))
			return false;
	for (size_t i = 0; i < cfg->n_pids; i++)
		if (check_process(cfg->pids[i], (uint32_t)cfg->targets.count, why) < 0)
			return refusal[why->code];
	return false;
}

/*
 * A process can make itself traced, and so influence the choice. The uprobe backend affects all
 * processes that map a file; for a process of another user only the user's own option selects it.
 */
static bool another_users(const struct session_config *cfg, pid_t *pid)
{
	for (size_t i = 0; i < cfg->n_pids; i++) {
		*pid = cfg->pids[i];
		if (!task_is_user(*pid, geteuid()))
			return true;
	}
	return false;
}

static bool uprobe_can(const struct session_config *cfg)
{
	struct sb_err ignored = { 0 };

	for (size_t i = 0; i < cfg->targets.count; i++) {
		const struct spec *spec = &cfg->targets.spec[i];

		if (spec_in_kernel(spec))
			continue;
		if (spec->kind == SPEC_PYTHON || spec->thread || spec->at || spec->timed ||
		    (spec->delay_ns != SPEC_DELAY_UNSET &&
		     spec->delay_ns > backend_uprobe.delay_max_ns))
			return false;
	}
	/* Without ptrace, too, the map of a process must be readable. */
	for (size_t i = 0; i < cfg->n_pids; i++)
		if (check_readable(cfg->pids[i], &ignored) < 0)
			return false;
	return cfg->mechanism == MECHANISM_AUTO && backend_uprobe.probe(&ignored) == 0;
}

/* Only the uprobe backend has targets in the kernel; beside others it has a session of its own
 * (beside.h). */
static bool only_in_kernel(const struct session_config *cfg)
{
	bool all = cfg->targets.count > 0;

	for (size_t i = 0; i < cfg->targets.count; i++)
		all &= spec_in_kernel(&cfg->targets.spec[i]);
	return all;
}

static const struct backend *choose(const struct session_config *cfg, struct sb_err *err)
{
	struct sb_err why = { 0 };
	pid_t pid;

	if (cfg->all || only_in_kernel(cfg))
		return backend_uprobe.probe(err) < 0 ? NULL : &backend_uprobe;
	if (backend_inject.probe(&why) == 0 && (cfg->look_only || !cannot_be_traced(cfg, &why)))
		return &backend_inject;
	if (uprobe_can(cfg) && another_users(cfg, &pid)) {
		*err = why;
		err_hint(err,
			 "process %d is another user's, so --backend uprobe, which needs no "
			 "ptrace, is used on request only",
			 pid);
		return NULL;
	}
	if (uprobe_can(cfg)) {
		log_note("%s: taking --backend uprobe, which needs no ptrace", why.what);
		return &backend_uprobe;
	}
	/* The backend itself reports a refusal of the process. */
	return backend_inject.probe(err) < 0 ? NULL : &backend_inject;
}

const struct backend *backend_choose(const char *name, const struct session_config *cfg,
				     struct sb_err *err)
{
	char names[128];

	if (!name || !strcmp(name, "auto"))
		return choose(cfg, err);
	for (size_t i = 0; backends[i]; i++) {
		if (strcmp(name, backends[i]->name) != 0)
			continue;
		if (cfg->all && backends[i] == &backend_inject) {
			err_set(err, SB_EUSAGE,
				"--all is for --backend uprobe: inject hooks "
				"processes, one by one");
			err_hint(err, "leave --backend out");
			return NULL;
		}
		if (backends[i] != &backend_uprobe && only_in_kernel(cfg)) {
			err_set(err, SB_EUSAGE,
				"--backend %s: targets in the kernel are for the uprobe backend",
				name);
			err_hint(err, "leave --backend out");
			return NULL;
		}
		return backends[i]->probe(err) < 0 ? NULL : backends[i];
	}
	list_names(names, sizeof(names));
	err_set(err, SB_EUSAGE, "--backend: this build has no backend '%s'", name);
	err_hint(err, "it has: auto, %s", names);
	return NULL;
}
