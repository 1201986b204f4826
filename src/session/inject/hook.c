/* SPDX-License-Identifier: MIT */
/*
 * Finding what of the targets a process has, and hooking it: names (elf/) to plans (sites.c) to
 * changed text (inject/).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "priv.h"
#include "python.h"
#include "inject/mimic.h"
#include "inject/tree-task.h"
#include "src/base/log.h"
#include "src/base/maps.h"
#include "src/base/text.h"
#include "src/session/check.h"
#include "src/session/strays.h"

#define EVERY SIZE_MAX /* targets */

enum { PIDS_SHOWN = 1000, CACHE_PAYS = 8, TARGETS_A_LOOK = 64 };

struct finder {
	struct session *s;
	pid_t pid;
	const struct space *space;
	struct memory mem;
	struct maps maps;
	struct mimic *mimic; /* of the process, for IFUNC resolvers */
	struct resolve_access access;
	struct found *found;
	uint64_t bell;	      /* the dynamic linker's notice; 0: not looked for yet, 1: none */
	struct found *settle; /* where to look again for IFUNCs; may be NULL */
	bool pending;	      /* an IFUNC's implementation is not known yet */
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

static void note_refusal(struct session *s, size_t target, pid_t pid, const char *module,
			 const char *symbol, uint64_t addr, const char *reason)
{
	struct target *t = &s->target[target];
	struct result_refused r = {
		.module = (char *)module,
		.symbol = (char *)symbol,
		.name = symbol_shown(symbol),
		.reason = (char *)reason,
		.address = addr,
	};

	/* Of a server that forks for ever the first thousand say enough. */
	for (size_t i = 0; i < t->n_refused; i++)
		if (t->refused[i].n_pids > PIDS_SHOWN)
			pid = 0;
	result_refuse(&t->refused, &t->n_refused, &r, pid);
	free(r.name);
}

static void note_clash(struct session *s, size_t target, size_t other, pid_t pid,
		       const struct resolve_site *rs)
{
	char reason[TEXT_QUOTE_SIZE + 64], quoted[TEXT_QUOTE_SIZE];
	struct target *t = &s->target[target];

	text_quote(s->target[other].spec->text, quoted, sizeof(quoted));
	snprintf(reason, sizeof(reason), "already a site of target '%s'", quoted);
	note_refusal(s, target, pid, image_name(rs->img), rs->name, rs->addr, reason);
	t->clashes = true;
	t->why = (struct sb_err){ 0 };
	err_set(&t->why, SB_EEXIST, "%.200s is already a site of target '%s'", rs->name, quoted);
	err_hint(&t->why, "a function counts for one target: leave out one of the two, or put the "
			  "one that names fewer functions first");
}

static uint64_t bell_address(struct finder *f)
{
	struct resolve_result res = { 0 };

	if (!f->bell) {
		bool found = target_find_bell(f->pid, &f->maps, &f->access, &res);

		f->bell = found ? res.site[0].addr : 1;
		resolve_free(&res);
	}
	return f->bell;
}

/* One address can count for one target only: the one named first. */
static bool taken(struct session *s, struct finder *f, size_t target, const struct resolve_site *rs)
{
	size_t hooked = session_hooked_at(f->s, f->space, rs->addr), other = target;

	if (hooked < s->n_sites)
		other = s->site[hooked].bell ? target : s->site[hooked].target;
	else if (hooked == SIZE_MAX && !session_found_at(f->found, rs->addr, &other))
		return false;
	if (other != target)
		note_clash(s, target, other, f->pid, rs);
	return true;
}

static void add_sites(struct finder *f, size_t target, const struct resolve_result *res)
{
	/* A glob's own sites are sorted and distinct: look only at what came before. */
	struct found before = { .site = f->found->site, .count = f->found->count };

	for (size_t i = 0; i < res->count; i++) {
		const struct resolve_site *rs = &res->site[i];
		struct finder look;
		struct found_site site = {
			.target = target,
			.bias = rs->bias,
			.addr = rs->addr,
			.func = rs->func,
			.size = rs->size,
		};

		if (rs->addr == bell_address(f)) {
			note_refusal(f->s, target, f->pid, image_name(rs->img), rs->name, rs->addr,
				     "sbinject itself hooks it, to see libraries that are loaded");
			continue;
		}
		before.site = f->found->site;
		look = *f;
		look.found = &before;
		if (taken(f->s, &look, target, rs))
			continue;
		site.img = image_ref(rs->img);
		site.name = text_dup(rs->name);
		found_add(f->found, &site);
	}
}

static void add_settling(struct finder *f, const struct resolve_result *res)
{
	for (size_t i = 0; i < res->n_settle && f->settle; i++)
		bell_add(f->s, f->space, f->settle, &res->settle[i]);
}

/* pid=: in a process out of scope a target hooks nothing, so that another one may. */
static bool in_scope(const struct finder *f, size_t i)
{
	pid_t scope = f->s->target[i].spec->pid;

	for (const struct record *rec = f->s->records; scope && rec; rec = rec->next)
		if (rec->pid == f->pid && !rec->ended)
			return rec->in_scope[i];
	for (pid_t pid = f->pid; scope && pid != scope; pid = task_parent(pid))
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
	if (!in_scope(f, i)) {
		err_set(&t->why, SB_ENOMODULE, "process %d is not among the processes hooked",
			t->spec->pid);
		return;
	}
	if (target_resolve(t, f->pid, &f->maps, &f->access, true, &res) == 0) {
		add_sites(f, i, &res);
		add_settling(f, &res);
	}
	f->pending |= res.ifunc_pending > 0;
	resolve_free(&res);
}

static int finder_open(struct finder *f, struct session *s, pid_t pid, const struct space *space,
		       struct found *found, struct sb_err *err)
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

/* As session_find(), of one target or of EVERY; bells for what cannot be known yet are added to
 * settle. code: of the maps, 0 where something is still to be known. */
static int find_all(struct session *s, pid_t pid, const struct space *space, size_t which,
		    struct found *found, struct found *settle, uint64_t *code, struct sb_err *err)
{
	struct finder f;
	int ret = finder_open(&f, s, pid, space, found, err);

