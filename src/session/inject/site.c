/* SPDX-License-Identifier: MIT */
/* The sites of one address space: sets up its control page, plants hooks and records them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "priv.h"
#include "src/base/log.h"
#include "src/base/must.h"
#include "src/base/text.h"
#include "src/session/strays.h"

enum { PIDS_SHOWN = 1000 };

void site_note_refusal(struct inject_session *s, size_t target, pid_t pid, const char *module,
		       const char *symbol, uint64_t addr, const char *reason)
{
	struct target *t = &s->target[target];

	/* A server may fork without end: the first thousand pids are enough. */
	for (size_t i = 0; i < t->n_refused; i++)
		if (t->refused[i].n_pids > PIDS_SHOWN)
			pid = 0;
	target_refuse(t, module, symbol, addr, reason, pid);
}

/* The index for a new site: a free one, or the end. */
static uint32_t new_site(struct inject_session *s)
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

/* Of a target that is one function, recorded calls have its name. */
static void name_target(struct inject_session *s, size_t target, const struct site_record *site)
{
	const struct spec *spec = s->target[target].spec;
	char *name;

	if (spec->kind != SPEC_SYMBOL || strpbrk(spec->symbol, "*?["))
		return;
	/* The versions of a preset's function are one. */
	name = spec->row ? text_dup(spec->symbol) : must(symbol_shown(site->symbol));
	tracing_target(s->tracing, s->own[target].span_bit, name, site->module);
	free(name);
}

static uint32_t add_site_record(struct inject_session *s, const struct found_site *fs)
{
	uint32_t index = new_site(s);

	s->site[index] = (struct site_record){
		.target = fs->hook.target,
		.module = text_dup(image_name(fs->img)),
		.symbol = text_dup(fs->name),
		.build_id = text_dup(image_build_id(fs->img)),
		.address = fs->addr,
		.size = fs->size,
		.function = fs->exit ? fs->hook.function : 0,
		.end = fs->hook.kind == ARCH_END,
		.int3 = fs->hook.plan.shape == PLAN_INT3,
		.doorbell = fs->hook.doorbell,
		.start = fs->hook.start,
	};
	if (s->tracing && !fs->hook.doorbell)
		name_target(s, fs->hook.target, &s->site[index]);
	/* The exits of a function have its number. */
	if (!fs->hook.doorbell)
		s->site[index].each = each_number(
			s, fs->hook.target, s->site[index].module, s->site[index].symbol,
			fs->hook.kind == ARCH_END ? fs->hook.function : fs->addr);
	return index;
}

static void doorbell_refused(struct inject_session *s, pid_t pid, enum plan_refusal why)
{
	session_warn(s,
		     "process %d: libraries loaded later are not seen: the dynamic linker's notice "
		     "cannot be hooked (%s)",
		     pid, plan_refusal_text(why));
}

static void refused(struct inject_session *s, const struct found_site *fs, pid_t pid)
{
	enum plan_refusal why = fs->hook.why;
	char reason[320];

	if (fs->hook.doorbell) {
		doorbell_refused(s, pid, why);
		return;
	}
	snprintf(reason, sizeof(reason), "%s%s%s", plan_refusal_text(why),
		 fs->detail[0] ? ": " : "", fs->detail);
	site_note_refusal(s, fs->hook.target, pid, image_name(fs->img), fs->name, fs->addr, reason);
}

/* It is hooked, but how long its calls take is not measured. */
static void note_untimed(struct inject_session *s, size_t target, pid_t pid, const char *module,
			 const char *symbol, uint64_t addr, const char *reason)
{
	struct target *t = &s->target[target];
	struct result_refused r = { .module = (char *)module,
				    .symbol = (char *)symbol,
				    .name = must(symbol_shown(symbol)),
				    .reason = (char *)reason,
				    .address = addr };

	result_refuse(&t->untimed, &t->n_untimed, &r, pid);
	free(r.name);
}

static void untimed(struct inject_session *s, const struct found_site *fs, pid_t pid)
{
	char reason[320];

	snprintf(reason, sizeof(reason), "%s%s%s", plan_refusal_text(fs->hook.untimed),
		 fs->detail[0] ? ": " : "", fs->detail);
	note_untimed(s, fs->hook.target, pid, image_name(fs->img), fs->name, fs->addr, reason);
}

/* A refusal that only the memory shows. */
static void not_planted(struct inject_session *s, const struct site_record *r, pid_t pid,
			enum plan_refusal why)
{
	char reason[512], by[64] = "";

	if (why == PLAN_BREAKPOINT)
		session_probes_in(s, pid, r->module, by, sizeof(by));
	snprintf(reason, sizeof(reason), "%s%s%s", plan_refusal_text(why),
		 by[0] ? "; its file has uprobes of " : "", by);
	site_note_refusal(s, r->target, pid, r->module, r->symbol, r->address, reason);
}

/* Fills sites with those that can be hooked, and records them; reports the others. Returns their
 * number. */
