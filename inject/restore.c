/* SPDX-License-Identifier: MIT */
/*
 * Taking everything out again, from what the journals say; the same code whether the journals
 * are our own or were read from a target that a dead tracer left behind.
 *
 * The text first, so that nobody enters a stub any more; then the threads that are in one are
 * moved back, or let run until they have left; then the mappings, when no pointer to them is
 * left on a stack.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "fault.h"
#include "frames.h"
#include "region.h"
#include "tree-task.h"
#include "../src/maps.h"
#include "../src/log.h"

enum {
	PAGE = 4096,
	SEARCH_LIMIT = 64 << 20,
	LEAVE_TRIES = 400,
	BORROW_TRIES = 40,
	RUN_OUT_TRIES = 50,
	STOP_TRIES = 10
};

int space_restore_text(struct space *space, struct space_restored *out, struct sb_err *err)
{
	int ret = 0;

	for (size_t i = space->n_regions; i-- > 0;)
		if (region_write_text(space->regions[i], &space->mem, true, out, err) < 0)
			ret = -SB_ETARGET;
	return ret;
}

/* From the copy of a displaced instruction to the instruction. False: inside the stub proper. */
static bool move_back(const struct region *region, struct thread *t, struct arch_regs *regs)
{
	uint64_t pc = arch->pc(regs);
	const struct journal_site *s = region_stub_at(region, pc);

	for (int i = 0; s && i < s->n_pcs; i++) {
		if (region->addr + s->stub + s->pcs[i].emitted != pc)
			continue;
		arch->set_pc(regs, s->addr + (uint64_t)(int64_t)s->pcs[i].original);
		return pt_set_regs(t->tid, regs) == 0;
	}
	return false;
}

static bool in_region(void *ctx, uint64_t pc)
{
	return space_region_at(ctx, pc) != NULL;
}

enum where { OUT, IN_STUB, IN_HANDLER, IN_EVENT };

/*
 * A word that looks like a signal frame may be what an earlier handler left behind: where the
 * stack can be unwound to its end without meeting a stub, it was.
 */
static bool frame_is_stale(const struct space *space, const struct tree *tree, pid_t tid)
{
	for (size_t i = 0; i < space->n_regions; i++) {
		const struct region *r = space->regions[i];

		if (!tree->returns_into ||
		    tree->returns_into(space->mem.pid, tid, r->addr, r->addr + r->size) != 0)
			return false;
	}
	return true;
}

/* An int3 that was hit and not dispatched: the text is restored, the instruction runs now. */
static void take_back_trap(const struct space *space, struct thread *t, struct arch_regs *regs)
{
	uint64_t addr = arch->pc(regs) - arch->trap_advance;

	if (t->stop.kind != STOP_SIGNAL || t->stop.sig != SIGTRAP || !space_trap_stub(space, addr))
		return;
	arch->set_pc(regs, addr);
	if (pt_set_regs(t->tid, regs) == 0)
		t->stop.kind = STOP_TRAP;
}

/* A thread deep in the kernel: by a system call it cannot be in a stub, by a page fault it can. */
static enum where kept_where(const struct space *space, const struct thread *t)
{
	bool in_call;
	uint64_t pc;

	if (task_is_dead(t->proc->pid, t->tid))
		return OUT;
	if (!task_waits(t->tid, &pc, &in_call))
		return IN_STUB; /* it is on its way to its stop */
	return !in_call && space_region_at(space, pc) ? IN_STUB : OUT;
}

static enum where where_is(struct space *space, struct tree *tree, struct thread *t, size_t scan)
{
	struct arch_regs regs;
	const struct region *region;

	if (t->state != THREAD_STOPPED)
		return t->kept ? kept_where(space, t) : IN_STUB;
	if (pt_get_regs(t->tid, &regs) < 0)
		return OUT; /* it is ending */
	if (tree_event_pending(t))
		return IN_EVENT;
	take_back_trap(space, t, &regs);
	region = space_region_at(space, arch->pc(&regs));
	if (region && !move_back(region, t, &regs))
		return IN_STUB;
	if (!frames_return_to(&space->mem, arch->sp(&regs), scan, in_region, space) ||
	    frame_is_stale(space, tree, t->tid))
		return OUT;
	return IN_HANDLER;
}

/*
 * A stub takes no lock and makes no call: alone on the machine, a thread is through with it in
 * microseconds. So it runs while the others are still held.
 */
static enum where run_out(struct space *space, struct tree *tree, pid_t tid, size_t scan)
{
	enum where where = IN_STUB;

	for (int i = 0; i < RUN_OUT_TRIES && where == IN_STUB; i++) {
		struct thread *t = tree_thread(tree, tid);

		if (!t || t->pinned)
			return t ? where : OUT;
		tree_resume_thread(tree, t);
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
		t = tree_thread(tree, tid);
		if (!t)
			return OUT;
		/* Where it is, is known only once it stands. */
		if (tree_stop_thread(tree, t, 100000))
			where = where_is(space, tree, t, scan);
		else if (!tree_thread(tree, tid))
			return OUT;
	}
	return where;
}

