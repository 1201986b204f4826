/* SPDX-License-Identifier: MIT */
/*
 * The part of its parent's state that a fork has.
 *
 * The kernel copies the memory at one moment and reports the fork at a later one. Anything made in
 * the parent in between is recorded here by then and is not in the child: a page, a region of
 * stubs, a mailbox, of which the child may have nothing or a part, and hooks in its text. So the
 * child's own memory decides. Of each thing it shows all or nothing, since its header is written
 * last; of an incomplete one only the mapping is recorded, for removal at the end.
 */
#include <string.h>
#include "clock.h"
#include "region.h"
#include "space-priv.h"
#include "src/base/log.h"
#include "src/base/maps.h"

enum { PAGE = 4096 };

/*
 * A closer look costs every fork, so it is limited to this time after a change; a fork is reported
 * long before this time is over.
 */
#define RECENT_NS 2000000000ull

static bool recent(uint64_t made_ns)
{
	return clock_ns() - made_ns < RECENT_NS;
}

static bool mapped(const struct space *space, uint64_t addr)
{
	char byte;

	return memory_peek(&space->mem, addr, &byte, 1) == 1;
}

/* A part of something that was being made: one at a time, in one or two steps. */
static void leave_unfinished(struct space *space, uint64_t addr, uint64_t size)
{
	space->lacks = true;
	log_debug("process %d, a child, was born before what is at 0x%llx", space->mem.pid,
		  (unsigned long long)addr);
	if (!mapped(space, addr))
		return;
	space->unfinished_addr = addr;
	space->unfinished_size = mapped(space, addr + size - 1) ? size : REMOTE_MAP_FIRST;
}

static bool region_is_there(const struct space *space, const struct region *region)
{
	struct journal_header h;

	return memory_peek(&space->mem, region->addr, &h, sizeof(h)) == sizeof(h) &&
	       h.magic == JOURNAL_MAGIC && h.session == region->journal->session &&
	       h.region_size == region->size;
}

/*
 * The file, and the record behind it. A record that forks still inherit (before MADV_WIPEONFORK)
 * counts too: it is rewritten for each fork that is seen.
 */
static bool page_is_mapped(const struct space *space, const struct space *parent)
{
	const struct map_entry *page, *record;
	struct maps maps;
	bool mapped;

	if (maps_read(space->mem.pid, &maps, NULL) < 0)
		return false;
	page = maps_find(&maps, parent->page_addr);
	record = maps_find(&maps, parent->record_addr);
	mapped = page && !strcmp(page->path, "/memfd:sbinject") && record && !record->shared &&
		 !record->path[0];
	maps_free(&maps);
	return mapped;
}

/* It is made before all else, and the record is the last part of it. */
static bool page_is_there(const struct space *space, const struct space *parent)
{
	if (!parent->record_addr)
		return false;
	if (!recent(parent->control->made_ns))
		return true;
	for (size_t i = 0; i < parent->n_regions; i++)
		if (region_is_there(space, parent->regions[i]))
			return true;
	return page_is_mapped(space, parent);
}

/* A hook that has been removed since is not missed. */
static bool hooks_are_there(const struct space *space, const struct space *parent,
			    const struct region *region)
{
	if (!region->planted_ns)
		return false; /* the parent is about to get them */
	if (!recent(region->planted_ns))
		return true;
	for (uint32_t i = 0; i < region->journal->n_patches; i++) {
		const struct journal_patch *patch = &region->patches[i];

		if (space_patch_in_place(parent, patch) && !space_patch_in_place(space, patch))
			return false;
	}
	return true;
}

static void take_regions(struct space *space, const struct space *parent)
{
	for (size_t i = 0; i < parent->n_regions; i++) {
		struct region *region = parent->regions[i];

		if (!region_is_there(space, region)) {
			leave_unfinished(space, region->addr, region->size);
			continue;
		}
		space_add_region(space, region_get(region), parent->stale[i]);
		if (!parent->stale[i] && !hooks_are_there(space, parent, region))
			space->lacks = true;
	}
}

static void take_mailbox(struct space *space, const struct space *parent)
{
	struct sb_mailbox mailbox;

	if (!parent->mailbox_size)
		return;
	if (memory_peek(&space->mem, parent->mailbox_addr + PAGE, &mailbox, sizeof(mailbox)) ==
		    sizeof(mailbox) &&
	    mailbox.magic == SB_MAILBOX_MAGIC) {
		space->mailbox_addr = parent->mailbox_addr;
		space->mailbox_size = parent->mailbox_size;
	} else {
		leave_unfinished(space, parent->mailbox_addr, parent->mailbox_size);
	}
}

/* Forks have no copy of a finished one. */
static void take_room(struct space *space, const struct space *parent)
{
	if (parent->room_size && mapped(space, parent->room_addr))
		leave_unfinished(space, parent->room_addr, parent->room_size);
}

/* The parent may have left the page that the child was born with: space_part(). */
static struct control *control_of(const struct space *space, const struct space *parent)
{
	struct control *control = parent->control, *before = control->before;
	const struct map_entry *m;
	struct maps maps;

	if (!before || !recent(control->made_ns) || maps_read(space->mem.pid, &maps, NULL) < 0)
		return control;
	m = maps_find(&maps, space->page_addr + space->counters_off);
	if (m && m->inode == before->rear_inode)
		control = before;
	maps_free(&maps);
	return control;
}

struct space *space_fork(struct space *parent, pid_t child, struct sb_err *err)
{
	struct space *space = space_new(child, err);

	if (!space)
		return NULL;
	space->session = parent->session;
	space->gadgets = parent->gadgets;
	if (!parent->control)
		return space;
	if (!page_is_there(space, parent)) {
		space->lacks = true;
		space_keep_pieces(space, parent->control, child, parent->page_size);
		space_find_files(space);
		return space;
	}
	space->page_addr = parent->page_addr;
	space->page_size = parent->page_size;
	space->counters_off = parent->counters_off;
	space->record_addr = parent->record_addr;
	space->hooked = parent->hooked;
	take_regions(space, parent);
	take_mailbox(space, parent);
	take_room(space, parent);
	space->control = control_of(space, parent);
	space->control->refs++;
	if (space_register(space, child, err) < 0) {
		space_put(space);
		return NULL;
	}
	return space;
}
