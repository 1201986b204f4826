/* SPDX-License-Identifier: MIT */
/*
 * sbinject's changes to a process, read from its memory alone: after a crash, or for forks that the
 * tracer has not seen. All of it lies where the target can write: the memory map is believed, and
 * of the rest only what agrees with the map.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "region.h"
#include "src/base/caps.h"
#include "src/base/maps.h"

enum {
	PAGE = 4096,
	SEARCH_LIMIT = 64 << 20,
	PROCS_MOST = 256,
	MAILBOX_MOST = 1 << 20,
	ROOM_MOST = 16 << 20,
};

static struct region *load_region(const struct memory *mem, uint64_t addr, uint64_t mailbox)
{
	struct journal_header h;
	struct region *region = NULL;
	void *head;

	if (memory_peek(mem, addr, &h, sizeof(h)) != sizeof(h) || h.magic != JOURNAL_MAGIC ||
	    h.common_off > mailbox || h.region_size > mailbox)
		return NULL;
	head = malloc(h.common_off);
	if (head && memory_peek(mem, addr, head, h.common_off) == h.common_off)
		region = region_check(addr, head, h.common_off);
	free(head);
	return region;
}

/*
 * Neighbouring regions are one mapping to the kernel: one journal may follow another, or a region
 * that was never finished. So each page is examined, where there is anything of sbinject's at all.
 */
static void load_regions(struct space *space, const struct map_entry *map, bool ours)
{
	uint64_t at = map->start, end = map->end;

	if (end - at > SEARCH_LIMIT)
		end = at + SEARCH_LIMIT;
	while (at < end) {
		struct region *region = load_region(&space->mem, at, map->end - at);

		if (region) {
			space_add_region(space, region, false);
			at += region->size;
		} else if (ours) {
			at += PAGE;
		} else {
			break;
		}
	}
}

static bool is_region_map(const struct map_entry *map)
{
	return map->r && map->x && !map->w && !map->shared && !map->path[0];
}

/* The rear of a page lies behind its front, at the same distance in its file. */
static bool is_rear(const struct map_entry *front, const struct map_entry *m)
{
	return m->start == front->end && m->offset == front->end - front->start &&
	       !strcmp(m->path, "/memfd:sbinject-counts");
}

/*
 * Is the private record behind the page? The kernel merges no mapping with it, because of
 * MADV_WIPEONFORK. Before that call it may have merged one, and the page's header must agree with
 * the map.
 */
static bool record_follows(const struct map_entry *page, const struct map_entry *next,
			   uint64_t start, const struct sb_page_header *h)
{
	return next->start == page->end && next->r && next->w && !next->x && !next->shared &&
	       !next->path[0] && (next->end - next->start == PAGE || h->size == page->end - start);
}

/* The edge of the mapping, or of a region that is recorded. */
static bool ends_here(const struct space *space, const struct map_entry *map, uint64_t at)
{
	return at == map->start || at == map->end || space_region_at(space, at - 1) ||
	       space_region_at(space, at);
}

/*
 * The addresses announced last: from the process's own record where it has one, since processes
 * with fewer rights can write the page. A fork that no tracer has seen has an empty record.
 */
static void take_announced(const struct space *space, struct sb_page_header *h)
{
	struct sb_page_record record;

	if (memory_peek(&space->mem, space->record_addr, &record, sizeof(record)) !=
		    sizeof(record) ||
	    !record.block_off)
		return;
	h->region_addr = record.region_addr;
	h->region_size = record.region_size;
	h->mailbox_addr = record.mailbox_addr;
	h->mailbox_size = record.mailbox_size;
}

/*
 * How much of [addr, addr + size) is mapped: all of it, or the first pages of remote_map(); 0: the
 * mappings do not look like a part of it.
 */
static uint64_t unfinished_size(const struct space *space, const struct map_entry *map,
				uint64_t addr, uint64_t size)
{
	const uint64_t sizes[] = { size, REMOTE_MAP_FIRST };

	for (int i = 0; i < 2; i++)
		if (sizes[i] && sizes[i] <= size && sizes[i] <= map->end - addr &&
		    ends_here(space, map, addr + sizes[i]))
			return sizes[i];
	return 0;
}

/*
 * A region without a journal: its announcement is believed where the map agrees and nothing was
 * written to it, since its header is written last.
 */
