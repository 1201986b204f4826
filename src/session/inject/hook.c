/* SPDX-License-Identifier: MIT */
/*
 * Finds what a process has of the targets, and hooks it: from names (elf/) to plans (sites.c) to
 * changed text (inject/).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "priv.h"
#include "python.h"
#include "inject/mimic.h"
#include "inject/tree-task.h"
#include "src/spec/value.h"
#include "src/base/log.h"
#include "src/base/maps.h"
#include "src/base/must.h"
#include "src/base/text.h"
#include "src/session/check.h"
#include "src/session/strays.h"

#define EVERY SIZE_MAX /* all targets */

enum { PIDS_SHOWN = 1000, CACHE_PAYS = 8, TARGETS_A_LOOK = 64 };

struct finder {
	struct inject_session *s;
	pid_t pid;
	const struct space *space;
	struct memory mem;
	struct maps maps;
	struct mimic *mimic; /* of the process, for IFUNC resolvers */
	struct resolve_access access;
	struct found *found;
	uint64_t doorbell; /* the dynamic linker's notice; 0: not searched for yet, 1: none */
	struct found
		*settle; /* places for doorbells that lead to a new look at IFUNCs; may be NULL */
	bool pending;	 /* the implementation of an IFUNC is not known yet */
	const bool *in_scope; /* by target */
};

/* A look at one process for one target or for EVERY, which runs beside the stops. */
struct look {
	struct inject_session *s;
	pid_t pid;
	const struct space *space;
	size_t which;
	struct found *found, *settle; /* settle: places for doorbells; NULL: none are wanted */
	bool *in_scope;
	uint64_t code; /* hash of the mapped code; 0: something is not yet known */
	int ret;
	struct sb_err *err;
};

static int read_target(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct finder *f = ctx;

	return memory_peek(&f->mem, addr, buf, len) == len ? 0 : -1;
}

static int call_target(void *ctx, uint64_t function, uint64_t *result, struct sb_err *err)
{
	const struct finder *f = ctx;

	return mimic_call(f->mimic, function, result, err);
}

static void note_clash(struct inject_session *s, size_t target, size_t other, pid_t pid,
		       const struct resolve_site *rs)
{
	char reason[TEXT_QUOTE_SIZE + 64], quoted[TEXT_QUOTE_SIZE];
	struct target *t = &s->target[target];

	if (target_yields(t, &s->target[other]))
		return;
	text_quote(s->target[other].spec->text, quoted, sizeof(quoted));
	snprintf(reason, sizeof(reason), "already a site of target '%s'", quoted);
	site_note_refusal(s, target, pid, image_name(rs->img), rs->name, rs->addr, reason);
	t->clashes = true;
	t->why = (struct sb_err){ 0 };
	err_set(&t->why, SB_EEXIST, "%.200s is already a site of target '%s'", rs->name, quoted);
	err_hint(&t->why, "a function counts for one target: leave out one of the two, or put the "
			  "one that names fewer functions first");
}

static uint64_t doorbell_address(struct finder *f)
{
	struct resolve_result res = { 0 };

	if (!f->doorbell) {
		bool found = target_find_doorbell(f->pid, &f->maps, &f->access, &res);

		f->doorbell = found ? res.site[0].addr : 1;
		resolve_free(&res);
	}
	return f->doorbell;
}

/* An address counts for one target only: the first one. hooked: the number of a site that is hooked
 * there, or SIZE_MAX. */
static bool taken(struct inject_session *s, struct finder *f, size_t target, size_t hooked,
		  const struct resolve_site *rs)
{
	size_t other = target;

	if (hooked < s->n_sites)
		other = s->site[hooked].doorbell ? target : s->site[hooked].target;
	else if (hooked == SIZE_MAX && !session_found_at(f->found, rs->addr, &other))
		return false;
	if (other != target)
		note_clash(s, target, other, f->pid, rs);
	return true;
}

/*
 * Adds the exits of a function, unless its first one is taken: they are all, or none. `before`
 * looks at the sites of other targets.
 */
static void add_exits(struct finder *f, struct finder *before, size_t target,
		      const struct resolve_site *rs, const struct found_site *function)
{
	struct found exits = { 0 };
	struct resolve_site first = *rs;

	found_add_exits(&exits, function);
	first.addr = exits.site[0].addr;
	if (exits.site[0].hook.why == PLAN_OK &&
	    taken(f->s, before, target, session_hooked_exit(f->s, f->space, first.addr), &first)) {
		found_free(&exits);
		return;
	}
	for (size_t i = 0; i < exits.count; i++)
		found_add(f->found, &exits.site[i]);
	free(exits.site);
}

static bool takes_arguments(struct finder *f, size_t target, const struct resolve_site *rs)
{
	struct target *t = &f->s->target[target];
	struct sb_err err = { 0 };

	if (target_arguments(t, rs, &err) == 0)
		return true;
	site_note_refusal(f->s, target, f->pid, image_name(rs->img), rs->name, rs->addr, err.what);
	t->why = err;
	return false;
}