/* True if no thread has anything to do with our stubs any more. All are stopped. */
static bool threads_out(struct space *space, struct tree *tree)
{
	size_t scan = frames_scan_bytes(tree_count_threads(tree, space));
	struct thread *t;
	pid_t tid = 0;
	bool out = true;

	while ((t = tree_next_thread(tree, space, tid))) {
		enum where where = where_is(space, tree, t, scan);

		tid = t->tid;
		if (where == IN_STUB)
			where = run_out(space, tree, tid, scan);
		if (where != OUT)
			out = false;
	}
	return out;
}

static void unmap_all(struct space *space, struct remote *r)
{
	struct sb_err ignored = { 0 };
	long ret;

	for (size_t i = 0; i < space->n_regions; i++)
		remote_syscall(r, &ret, &ignored, SYS_munmap, space->regions[i]->addr,
			       space->regions[i]->size, 0ul, 0ul, 0ul, 0ul);
	if (space->unfinished_size)
		remote_syscall(r, &ret, &ignored, SYS_munmap, space->unfinished_addr,
			       space->unfinished_size, 0ul, 0ul, 0ul, 0ul);
	if (space->page_addr)
		remote_syscall(r, &ret, &ignored, SYS_munmap, space->page_addr,
			       space->page_size + 4096, 0ul, 0ul, 0ul, 0ul);
	for (size_t i = 0; i < space->n_fds; i++)
		remote_syscall(r, &ret, &ignored, SYS_close, (uint64_t)space->fds[i], 0ul, 0ul, 0ul,
			       0ul, 0ul);
}

/*
 * One thread is borrowed while the rest stands still, so that nothing can point into the
 * mappings between the look and the munmap.
 */
static int unmap(struct space *space, struct tree *tree, struct sb_err *err)
{
	struct remote r;
	int ret = remote_begin(&r, tree, space, &space->mem, &space->gadgets, err);

	if (ret < 0)
		return ret;
	fault_point("restore-unmap", space->mem.pid);
	unmap_all(space, &r);
	remote_end(&r);
	return 0;
}

static void forget_regions(struct space *space)
{
	for (size_t i = 0; i < space->n_regions; i++)
		region_put(space->regions[i]);
	space->n_regions = 0;
	space->page_addr = space->record_addr = 0;
	space->unfinished_size = space->n_fds = 0;
	space->hooked = false;
}

static bool still_there(const struct tree *tree, const struct space *space)
{
	for (const struct proc *p = tree->procs; p; p = p->next)
		if (p->space == space)
			return true;
	return false;
}

static int not_restored(const struct space *space, const struct sb_err *why, struct sb_err *err)
{
	err_set(err, why->code, "process %d is still hooked: %s", space->mem.pid, why->what);
	err_hint(err, "sbinject recover -p %d restores it", space->mem.pid);
	return -(int)why->code;
}

static int given_up(int ret, const struct sb_err *why, struct sb_err *err)
{
	if (ret < 0 && err)
		*err = *why;
	return ret;
}

int space_restore(struct space *space, struct tree *tree, struct space_restored *out,
		  struct sb_err *err)
{
	bool text_done = false;
	int ret;

	memset(out, 0, sizeof(*out));
	for (int i = 0; i < LEAVE_TRIES; i++) {
		struct sb_err why = { 0 };

		if (!still_there(tree, space))
			return err_set(err, SB_ENOPROC, "process %d ended", space->mem.pid);
		ret = tree_stop(tree, space, &why);
		if (ret < 0 && i < STOP_TRIES) /* a loaded machine: never left hooked for that */
			continue;
		if (ret < 0)
			return not_restored(space, &why, err);
		/* While text cannot be restored the stubs it jumps into must stay. */
		if (!text_done && space_restore_text(space, out, err) < 0) {
			tree_resume(tree, space);
			return -SB_ETARGET;
		}
		text_done = true;
		if (threads_out(space, tree)) {
			ret = space_holds(space) ? unmap(space, tree, &why) : 0;
			tree_resume(tree, space);
			if (ret >= 0)
				forget_regions(space);
			/* No thread could be borrowed where they stood: elsewhere one may. */
			if (ret >= 0 || why.code != SB_ETARGET || i >= BORROW_TRIES)
				return given_up(ret, &why, err);
		} else {
			tree_resume(tree, space);
		}
		nanosleep(&(struct timespec){ .tv_nsec = i < 10 ? 100000 : 5000000 }, NULL);
		tree_dispatch(tree);
	}
	out->left_mapped = true;
	return 0;
}

static struct region *load_region(const struct memory *mem, uint64_t addr, uint64_t room)
{
	struct journal_header h;
	struct region *region = NULL;
	void *head;

	if (memory_peek(mem, addr, &h, sizeof(h)) != sizeof(h) || h.magic != JOURNAL_MAGIC ||
	    h.common_off > room || h.region_size > room)
		return NULL;
	head = malloc(h.common_off);
	if (head && memory_peek(mem, addr, head, h.common_off) == h.common_off)
		region = region_check(addr, head, h.common_off);
	free(head);
	return region;
}