static void load_unfinished(struct space *space, const struct maps *maps,
			    const struct sb_page_header *h)
{
	uint64_t addr = h->region_addr, size = h->region_size, magic = 1;
	const struct map_entry *map = maps_find(maps, addr);

	if (!map || !is_region_map(map) || size % PAGE || !ends_here(space, map, addr) ||
	    space_region_at(space, addr) ||
	    memory_peek(&space->mem, addr, &magic, sizeof(magic)) != sizeof(magic) || magic)
		return;
	size = unfinished_size(space, map, addr, size);
	if (size) {
		space->unfinished_addr = addr;
		space->unfinished_size = size;
	}
}

void space_find_unfinished(struct space *space)
{
	struct sb_page_header h;
	struct maps maps;

	if (!space->control || maps_read(space->mem.pid, &maps, NULL) < 0)
		return;
	h = *space->control->page.hdr; /* the target can write to it meanwhile */
	take_announced(space, &h);
	load_unfinished(space, &maps, &h);
	space_find_half(space, &maps);
	maps_free(&maps);
}

/*
 * Is a control page mapped there? *h: its header, or zeros where that is inconsistent. The rear is
 * mapped first, from its file's beginning: where there is no front, the rear is the page. Before
 * version 4 one file was all of it.
 */
static bool is_page(const struct space *space, const struct map_entry *m, struct sb_page_header *h)
{
	memset(h, 0, sizeof(*h));
	if ((strcmp(m->path, "/memfd:sbinject") && strcmp(m->path, "/memfd:sbinject-counts")) ||
	    m->offset || m->end - m->start < 2 * PAGE)
		return false;
	if (memory_peek(&space->mem, m->start, h, sizeof(*h)) != sizeof(*h) ||
	    h->magic != SB_PAGE_MAGIC)
		memset(h, 0, sizeof(*h));
	if (h->version < 4)
		h->counters_off = 0;
	return true;
}

/*
 * Two pages of one half that are not where it belongs: of a front beside any rear (alone they would
 * be a page of their own), of a rear without a front before it.
 */
void space_find_half(struct space *space, const struct maps *maps)
{
	const struct map_entry *first = maps->entry, *last = first + maps->count;
	bool rears = false;

	space->half_addr = 0;
	for (const struct map_entry *m = first; m < last; m++)
		rears |= !strcmp(m->path, "/memfd:sbinject-counts");
	for (const struct map_entry *m = first; m < last; m++) {
		if (m->end - m->start != REMOTE_MAP_FIRST)
			continue;
		if (!strcmp(m->path, "/memfd:sbinject") ?
			    rears && !(m + 1 < last && is_rear(m, m + 1)) :
			    !strcmp(m->path, "/memfd:sbinject-counts") && m->offset &&
				    !(m > first && is_rear(m - 1, m)))
			space->half_addr = m->start;
	}
}

static void drop_regions(struct space *space, uint64_t session)
{
	size_t n = 0;

	for (size_t i = 0; i < space->n_regions; i++) {
		if (space->regions[i]->journal->session == session)
			region_put(space->regions[i]);
		else
			space->regions[n++] = space->regions[i]; /* none is stale here */
	}
	space->n_regions = n;
}

/* A session that is over, and has no hook left in the text, as is to be expected. */
static bool is_dormant(const struct space *space, uint64_t page, const struct sb_page_header *h)
{
	struct sb_page_notice notice;

	if (memory_peek(&space->mem, page + h->counters_off, &notice, sizeof(notice)) !=
		    sizeof(notice) ||
	    !h->magic || !notice.dormant)
		return false;
	for (size_t i = 0; i < space->n_regions; i++)
		if (space->regions[i]->journal->session == h->session &&
		    space_hooks_any(space, space->regions[i]))
			return false;
	return true;
}

/*
 * Beside a dormant session there may be another one. One is handled at a time: the dormant one last
 * or, with `dormant`, only a dormant one. The regions of others are dropped.
 */
static const struct map_entry *choose_page(struct space *space, const struct maps *maps,
					   bool dormant)
{
	const struct map_entry *chosen = NULL;
	struct sb_page_header h;

	for (size_t i = 0; i < maps->count; i++) {
		const struct map_entry *m = &maps->entry[i];
		bool is = is_page(space, m, &h), sleeps = is && is_dormant(space, m->start, &h);

		if (!is || m->start == space->half_addr || (dormant && !sleeps) ||
		    (chosen && sleeps))
			continue;
		chosen = m;
		space->dormant = sleeps;
	}
	for (size_t i = 0; i < maps->count; i++)
		if (&maps->entry[i] != chosen && is_page(space, &maps->entry[i], &h) &&
		    (dormant || is_dormant(space, maps->entry[i].start, &h)))
			drop_regions(space, h.session);
	return chosen;
}

