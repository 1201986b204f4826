/* SPDX-License-Identifier: MIT */
/*
 * Doorbells: functions at which a process waits until sbinject has seen what changed in it. The
 * dynamic linker's notice of libraries is one place in the whole process, and other tools use it,
 * too: by a debugger's breakpoint, or by a uprobe, which the kernel puts into every process. In
 * that case the callers of the notice are hooked instead.
 */
#include <stdlib.h>
#include <string.h>
#include "priv.h"
#include "src/base/text.h"

enum { MAX_CALLERS = 64 };

/* The first instruction may stay in front of the window: the record has the requested address. */
static bool is_site_of(const struct inject_session *s, const struct journal_site *site,
		       uint64_t addr)
{
	return site->cookie >= s->n_sites || s->site[site->cookie].address == addr;
}

/* The site of that address whose window begins in [from, to]. */
static size_t hooked_between(const struct inject_session *s, const struct space *space,
			     uint64_t from, uint64_t to, uint64_t addr)
{
	for (size_t i = 0; space && i < space->n_regions; i++) {
		const struct region *r = space->regions[i];

		for (uint64_t at = from; at <= to && !space->stale[i]; at++) {
			const struct journal_site *site = region_site_at(r, at);

			if (site && is_site_of(s, site, addr) && space_hooks(space, r, site))
				return site->cookie;
		}
	}
	return SIZE_MAX;
}

size_t session_hooked_at(const struct inject_session *s, const struct space *space, uint64_t addr)
{
	return hooked_between(s, space, addr, addr + PLAN_MAX_SKIPPED, addr);
}

size_t session_hooked_exit(const struct inject_session *s, const struct space *space, uint64_t addr)
{
	return hooked_between(s, space, addr - PLAN_MAX_WINDOW, addr, addr);
}

bool session_found_at(const struct found *found, uint64_t addr, size_t *target)
{
	for (size_t i = 0; i < found->count; i++) {
		if (found->site[i].addr != addr)
			continue;
		*target = found->site[i].hook.target;
		return true;
	}
	return false;
}

void doorbell_add(const struct inject_session *s, const struct space *space, struct found *found,
		  const struct resolve_site *rs)
{
	struct found_site site = {
		.hook.doorbell = true,
		.bias = rs->bias,
		.addr = rs->addr,
		.func = rs->func,
		.size = rs->size,
	};
	size_t other;

	if (session_hooked_at(s, space, rs->addr) != SIZE_MAX ||
	    session_found_at(found, rs->addr, &other))
		return;
	site.img = image_ref(rs->img);
	site.name = text_dup(rs->name);
	found_add(found, &site);
}

void session_add_doorbell(const struct inject_session *s, const struct space *space,
			  struct found *found, struct image *img, uint64_t bias, const char *name)
{
	struct symbol_list list;

	if (symbol_find(img, name, SYMBOL_LITERAL, &list, NULL) < 0)
		return;
	for (size_t i = 0; i < list.count; i++) {
		struct found_site site = {
			.hook.doorbell = true,
			.hook.start = true,
			.bias = bias,
			.addr = list.sym[i].vaddr + bias,
			.func = list.sym[i].vaddr + bias,
			.size = list.sym[i].size,
		};

		if (list.sym[i].ifunc || session_hooked_at(s, space, site.addr) != SIZE_MAX)
			continue;
		site.img = image_ref(img);
		site.name = text_dup(name);
		found_add(found, &site);
	}
	symbol_list_free(&list);
}

/* No hook fits there, or another tool has changed the place: a debugger, or the kernel for a
 * uprobe. */
static bool occupied(const struct memory *mem, const struct found_site *fs)
{
	uint8_t now[PLAN_MAX_WINDOW];
	size_t len = fs->hook.plan.len;

	return fs->hook.why != PLAN_OK || memory_peek(mem, fs->hook.plan.addr, now, len) != len ||
	       memcmp(now, fs->hook.plan.orig, len) != 0;
}

/* The last site of `found` cannot be hooked: replaces it by its callers, if they are all known. */
static void take_callers(struct inject_session *s, const struct space *space, struct found *found)
{
	struct found_site notice = found->site[found->count - 1];
	uint64_t from[MAX_CALLERS], end;
	size_t n = sites_callers(notice.img, notice.addr - notice.bias, from, MAX_CALLERS);

	if (!n)
		return; /* it is refused later, with the reason */
	found->count--;
	for (size_t i = 0; i < n; i++) {
		struct resolve_site rs = { .img = notice.img,
					   .bias = notice.bias,
					   .addr = from[i] + notice.bias,
					   .name = notice.name };

		if (image_function_at(notice.img, from[i], &rs.func, &end))
			rs.size = end - rs.func;
		rs.func += notice.bias;
		doorbell_add(s, space, found, &rs);
	}
	image_put(notice.img);
	free(notice.name);
	plans_make(s->plans, found, false);
}

/* Bells are always jumps: they must work after the end of the tracer, and a trap would not. */
void doorbell_find(struct inject_session *s, pid_t pid, const struct space *space,
		   struct found *found)
{
	struct resolve_access access = { 0 };
	struct resolve_result res = { 0 };
	size_t had = found->count;
	struct memory mem;
	struct maps maps;

	if (memory_open(&mem, pid, NULL) < 0)
		return;
	if (maps_read(pid, &maps, NULL) == 0) {
		if (target_find_doorbell(pid, &maps, &access, &res))
			doorbell_add(s, space, found, &res.site[0]);
		resolve_free(&res);
		plans_make(s->plans, found, false);
		if (found->count > had && occupied(&mem, &found->site[had]))
			take_callers(s, space, found);
		maps_free(&maps);
	}
	memory_close(&mem);
}
