/* SPDX-License-Identifier: MIT */
/* What can be found wrong before the target is touched. */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "maps.h"
#include "session-priv.h"
#include "text.h"
#include "../inject/tree-task.h"

#define PF_KTHREAD 0x00200000

/* Fields 3 (state) and 9 (flags) of /proc/PID/stat. */
static bool read_stat(pid_t pid, char *state, unsigned int *flags)
{
	char path[64], line[1024];
	char *paren;
	bool ok;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(line, sizeof(line), f) && (paren = strrchr(line, ')')) &&
	     sscanf(paren + 1, " %c %*d %*d %*d %*d %*d %u", state, flags) == 2;
	fclose(f);
	return ok;
}

static int check_kind(pid_t pid, struct sb_err *err)
{
	unsigned int flags;
	char state;
	pid_t tgid = task_tgid(pid);

	if (!read_stat(pid, &state, &flags) || !tgid) {
		err_set(err, SB_ENOPROC, "no such process: %d", pid);
		return -SB_ENOPROC;
	}
	if (flags & PF_KTHREAD)
		return err_set(err, SB_EBADPROC,
			       "process %d is a kernel thread: it has no user "
			       "code to hook",
			       pid);
	if ((state == 'Z' || state == 'X') && task_ended(pid)) {
		err_set(err, SB_EBADPROC, "process %d is a zombie: it has ended", pid);
		err_hint(err, "its parent, %d, has not collected its status", task_parent(pid));
		return -SB_EBADPROC;
	}
	if (tgid != pid) {
		err_set(err, SB_EBADPROC, "%d is a thread of process %d", pid, tgid);
		err_hint(err, "use -p %d; thread=%d after the target limits it to that thread",
			 tgid, pid);
		return -SB_EBADPROC;
	}
	return 0;
}

static int check_access(pid_t pid, struct sb_err *err)
{
	struct memory mem;
	struct image *img;
	char path[64];
	int ret;

	if (task_tracer(pid) > 0)
		return task_seize_error(pid, pid, err);
	if (memory_open(&mem, pid, NULL) < 0)
		return task_seize_error(pid, pid, err);
	memory_close(&mem);
	if (task_frozen(pid)) {
		err_set(err, SB_ECONFINED, "process %d is frozen by its cgroup", pid);
		err_hint(err, "thaw it first: nothing in it can run until then");
		return -SB_ECONFINED;
	}
	if (task_has_shadow_stack(pid)) {
		err_set(err, SB_ECONFINED,
			"process %d runs with a user shadow stack: a hook that "
			"displaces a call would end it",
			pid);
		err_hint(err, "start it without: GLIBC_TUNABLES=glibc.cpu.x86_shstk=off");
		return -SB_ECONFINED;
	}
	snprintf(path, sizeof(path), "/proc/%d/exe", maps_face(pid));
	ret = image_get(path, path, &img, err);
	if (ret == 0)
		image_put(img);
	else
		err_prefix(err, "process %d", pid);
	return ret;
}

static int check_hooked(pid_t pid, struct sb_err *err)
{
	pid_t tracer;

	if (!space_is_hooked(pid, &tracer))
		return 0;
	if (task_is_tracer(tracer)) {
		err_set(err, SB_EHOOKED, "process %d is hooked by another sbinject (pid %d)", pid,
			tracer);
		err_hint(err, "end that one first");
	} else {
		err_set(err, SB_EHOOKED,
			"process %d was left hooked by an sbinject that was killed", pid);
		err_hint(err, "sbinject recover -p %d restores it", pid);
	}
	return -SB_EHOOKED;
}

int check_readable(pid_t pid, struct sb_err *err)
{
	int ret = check_kind(pid, err);

	return ret < 0 ? ret : check_access(pid, err);
}

int session_check_pid(pid_t pid, struct sb_err *err)
{
	int ret = check_readable(pid, err);

	return ret < 0 ? ret : check_hooked(pid, err);
}

static int check_pid(const struct session *s, pid_t pid, struct sb_err *err)
{
	if (session_skips(s, pid))
		return err_set(err, SB_EBADPROC, "process %d is sbinject itself", pid);
	return session_check_pid(pid, err);
}

static void count_sites(struct session *s, const struct found *found)
{
	for (size_t i = 0; i < found->count; i++) {
		struct target *t = &s->target[found->site[i].target];

		if (found->site[i].why == PLAN_OK)
			t->sites_ok++;
		else
			t->sites_refused++;
	}
}

static void why_refused(const struct found *found, size_t target, struct sb_err *err)
{
	for (size_t i = 0; i < found->count; i++) {
		const struct found_site *fs = &found->site[i];

		if (fs->target != target || fs->why == PLAN_OK)
			continue;
		err_set(err, SB_EREFUSED, "%s%s%s", plan_refusal_text(fs->why),
			fs->detail[0] ? ": " : "", fs->detail);
		return;
	}
}

/* A target is hopeless if its module is mapped somewhere and nothing of it can be hooked. */
static int judge_target(const struct target *t, const struct sb_err *refused, struct sb_err *err)
{
	char quoted[TEXT_QUOTE_SIZE];

	if (t->sites_ok || t->spec->kind == SPEC_PYTHON)
		return 0;
	if (t->sites_refused)
		*err = *refused;
	else if (t->module_seen && t->why.code && t->why.code != SB_ENOMODULE &&
		 t->why.code != SB_EFILE) /* unloaded between the look and the open: pending */
		*err = t->why;
	else
		return 0;
	err_prefix(err, "target '%s'", text_quote(t->spec->text, quoted, sizeof(quoted)));
	return -(int)err->code;
}

static int check_targets(struct session *s, const pid_t *pids, size_t n, struct sb_err *err)
{
	struct sb_err *refused = calloc(s->n_targets + 1, sizeof(*refused));
	int ret = 0;

	if (!refused)
		abort();
	for (size_t i = 0; i < n; i++) {
		struct found found = { 0 };
		struct sb_err ignored = { 0 };

		session_find(s, pids[i], NULL, &found, &ignored);
		count_sites(s, &found);
		for (size_t t = 0; t < s->n_targets; t++)
			why_refused(&found, t, &refused[t]);
		found_free(&found);
	}
	for (size_t t = 0; t < s->n_targets && ret == 0; t++)
		ret = judge_target(&s->target[t], &refused[t], err);
	free(refused);
	return ret;
}

int session_check(struct session *s, struct sb_err *err)
{
	pid_t *pids;
	size_t n;
	int ret = 0;

	for (size_t i = 0; i < s->cfg->n_pids && ret == 0; i++)
		ret = check_pid(s, s->cfg->pids[i], err);
	if (ret < 0)
		return ret;
	session_descendants(s, &pids, &n);
	if (n)
		ret = check_targets(s, pids, n, err);
	free(pids);
	return ret;
}