/*
 * The control page, and the remains of a tracer that was killed before its first hook. The target
 * can have written anything into the page, so its address and size come from the memory map: it is
 * mapped with one page more, which is the record or will be. Two pages of the front are mapped
 * somewhere before they are grown and moved to their place (half_addr).
 */
static void load_page(struct space *space, const struct maps *maps, bool dormant)
{
	const struct map_entry *m = choose_page(space, maps, dormant);
	const struct map_entry *last_map = maps->entry + maps->count;
	const struct journal_header *last = NULL;
	struct sb_page_header h;

	if (space->n_regions)
		last = space->regions[space->n_regions - 1]->journal;
	space->hooked = last;
	space->session = last ? last->session : 0;
	space->tracer_pid = last ? (pid_t)last->tracer_pid : 0;
	if (!m || !is_page(space, m, &h))
		return;
	space->page_addr = m->start;
	space->counters_off = h.counters_off;
	if (m + 1 < last_map && is_rear(m, m + 1))
		m++;
	space->record_addr = m->end - PAGE;
	if (m + 1 < last_map && record_follows(m, m + 1, space->page_addr, &h))
		space->record_addr = m->end;
	space->page_size = space->record_addr - space->page_addr;
	if (!h.magic)
		return;
	if (last && last->session != h.session)
		space->dormant = false; /* hooks without a page */
	if (!last) {
		space->session = h.session;
		space->tracer_pid = (pid_t)h.tracer_pid;
	}
	take_announced(space, &h);
	load_unfinished(space, maps, &h);
}

/*
 * Is there a mailbox at addr, of what size, with its code? 0: none. Its address is believed where
 * the memory map has a page of anonymous code there, and ordinary memory directly behind it.
 */
static uint64_t mailbox_size_at(const struct space *space, const struct maps *maps, uint64_t addr)
{
	const struct map_entry *code, *data;
	struct sb_mailbox mailbox;

	if (addr % PAGE || addr < 2 * PAGE ||
	    memory_peek(&space->mem, addr, &mailbox, sizeof(mailbox)) != sizeof(mailbox) ||
	    mailbox.magic != SB_MAILBOX_MAGIC || mailbox.page_addr != space->page_addr)
		return 0;
	code = maps_find(maps, addr - PAGE);
	data = maps_find(maps, addr);
	if (!code || !is_region_map(code) || code->end != addr || !data || !data->w || data->x ||
	    data->shared || data->path[0] || mailbox.size % PAGE || !mailbox.size ||
	    mailbox.size > data->end - addr)
		return 0;
	return mailbox.size + PAGE;
}

static bool take_mailbox(struct space *space, const struct maps *maps, uint64_t addr)
{
	uint64_t size = mailbox_size_at(space, maps, addr);

	if (!size)
		return false;
	space->mailbox_addr = addr - PAGE;
	space->mailbox_size = size;
	return true;
}

/*
 * A mailbox that was never finished: believed where the memory map has one or two mappings of
 * exactly that length, and nothing was written into the mailbox, since its header is written last.
 */
static bool is_unfinished(const struct space *space, const struct maps *maps, uint64_t addr,
			  uint64_t size, uint64_t most)
{
	const struct map_entry *first = maps_find(maps, addr - PAGE), *last;
	uint64_t magic = 1;

	if (addr % PAGE || addr < 2 * PAGE || size % PAGE || size <= PAGE || size > most ||
	    !first || first->start != addr - PAGE)
		return false;
	last = maps_find(maps, addr - PAGE + size - 1);
	return last && last->end == addr - PAGE + size && last - first <= 1 && !first->shared &&
	       !first->path[0] && !last->shared && !last->path[0] && last->w && !last->x &&
	       (last == first || is_region_map(first)) &&
	       memory_peek(&space->mem, addr, &magic, sizeof(magic)) == sizeof(magic) && !magic;
}

/*
 * The mailbox made last is in the record and in the page's header; processes that got theirs after
 * they had been forked have different ones.
 */