static size_t sites_to_plant(struct inject_session *s, pid_t pid, const struct found_site *fs,
			     size_t n, struct space_site *sites)
{
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		if (fs[i].hook.why != PLAN_OK) {
			refused(s, &fs[i], pid);
			continue;
		}
		if (fs[i].hook.untimed && s->target[fs[i].hook.target].spec->timed)
			untimed(s, &fs[i], pid);
		sites[m] = fs[i].hook;
		sites[m].untimed = PLAN_OK; /* reported; space_plant() may find more */
		if (!fs[i].exit && fs[i].hook.kind != ARCH_BEGIN)
			sites[m].function = 0;
		sites[m].cookie = add_site_record(s, &fs[i]);
		sites[m].each = s->site[sites[m].cookie].each;
		m++;
	}
	return m;
}

static void planted(struct inject_session *s, const struct space_site *site, pid_t pid)
{
	struct site_record *r = &s->site[site->cookie];

	if (site->why == PLAN_OK && !r->doorbell)
		s->target[r->target].planted = true;
	else if (site->why != PLAN_OK && !r->doorbell && !r->end)
		not_planted(s, r, pid, site->why);
	else if (site->why != PLAN_OK && r->doorbell && !r->start)
		doorbell_refused(s, pid, site->why);
	if (site->why == PLAN_OK && site->untimed && s->target[r->target].spec->timed)
		note_untimed(s, r->target, pid, r->module, r->symbol, r->address,
			     plan_refusal_text(site->untimed));
	if (site->why != PLAN_OK)
		record_free_site(s, site->cookie);
}

/* Hooks the sites of one image at once; they are contiguous in found. */
static int hook_image(struct inject_session *s, struct space *space, pid_t pid,
		      const struct found_site *fs, size_t n, struct sb_err *err)
{
	struct space_site *sites = must_calloc(n, sizeof(*sites));
	size_t m = sites_to_plant(s, pid, fs, n, sites), regions = space->n_regions;
	int ret = 0;

	memcpy(space->control->page.value_cost, s->value_cost, sizeof(s->value_cost));
	if (m)
		ret = space_plant(space, &s->tree, pid, sites, m, err);
	/* A region keeps the entries of its sites as long as it is used. */
	for (size_t i = 0; i < m && ret < 0 && space->n_regions == regions; i++)
		record_free_site(s, sites[i].cookie);
	if (ret < 0 && err->code == SB_ENOMODULE) {
		/* Unloaded between the look and the write: as if it had never been mapped. */
		*err = (struct sb_err){ 0 };
		ret = m = 0;
	}
	for (size_t i = 0; i < m && ret >= 0; i++)
		planted(s, &sites[i], pid);
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

int session_hook_found(struct inject_session *s, struct space *space, pid_t pid,
		       struct found *found, struct sb_err *err)
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

static void page_gone(void *ctx, struct page *page)
{
	struct inject_session *s = ctx;

	doorbells_remove(s->doorbells, page);
	if (s->tracing)
		tracing_page_gone(s->tracing, page);
	s->doorbells_lost += page_doorbells_lost(page);
}

static void page_made(void *ctx, const struct task_ids *ids, uint32_t dev, uint64_t inode)
{
	struct inject_session *s = ctx;

	strays_page(s->cfg->strays, ids, dev, inode);
}

static struct space_want want_of(struct inject_session *s, pid_t pid)
{
	strays_root(s->cfg->strays, pid);
	return (struct space_want){ .session = s->cfg->id,
				    .targets = (uint32_t)s->n_targets,
				    .more = (uint32_t)(s->max_targets - s->n_targets),
				    .spans = s->spans,
				    .functions = s->spans && s->cfg->by_function,
				    .chunks = s->tracing ? s->cfg->trace_chunks : 0,
				    .stack_bytes = s->tracing ? s->cfg->trace_stacks : 0,
				    .made = page_made,
				    .ctx = s };
}

static void adopt_page(struct inject_session *s, struct control *control)
{
	doorbells_add(s->doorbells, &control->page);
	if (s->tracing)
		tracing_page(s->tracing, &control->page);
	control->gone = page_gone;
	control->ctx = s;
}

int session_setup(struct inject_session *s, struct space *space, pid_t pid, struct sb_err *err)
{
	struct space_want want = want_of(s, pid);
	int ret = space_setup(space, &s->tree, pid, &want, err);

	if (ret < 0)
		return ret;
	page_set_clock(&space->control->page, (uint64_t)(s->clk.ticks_per_ns * 1e9));
	space->control->page.span_cost[0] = (uint64_t)s->cost.span_within;
	space->control->page.span_cost[1] = (uint64_t)s->cost.span_cost;
	adopt_page(s, space->control);
	return 0;
}

int session_part(struct inject_session *s, struct space *space, pid_t pid, struct control **old,
		 struct sb_err *err)
{
	struct space_want want = want_of(s, pid);
	int ret = space_part(space, &s->tree, pid, &want, old, err);

	if (*old)
		adopt_page(s, space->control);
	return ret;
}