	if (ret < 0)
		return ret;
	f.settle = settle;
	if (which == EVERY && s->n_targets >= CACHE_PAYS)
		f.access.cache = resolve_cache_new(&f.maps);
	for (size_t i = 0; i < s->n_targets && ret == 0; i++) {
		if (which == EVERY || which == i)
			find_target(&f, i);
		if (i % TARGETS_A_LOOK)
			continue;
		session_alive(s);
		if (session_ends(s))
			ret = err_set(err, SB_EINTERRUPTED,
				      "interrupted while names were looked up");
	}
	if (ret < 0) {
		finder_close(&f);
		return ret;
	}
	plans_make(s->plans, found, s->cfg->mechanism == MECHANISM_INT3);
	*code = f.pending ? 0 : code_of_maps(&f.maps);
	finder_close(&f);
	return 0;
}

int session_find(struct session *s, pid_t pid, const struct space *space, struct found *found,
		 struct sb_err *err)
{
	uint64_t code;

	return find_all(s, pid, space, EVERY, found, NULL, &code, err);
}

/* A place for one more: one that is free, or at the end. */
static uint32_t new_site(struct session *s)
{
	if (s->free_site) {
		size_t i = s->free_site - 1;

		s->free_site = s->site[i].next_free;
		return (uint32_t)i;
	}
	if ((s->n_sites & (s->n_sites - 1)) == 0) {
		s->site = realloc(s->site, (s->n_sites ? s->n_sites * 2 : 1) * sizeof(*s->site));
		if (!s->site)
			abort();
	}
	return (uint32_t)s->n_sites++;
}

static uint32_t add_site_record(struct session *s, const struct found_site *fs)
{
	uint32_t index = new_site(s);

	s->site[index] = (struct site_record){
		.target = fs->target,
		.module = text_dup(image_name(fs->img)),
		.symbol = text_dup(fs->name),
		.build_id = text_dup(image_build_id(fs->img)),
		.address = fs->addr,
		.size = fs->size,
		.int3 = fs->plan.shape == PLAN_INT3,
		.bell = fs->bell,
		.start = fs->start,
	};
	if (!fs->bell)
		s->site[index].each = each_number(s, fs->target, s->site[index].module,
						  s->site[index].symbol, fs->addr);
	return index;
}

static void bell_refused(struct session *s, pid_t pid, enum plan_refusal why)
{
	session_warn(s,
		     "process %d: libraries loaded later are not seen: the dynamic linker's notice "
		     "cannot be hooked (%s)",
		     pid, plan_refusal_text(why));
}

static void refused(struct session *s, const struct found_site *fs, pid_t pid,
		    enum plan_refusal why)
{
	char reason[320];