static void load_mailbox(struct space *space, const struct maps *maps)
{
	struct sb_page_proc proc[PROCS_MOST];
	struct sb_page_header h;
	size_t n;

	if (!space->page_addr ||
	    memory_peek(&space->mem, space->page_addr, &h, sizeof(h)) != sizeof(h))
		return;
	take_announced(space, &h);
	if (take_mailbox(space, maps, h.mailbox_addr))
		return;
	n = h.procs_max < PROCS_MOST ? h.procs_max : PROCS_MOST;
	n = memory_peek(&space->mem, space->page_addr + PAGE, proc, n * sizeof(*proc)) /
	    sizeof(*proc);
	for (size_t i = 0; i < n; i++)
		if (take_mailbox(space, maps, proc[i].mailbox))
			return;
	if (is_unfinished(space, maps, h.mailbox_addr, h.mailbox_size, MAILBOX_MOST)) {
		space->mailbox_addr = h.mailbox_addr - PAGE;
		space->mailbox_size = h.mailbox_size;
	}
}

/*
 * The room of an agent that needs no interpreter. The agent may have unmapped it since, so a
 * finished one must have its header.
 */
static void load_room(struct space *space, const struct maps *maps)
{
	struct sb_page_record record;
	uint64_t addr, size;

	if (!space->record_addr ||
	    memory_peek(&space->mem, space->record_addr, &record, sizeof(record)) != sizeof(record))
		return;
	addr = record.room_addr + PAGE;
	size = record.room_size & ~SB_ROOM_UNFINISHED;
	space->room_begun = mailbox_size_at(space, maps, addr) == size;
	if (size && (space->room_begun || (record.room_size & SB_ROOM_UNFINISHED &&
					   is_unfinished(space, maps, addr, size, ROOM_MOST)))) {
		space->room_addr = record.room_addr;
		space->room_size = size;
	}
}

void space_find_files(struct space *space)
{
	char path[64], link[64];
	struct dirent *e;
	DIR *dir;

	space->n_fds = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", maps_face(space->mem.pid));
	dir = CAPS(opendir(path));
	while (dir && (e = readdir(dir))) {
		ssize_t n = CAPS(readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1));

		link[n > 0 ? n : 0] = '\0';
		if ((!strncmp(link, "/memfd:sbinject ", 16) ||
		     !strncmp(link, "/memfd:sbinject-counts ", 23) ||
		     !strncmp(link, "/memfd:sbinject-agent ", 22) ||
		     !strncmp(link, "/memfd:sbinject-device ", 23)) &&
		    space->n_fds < sizeof(space->fds) / sizeof(*space->fds))
			space->fds[space->n_fds++] = (int)strtol(e->d_name, NULL, 10);
	}
	if (dir)
		closedir(dir);
}

static int load(pid_t pid, bool dormant, struct space **out, struct sb_err *err)
{
	struct space *space = space_new(pid, err);
	struct maps maps;
	bool ours = false;

	if (!space)
		return -SB_ENOPROC;
	if (maps_read(pid, &maps, err) < 0) {
		space_put(space);
		return -SB_ENOPROC;
	}
	for (size_t i = 0; i < maps.count && !ours; i++)
		ours = !strncmp(maps.entry[i].path, "/memfd:sbinject", 15);
	for (size_t i = 0; i < maps.count; i++)
		if (is_region_map(&maps.entry[i]))
			load_regions(space, &maps.entry[i], ours);
	space_find_half(space, &maps);
	load_page(space, &maps, dormant);
	load_mailbox(space, &maps);
	load_room(space, &maps);
	space_find_files(space);
	remote_find_gadgets(&space->mem, &maps, &space->gadgets, NULL);
	maps_free(&maps);
	*out = space;
	return 0;
}

int space_load(pid_t pid, struct space **out, struct sb_err *err)
{
	return load(pid, false, out, err);
}

bool space_has_dormant(pid_t pid, bool *agent)
{
	struct sb_err err = { 0 };
	struct space *space;
	bool dormant;

	*agent = false;
	if (load(pid, true, &space, &err) < 0)
		return false;
	dormant = space->dormant;
	*agent = dormant && space->mailbox_size;
	space_put(space);
	return dormant;
}

bool space_holds(const struct space *space)
{
	return space->n_regions || space->page_addr || space->half_addr || space->mailbox_size ||
	       space->room_size || space->unfinished_size || space->n_fds;
}

bool space_is_hooked(pid_t pid, pid_t *tracer)
{
	struct sb_err err = { 0 };
	struct space *space;
	bool hooked;

	*tracer = 0;
	if (space_load(pid, &space, &err) < 0)
		return false;
	hooked = space_holds(space) && !space->dormant;
	*tracer = space->tracer_pid;
	space_put(space);
	return hooked;
}