/* Of the page, only where the memory map says that it is: see load_page(). */
static void take_region(struct space *space, struct region *region)
{
	space_add_region(space, region, false);
	space->session = region->journal->session;
	space->tracer_pid = (pid_t)region->journal->tracer_pid;
	space->hooked = true;
}

/*
 * Neighbouring regions are one mapping to the kernel: one journal may follow another, or a region
 * that was never finished. So each page is looked at, where there is anything of ours at all.
 */
static void load_regions(struct space *space, const struct map_entry *map, bool ours)
{
	uint64_t at = map->start, end = map->end;

	if (end - at > SEARCH_LIMIT)
		end = at + SEARCH_LIMIT;
	while (at < end) {
		struct region *region = load_region(&space->mem, at, map->end - at);

		if (region) {
			take_region(space, region);
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

/*
 * Is the private record behind the page? Nothing merges with it, because of MADV_WIPEONFORK; before
 * that call something may have, and the page's own word has to agree with the map.
 */
static bool record_follows(const struct map_entry *page, const struct map_entry *next,
			   const struct sb_page_header *h)
{
	return next->start == page->end && next->r && next->w && !next->x && !next->shared &&
	       !next->path[0] &&
	       (next->end - next->start == PAGE || h->size == page->end - page->start);
}

/* The edge of the mapping, or of a region that is known. */
static bool ends_here(const struct space *space, const struct map_entry *map, uint64_t at)
{
	return at == map->start || at == map->end || space_region_at(space, at - 1) ||
	       space_region_at(space, at);
}

/* A region without a journal: what the page says of it is believed where the map agrees and nothing
 * was written to it, since its header comes last. */
static void load_unfinished(struct space *space, const struct maps *maps,
			    const struct sb_page_header *h)
{
	const struct map_entry *map = maps_find(maps, h->region_addr);
	uint64_t magic = 1;

	if (!map || !is_region_map(map) || !h->region_size || h->region_size % PAGE ||
	    h->region_size > map->end - h->region_addr || !ends_here(space, map, h->region_addr) ||
	    !ends_here(space, map, h->region_addr + h->region_size) ||
	    space_region_at(space, h->region_addr) ||
	    memory_peek(&space->mem, h->region_addr, &magic, sizeof(magic)) != sizeof(magic) ||
	    magic)
		return;
	space->unfinished_addr = h->region_addr;
	space->unfinished_size = h->region_size;
}

/*
 * The control page, and what a tracer that was killed before its first hook left besides. The
 * target can have written anything into the page, so where it is and how large comes from the
 * memory map: it is mapped with one page more, which is the record or will be.
 */
static void load_page(struct space *space, const struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct map_entry *m = &maps->entry[i];
		struct sb_page_header h = { 0 };

		if (strcmp(m->path, "/memfd:sbinject") || m->offset || m->end - m->start < 2 * PAGE)
			continue;
		if (memory_peek(&space->mem, m->start, &h, sizeof(h)) != sizeof(h) ||
		    h.magic != SB_PAGE_MAGIC)
			memset(&h, 0, sizeof(h));
		space->page_addr = m->start;
		space->record_addr = m->end - PAGE;
		if (i + 1 < maps->count && record_follows(m, m + 1, &h))
			space->record_addr = m->end;
		space->page_size = space->record_addr - m->start;
		if (!h.magic)
			continue;
		if (!space->n_regions) {
			space->session = h.session;
			space->tracer_pid = (pid_t)h.tracer_pid;
		}
		load_unfinished(space, maps, &h);
	}
}

static void load_fds(struct space *space, pid_t pid)
{
	char path[64], link[64];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", maps_face(pid));
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);

		link[n > 0 ? n : 0] = '\0';
		if (!strncmp(link, "/memfd:sbinject ", 16) &&
		    space->n_fds < sizeof(space->fds) / sizeof(*space->fds))
			space->fds[space->n_fds++] = (int)strtol(e->d_name, NULL, 10);
	}
	if (dir)
		closedir(dir);
}

int space_load(pid_t pid, struct space **out, struct sb_err *err)
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
		ours = !strcmp(maps.entry[i].path, "/memfd:sbinject");
	for (size_t i = 0; i < maps.count; i++)
		if (is_region_map(&maps.entry[i]))
			load_regions(space, &maps.entry[i], ours);
	load_page(space, &maps);
	load_fds(space, pid);
	remote_find_gadgets(&space->mem, &maps, &space->gadgets, NULL);
	maps_free(&maps);
	*out = space;
	return 0;
}

bool space_holds(const struct space *space)
{
	return space->n_regions || space->page_addr || space->unfinished_size || space->n_fds;
}

bool space_is_hooked(pid_t pid, pid_t *tracer)
{
	struct sb_err err = { 0 };
	struct space *space;
	bool hooked;

	*tracer = 0;
	if (space_load(pid, &space, &err) < 0)
		return false;
	hooked = space_holds(space);
	*tracer = space->tracer_pid;
	space_put(space);
	return hooked;
}
