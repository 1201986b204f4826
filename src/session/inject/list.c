/* SPDX-License-Identifier: MIT */
/* What `list` shows: the names and plans that check and hooking find, as a result. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "priv.h"
#include "python.h"
#include "src/base/must.h"
#include "src/base/text.h"
#include "src/session/check.h"

#define MS 1000000ull

enum { LIST_MS = 10000 };

/* Records a function that cannot be hooked, or not be timed. Returns the reason; the caller frees.
 */
static char *list_why(struct result_refused **list, size_t *n, const struct found_site *fs,
		      enum plan_refusal why, pid_t pid)
{
	char reason[320];
	struct result_refused r = {
		.module = (char *)image_name(fs->img),
		.symbol = fs->name,
		.name = must(symbol_shown(fs->name)),
		.reason = reason,
		.address = fs->addr,
	};

	snprintf(reason, sizeof(reason), "%s%s%s", plan_refusal_text(why),
		 fs->detail[0] ? ": " : "", fs->detail);
	result_refuse(list, n, &r, pid);
	free(r.name);
	return text_dup(reason);
}

static void list_site(struct result_target *rt, const struct found_site *fs, pid_t pid)
{
	struct result_site *site = target_site(rt, image_name(fs->img), image_build_id(fs->img),
					       fs->name, fs->addr, fs->size,
					       fs->hook.plan.shape == PLAN_INT3 ? "int3" : "jump");

	site->function = fs->exit ? fs->hook.function : 0;
	result_add_pid(&site->pids, &site->n_pids, pid);
	if (!fs->hook.untimed)
		return;
	site->untimed = list_why(&rt->untimed, &rt->n_untimed, fs, fs->hook.untimed, pid);
}

static void list_refused(struct result_target *rt, const struct found_site *fs, pid_t pid)
{
	free(list_why(&rt->refused, &rt->n_refused, fs, fs->hook.why, pid));
}

static int by_window(const void *a, const void *b)
{
	const struct found_site *x = *(struct found_site *const *)a,
				*y = *(struct found_site *const *)b;

	if (x->img != y->img)
		return x->img < y->img ? -1 : 1;
	if (x->bias != y->bias)
		return x->bias < y->bias ? -1 : 1;
	return (x->hook.plan.addr > y->hook.plan.addr) - (x->hook.plan.addr < y->hook.plan.addr);
}

static bool reaches_into(const struct found_site *last, const struct found_site *s)
{
	uint64_t end = last->hook.plan.addr + last->hook.plan.len;

	if (last->img != s->img || last->bias != s->bias)
		return false;
	return s->hook.plan.addr < end ||
	       (s->hook.plan.pad && s->hook.plan.shape != PLAN_ISLAND && s->hook.plan.pad < end);
}

static void refuse(struct found_site *fs, enum plan_refusal why)
{
	fs->hook.why = why;
	fs->detail[0] = '\0'; /* a shape that was tried before the one that was taken */
}

/*
 * The hooks of a function at its entry and at its exits may need the same bytes. A timed one is
 * counted then and not timed, as inject/plant.c decides it when it hooks.
 */
static void settle_overlaps(struct found *found)
{
	struct found_site **order = must_calloc(found->count + 1, sizeof(*order)), *last = NULL;
	size_t n = 0;

	for (size_t i = 0; i < found->count; i++)
		if (found->site[i].hook.why == PLAN_OK && found->site[i].hook.plan.len)
			order[n++] = &found->site[i];
	qsort(order, n, sizeof(*order), by_window);
	for (size_t i = 0; i < n; i++) {
		if (last && reaches_into(last, order[i])) {
			if (order[i]->hook.kind == ARCH_END) {
				refuse(order[i], last->hook.function == order[i]->hook.function ?
							 PLAN_EXIT_SHORT :
							 PLAN_OVERLAP);
				continue;
			}
			if (last->hook.kind == ARCH_END)
				refuse(last, PLAN_OVERLAP);
		}
		last = order[i];
	}
	free(order);
	found_settle_exits(found);
}

static void list_found(struct result *res, const struct found *found, pid_t pid)
{
	for (size_t i = 0; i < found->count; i++) {
		const struct found_site *fs = &found->site[i];
		struct result_target *rt = &res->target[fs->hook.target];

		if (fs->hook.kind == ARCH_END) /* the entry of its function is the row */
			continue;
		if (fs->hook.why == PLAN_OK)
			list_site(rt, fs, pid);
		else
			list_refused(rt, fs, pid);
	}
}