	if (fs->bell) {
		bell_refused(s, pid, why);
		return;
	}
	snprintf(reason, sizeof(reason), "%s%s%s", plan_refusal_text(why),
		 fs->detail[0] ? ": " : "", fs->detail);
	note_refusal(s, fs->target, pid, image_name(fs->img), fs->name, fs->addr, reason);
}

/* Only in the memory was it seen why. */
static void not_planted(struct session *s, const struct site_record *r, pid_t pid,
			enum plan_refusal why)
{
	char reason[512], by[64] = "";

	if (why == PLAN_BREAKPOINT)
		session_probes_in(s, pid, r->module, by, sizeof(by));
	snprintf(reason, sizeof(reason), "%s%s%s", plan_refusal_text(why),
		 by[0] ? "; its file has uprobes of " : "", by);
	note_refusal(s, r->target, pid, r->module, r->symbol, r->address, reason);
}

/* Sites of one image, contiguous in found: hooked in one go. */
static int hook_image(struct session *s, struct space *space, pid_t pid, struct found_site *fs,
		      size_t n, struct sb_err *err)
{
	struct space_site *sites = calloc(n, sizeof(*sites));
	size_t m = 0, regions = space->n_regions;
	int ret = 0;

	if (!sites)
		abort();
	for (size_t i = 0; i < n; i++) {
		if (fs[i].why != PLAN_OK) {
			refused(s, &fs[i], pid, fs[i].why);
			continue;
		}
		sites[m].plan = fs[i].plan;
		sites[m].target = (uint32_t)fs[i].target;
		sites[m].bell = fs[i].bell;
		sites[m].start = fs[i].start;
		sites[m].cookie = (uint32_t)i;
		m++;
	}
	for (size_t i = 0; i < m; i++) {
		sites[i].cookie = add_site_record(s, &fs[sites[i].cookie]);
		sites[i].each = s->site[sites[i].cookie].each;
	}
	if (m)
		ret = space_plant(space, &s->tree, pid, sites, m, err);
	/* A region keeps its sites' places until nobody has it any more. */
	for (size_t i = 0; i < m && ret < 0 && space->n_regions == regions; i++)
		record_free_site(s, sites[i].cookie);
	if (ret < 0 && err->code == SB_ENOMODULE) {
		/* Unloaded between the look and the write: as if it had not been there. */
		*err = (struct sb_err){ 0 };
		ret = m = 0;
	}
	for (size_t i = 0; i < m && ret >= 0; i++) {
		struct site_record *r = &s->site[sites[i].cookie];

		if (sites[i].why == PLAN_OK && !r->bell)
			s->target[r->target].planted = true;
		else if (sites[i].why != PLAN_OK && !r->bell)
			not_planted(s, r, pid, sites[i].why);
		else if (sites[i].why != PLAN_OK && !r->start)
			bell_refused(s, pid, sites[i].why);
		if (sites[i].why != PLAN_OK)
			record_free_site(s, sites[i].cookie);
	}
	free(sites);
	return ret;
}

static int by_image(const void *a, const void *b)
{
	const struct found_site *x = a, *y = b;

	if (x->img != y->img)
		return x->img < y->img ? -1 : 1;
	if (x->bias != y->bias)
		return x->bias < y->bias ? -1 : 1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

int session_hook_found(struct session *s, struct space *space, pid_t pid, struct found *found,
		       struct sb_err *err)
{
	size_t first = 0, last;
	int ret = 0;

	if (!found->count)
		return 0;
	qsort(found->site, found->count, sizeof(*found->site), by_image);
	for (; first < found->count && ret >= 0; first = last) {
		for (last = first + 1; last < found->count &&
				       found->site[last].img == found->site[first].img &&
				       found->site[last].bias == found->site[first].bias;)
			last++;
		ret = hook_image(s, space, pid, &found->site[first], last - first, err);
	}
	return ret;
}

/*
 * Regions whose library was unloaded: what is mapped there now is someone else's. Of one that is
 * still there single hooks may have been taken out, its first too.
 */
static void drop_stale(struct space *space)
{
	for (size_t i = 0; i < space->n_regions; i++)
		if (!space->stale[i] && !space_hooks_any(space, space->regions[i]))
			space->stale[i] = true;
}

static void page_gone(void *ctx, struct page *page)
{
	struct session *s = ctx;

	bells_remove(s->bells, page);
	s->bells_lost += page_bells_lost(page);
}

static void page_made(void *ctx, pid_t pid, uint32_t dev, uint64_t inode)
{
	struct session *s = ctx;

	strays_page(s->cfg->strays, pid, dev, inode);
}

static struct space_want want_of(struct session *s)
{
	return (struct space_want){ .session = s->cfg->id,
				    .targets = (uint32_t)s->n_targets,
				    .more = (uint32_t)(s->max_targets - s->n_targets),
				    .made = page_made,
				    .ctx = s };
}

static void adopt_page(struct session *s, struct control *control)
{
	bells_add(s->bells, &control->page);
	control->gone = page_gone;
	control->ctx = s;
}

int session_setup(struct session *s, struct space *space, pid_t pid, struct sb_err *err)
{
	struct space_want want = want_of(s);
	int ret = space_setup(space, &s->tree, pid, &want, err);

	if (ret < 0)
		return ret;
	page_set_clock(&space->control->page, (uint64_t)(s->clk.ticks_per_ns * 1e9));
	adopt_page(s, space->control);
	return 0;
}

int session_part(struct session *s, struct space *space, pid_t pid, struct control **old,
		 struct sb_err *err)
{
	struct space_want want = want_of(s);
	int ret = space_part(space, &s->tree, pid, &want, old, err);

	if (*old)
		adopt_page(s, space->control);
	return ret;
}

/* A session that waits to be filled touches nothing. */
static bool any_target(const struct session *s)
{
	for (size_t i = 0; i < s->n_targets; i++)
		if (!s->target[i].removed)
			return true;
	return false;
}

/* The process may end or exec meanwhile: its space is held, and it is not looked at again. */
static int hook(struct session *s, struct proc *proc, size_t which, bool fresh, struct sb_err *err)
{
	struct found found = { 0 }, bell = { 0 };
	struct space *space = proc->space;
	pid_t pid = proc->pid;
	struct record *rec;
	uint64_t code = 0;
	int ret;

	if (!space) /* it has ended since it was found */
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
		ret = find_all(s, pid, space, which, &found, &bell, &code, err);
	if (ret >= 0 && found.count && s->cfg->mechanism == MECHANISM_INT3)
		ret = check_trap(pid, err);
	if (ret >= 0)
		bell_find(s, pid, space, &bell);
	if (ret >= 0 && found.count + bell.count && !space->control)
		ret = session_setup(s, space, pid, err);
	if (ret >= 0)
		ret = session_hook_found(s, space, pid, &found, err);
	if (ret >= 0)
		ret = session_hook_found(s, space, pid, &bell, err);
	if (ret < 0 && memory_gone(&space->mem)) {
		*err = (struct sb_err){ 0 };
		ret = memory_err_gone(pid, err);
	}
	found_free(&found);
	found_free(&bell);
	if (rec)
		rec->looking = false;
	rec = ret >= 0 ? record_of(s, space) : NULL;
	if (rec && (which == EVERY || !code))
		rec->code = code;
	if (rec)
		ret = python_look(s, rec, space, pid, fresh, err);
	space_put(space);
	return ret;
}

void session_bar(struct session *s, const struct record *rec, const struct sb_err *err)
{
	const char *remedy = err_remedy(err);

	session_warn(s, "process %d (%s) is not hooked: %s%s%s", rec->pid, rec->comm, err->what,
		     *remedy ? "; " : "", remedy);
	for (size_t i = 0; i < s->n_targets; i++)
		if (rec->in_scope[i] && !s->target[i].planted && !s->target[i].removed)
			s->target[i].barred = *err;
}

int session_hook(struct session *s, struct proc *proc, bool fresh, struct sb_err *err)
{
	return hook(s, proc, EVERY, fresh, err);
}

int session_hook_one(struct session *s, struct proc *proc, size_t target, struct sb_err *err)
{
	return hook(s, proc, target, false, err);
}
