/* SPDX-License-Identifier: MIT */
#ifndef SB_SITES_H
#define SB_SITES_H

#include "elf/resolve.h"
#include "inject/arch/arch.h"
#include "inject/space.h"

/*
 * From resolved names to plans. The plans of an image are made once, in addresses of the file, with
 * one landing scan for all sites of one request. They are moved to the addresses where the image is
 * loaded: a hundred processes with one libc cost one scan.
 */
struct image_plans; /* a cache, by image */

struct found_site {
	struct image *img; /* counted reference */
	uint64_t bias, addr, func, size;
	char *name;
	bool exit; /* one of the function's exits; addr is its last instruction, and func and size
		      are of its part */
	bool switches, leaves, runs_on; /* of an exit: see struct plan_request */
	struct space_site hook;		/* what space_plant() gets, in run-time addresses. `why` and
					   `untimed` are known from the files before it, too; `function` may
					   be set where it does not apply, and session_hook_found() sets
					   each and cookie */
	char detail[64];		/* of why or untimed */
};

/* The sites of all targets in one process. */
struct found {
	struct found_site *site;
	size_t count;
};

/* The facts about a site that a plan is made from; false: its address is not in the text. */
bool sites_request(const struct found_site *s, bool int3, struct plan_request *req);

struct image_plans *plans_new(void);
void plans_free(struct image_plans *plans);

/* Fills plan, why and detail of every site that has none yet. int3: plan all by int3, else by
 * jump. */
void plans_make(struct image_plans *plans, struct found *found, bool int3);

/*
 * The places of an image that call the function at vaddr, or end in a jump to it. Together they see
 * the same calls as a hook in the function itself, and the memory below the stack pointer is
 * equally dead there. Fills at most cap; 0: there is none, or they cannot all be known.
 */
size_t sites_callers(struct image *img, uint64_t vaddr, uint64_t *from, size_t cap);

void found_add(struct found *found, const struct found_site *site); /* takes over the references */

/*
 * Adds a site for each exit of a function, instead of the function itself; one site with a reason
 * where they cannot all be known. Takes over the references. plans_make() afterwards.
 */
void found_add_exits(struct found *found, const struct found_site *function);

/*
 * Adds a function whose calls are timed, or that is delayed at its exits as well: its entry, and a
 * site for each exit. Where its exits cannot all be known: the entry alone, with the reason in
 * untimed; or (whole) one refused site. As found_add_exits().
 */
void found_add_ends(struct found *found, const struct found_site *function, bool whole);

/*
 * A function of which one exit cannot be hooked is not hooked at any, since its count would be
 * wrong: one refused site is left of it, at its entry. Of a timed one the entry is left, unless
 * it is `whole`.
 */
void found_settle_exits(struct found *found);
void found_free(struct found *found);

#endif