/* Equal sites of forks become adjacent; processes keep their order within a site. */
static int by_place(const void *a, const void *b)
{
	const struct result_site *x = a, *y = b;
	int c;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	c = strcmp(x->module, y->module);
	if (c == 0)
		c = strcmp(x->symbol, y->symbol);
	return c ? c : (x->pids[0] > y->pids[0]) - (x->pids[0] < y->pids[0]);
}

static bool same_site(const struct result_site *a, const struct result_site *b)
{
	return a->address == b->address && a->size == b->size && !strcmp(a->module, b->module) &&
	       !strcmp(a->symbol, b->symbol) && !strcmp(a->mechanism, b->mechanism) &&
	       !a->untimed == !b->untimed;
}

/* Merges the rows of several processes at one place into one. */
static void merge_sites(struct result_target *rt)
{
	size_t n = 0;

	if (rt->n_sites)
		qsort(rt->site, rt->n_sites, sizeof(*rt->site), by_place);
	for (size_t i = 0; i < rt->n_sites; i++) {
		struct result_site *last = n ? &rt->site[n - 1] : NULL, *site = &rt->site[i];

		if (!last || !same_site(last, site)) {
			rt->site[n++] = *site;
			continue;
		}
		result_add_pid(&last->pids, &last->n_pids, site->pids[0]);
		result_site_free(site);
	}
	rt->n_sites = n;
}

static void list_target(const struct target *t, struct result_target *rt)
{
	merge_sites(rt);
	target_list(t, rt); /* also records sites that another target has */
	for (size_t i = 0; i < rt->n_sites; i++)
		if (rt->site[i].n_pids > rt->procs)
			rt->procs = rt->site[i].n_pids;
}

static void list_process(struct result *res, pid_t pid)
{
	struct result_process *rp;
	char comm[64];

	res->process = must(reallocarray(res->process, res->n_processes + 1, sizeof(*rp)));
	rp = &res->process[res->n_processes++];
	*rp = (struct result_process){ .pid = pid };
	processes_names(pid, comm, sizeof(comm), &rp->exe);
	rp->comm = text_dup(comm);
}

/* While a command is in an interpreter, threads of the target are held or carry the command. So a
 * signal that ends or stops us waits until that is undone. */
static void list_signals(sigset_t *set)
{
	static const int numbers[] = { SIGINT,	SIGTERM, SIGHUP,  SIGQUIT,
				       SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE };

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaddset(set, numbers[i]);
}

/* Traces the processes and loads agents into their interpreters, which note their functions.
 * session_detach() removes all of it. */
static void python_list(struct inject_session *s, struct sb_err *err)
{
	uint64_t until = clock_ns() + LIST_MS * MS;

	if (!python_wanted(s) || s->cfg->preview || session_take_all(s, err) < 0)
		return;
	for (struct record *rec = s->records; rec; rec = rec->next) {
		struct space *space = rec->ended ? NULL : space_get(rec->space);
		struct sb_err why = { 0 };

		if (space && python_look(s, rec, space, rec->pid, false, &why) < 0)
			session_warn(s, "process %d: %s", rec->pid, why.what);
		space_put(space);
	}
	while (!session_interrupted() && python_step(s, clock_ns()) && clock_ns() < until)
		python_wait(s);
}

struct result *inject_list(struct session_core *core, struct sb_err *err)
{
	struct inject_session *s = session_of(core);
	struct result *res = result_new(s->n_targets);
	sigset_t set, old;
	pid_t *pids;
	size_t n;

	for (size_t i = 0; i < s->cfg->n_pids && !err->code && !s->cfg->preview; i++)
		check_readable(s->cfg->pids[i], err);
	processes_descendants(s->cfg, &pids, &n);
	for (size_t i = 0; i < n && !err->code; i++) {
		struct found found = { 0 };
		struct sb_err why = { 0 };

		if (session_find(s, pids[i], NULL, &found, &why) == 0) {
			settle_overlaps(&found);
			list_found(res, &found, pids[i]);
			list_process(res, pids[i]);
			window_arguments(s);
		} else if (i < s->cfg->n_pids) {
			*err = why;
		}
		found_free(&found);
	}
	free(pids);
	list_signals(&set);
	sigprocmask(SIG_BLOCK, &set, &old);
	if (!err->code)
		python_list(s, err);
	for (size_t i = 0; i < s->n_targets; i++)
		python_sites(s, i, NULL, &res->target[i]);
	session_detach(core);
	sigprocmask(SIG_SETMASK, &old, NULL);
	for (size_t i = 0; i < s->n_targets; i++)
		list_target(&s->target[i], &res->target[i]);
	return res;
}