static void add_sites(struct finder *f, size_t target, const struct resolve_result *res)
{
	/* A glob's own sites are sorted and distinct: compare only with the sites before it. */
	struct found before = { .site = f->found->site, .count = f->found->count };
	const struct spec *spec = f->s->target[target].spec;
	bool ends = f->s->own[target].can_time || spec->at == SPEC_AT_BOTH;
	bool exits = spec->at == SPEC_AT_EXIT && !ends;

	for (size_t i = 0; i < res->count; i++) {
		const struct resolve_site *rs = &res->site[i];
		struct finder look;
		struct found_site site = {
			.hook.target = (uint32_t)target,
			.bias = rs->bias,
			.addr = rs->addr,
			.func = rs->func,
			.size = rs->size,
		};

		if (rs->addr == doorbell_address(f)) {
			site_note_refusal(
				f->s, target, f->pid, image_name(rs->img), rs->name, rs->addr,
				"sbinject itself hooks it, to see libraries that are loaded");
			continue;
		}
		before.site = f->found->site;
		look = *f;
		look.found = &before;
		if (!exits &&
		    taken(f->s, &look, target, session_hooked_at(f->s, f->space, rs->addr), rs))
			continue;
		if (spec->arguments && !takes_arguments(f, target, rs))
			continue;
		site.hook.values = spec->n_values;
		site.hook.follow = value_followed(spec);
		site.hook.text = value_text_of(spec);
		site.img = image_ref(rs->img);
		site.name = text_dup(rs->name);
		if (exits)
			add_exits(f, &look, target, rs, &site);
		else if (ends)
			found_add_ends(f->found, &site, spec->at != SPEC_AT_ENTRY);
		else
			found_add(f->found, &site);
	}
}

static void add_settling(struct finder *f, const struct resolve_result *res)
{
	for (size_t i = 0; i < res->n_settle && f->settle; i++)
		doorbell_add(f->s, f->space, f->settle, &res->settle[i]);
}

/* pid=: in a process out of its scope a target hooks nothing, so that another target may. */
static bool in_scope(const struct inject_session *s, pid_t of, size_t i)
{
	pid_t scope = s->target[i].spec->pid;

	for (const struct record *rec = s->records; scope && rec; rec = rec->next)
		if (rec->pid == of && !rec->ended)
			return rec->in_scope[i];
	for (pid_t pid = of; scope && pid != scope; pid = task_parent(pid))
		if (pid <= 0)
			return false;
	return true;
}

static void find_target(struct finder *f, size_t i)
{
	struct target *t = &f->s->target[i];
	struct resolve_result res = { 0 };

	if (t->removed || t->spec->kind == SPEC_PYTHON)
		return;
	if (!f->in_scope[i]) {
		err_set(&t->why, SB_ENOMODULE, "process %d is not among the processes hooked",
			t->spec->pid);
		return;
	}
	if (target_resolve(t, f->pid, &f->maps, &f->access, !t->spec->listed, &res) == 0) {
		add_sites(f, i, &res);
		add_settling(f, &res);
	}
	f->pending |= res.ifunc_pending > 0;
	resolve_free(&res);
}

static int finder_open(struct finder *f, struct inject_session *s, pid_t pid,
		       const struct space *space, struct found *found, struct sb_err *err)
{
	int ret;

	*f = (struct finder){ .s = s, .pid = pid, .space = space, .found = found };
	f->access = (struct resolve_access){ .read = read_target, .call = call_target, .ctx = f };
	if (memory_open(&f->mem, pid, err) < 0)
		return -(int)err->code;
	ret = maps_read(pid, &f->maps, err);
	if (ret < 0)
		memory_close(&f->mem);
	else
		f->mimic = mimic_open(&f->mem, &f->maps);
	return ret;
}

static void finder_close(struct finder *f)
{
	mimic_close(f->mimic);
	resolve_cache_free(f->access.cache);
	maps_free(&f->maps);
	memory_close(&f->mem);
}

static int find_targets(struct finder *f, const struct look *look)
{
	struct inject_session *s = look->s;

	if (look->which == EVERY && s->n_targets >= CACHE_PAYS)
		f->access.cache = resolve_cache_new(&f->maps);
	for (size_t i = 0; i < s->n_targets; i++) {
		if (look->which == EVERY || look->which == i)
			find_target(f, i);
		if (i % TARGETS_A_LOOK == 0 && aside_ends(s))
			return err_set(look->err, SB_EINTERRUPTED,
				       "interrupted while names were looked up");
	}
	plans_make(s->plans, look->found, s->cfg->mechanism == MECHANISM_INT3);
	found_settle_exits(look->found);
	return aside_ends(s) ? err_set(look->err, SB_EINTERRUPTED,
				       "interrupted while names were looked up") :
			       0;
}

static void look_up(void *arg)
{
	struct look *look = arg;
	struct finder f;

	look->ret = finder_open(&f, look->s, look->pid, look->space, look->found, look->err);
	if (look->ret < 0)
		return;
	tracing_mapped(look->s->tracing, look->pid);
	f.settle = look->settle;
	f.in_scope = look->in_scope;
	look->ret = find_targets(&f, look);
	if (look->ret >= 0)
		look->code = f.pending ? 0 : code_of_maps(&f.maps);
	finder_close(&f);
	if (look->ret >= 0 && look->settle)
		doorbell_find(look->s, look->pid, look->space, look->settle);
}

/* As session_find(), for one target or for EVERY. settle: adds doorbells for libraries that are
 * loaded later, and for what is not yet known to settle. */
static int find_all(struct look *look)
{
	struct inject_session *s = look->s;

	look->in_scope = must_calloc(s->n_targets + 1, sizeof(*look->in_scope));
	for (size_t i = 0; i < s->n_targets; i++)
		look->in_scope[i] = in_scope(s, look->pid, i);
	aside_run(s, look_up, look);
	free(look->in_scope);
	return look->ret;
}

int session_find(struct inject_session *s, pid_t pid, const struct space *space,
		 struct found *found, struct sb_err *err)
{
	return find_all(&(struct look){
		.s = s, .pid = pid, .space = space, .which = EVERY, .found = found, .err = err });
}

/*
 * Regions whose library was unloaded: the memory there belongs to another mapping now. In a region
 * that is still there single hooks may have been removed, the first one too.
 */
static void drop_stale(struct space *space)
{
	for (size_t i = 0; i < space->n_regions; i++)
		if (!space->stale[i] && !space_hooks_any(space, space->regions[i]))
			space->stale[i] = true;
}

/* A session without targets, which waits for session_add(), touches nothing. */
static bool any_target(const struct inject_session *s)
{
	for (size_t i = 0; i < s->n_targets; i++)
		if (!s->target[i].removed)
			return true;
	return false;
}

/* The process may end or exec meanwhile: holds its space, and does not use the process again. */
static int hook(struct inject_session *s, struct proc *proc, size_t which, bool fresh,
		struct sb_err *err)
{
	struct found found = { 0 }, doorbell = { 0 };
	struct space *space = proc->space;
	pid_t pid = proc->pid;
	struct look look = { .s = s,
			     .pid = pid,
			     .space = space,
			     .which = which,
			     .found = &found,
			     .settle = &doorbell,
			     .err = err };
	struct record *rec;
	int ret;

	if (!space) /* it has ended since the search */
		return memory_err_gone(pid, err);
	if (!any_target(s))
		return 0;
	space_get(space);
	rec = record_of(s, space);
	if (rec)
		rec->looking = true;
	if (rec && which == EVERY)
		rec->code = 0;
	drop_stale(space);
	ret = check_translated(pid, err);
	if (ret >= 0)
		ret = find_all(&look);
	if (ret >= 0)
		window_arguments(s);
	if (ret >= 0 && found.count && s->cfg->mechanism == MECHANISM_INT3)
		ret = check_trap(pid, err);
	if (ret >= 0 && found.count + doorbell.count && !space->control)
		ret = session_setup(s, space, pid, err);
	if (ret >= 0)
		pyframes_look(s, space, pid);
	if (ret >= 0)
		ret = session_hook_found(s, space, pid, &found, err);
	if (ret >= 0)
		ret = session_hook_found(s, space, pid, &doorbell, err);
	if (ret < 0 && memory_gone(&space->mem)) {
		*err = (struct sb_err){ 0 };
		ret = memory_err_gone(pid, err);
	}
	found_free(&found);
	found_free(&doorbell);
	if (rec)
		rec->looking = false;
	rec = ret >= 0 ? record_of(s, space) : NULL;
	if (rec && (which == EVERY || !look.code))
		rec->code = look.code;
	if (rec)
		ret = python_look(s, rec, space, pid, fresh, err);
	space_put(space);
	return ret;
}

void session_bar(struct inject_session *s, const struct record *rec, const struct sb_err *err)
{
	const char *remedy = err_remedy(err);

	session_warn(s, "process %d (%s) is not hooked: %s%s%s", rec->pid, rec->comm, err->what,
		     *remedy ? "; " : "", remedy);
	for (size_t i = 0; i < s->n_targets; i++)
		if (rec->in_scope[i] && !s->target[i].planted && !s->target[i].removed)
			s->target[i].barred = *err;
}

int session_hook(struct inject_session *s, struct proc *proc, bool fresh, struct sb_err *err)
{
	return hook(s, proc, EVERY, fresh, err);
}

int session_hook_one(struct inject_session *s, struct proc *proc, size_t target, struct sb_err *err)
{
	return hook(s, proc, target, false, err);
}
