/* SPDX-License-Identifier: MIT */
/*
 * A control page is made in the target by remote calls: in three of them, since each holds a thread
 * for as long as it takes. The program runs in between, and may do anything.
 *
 *	1. the files are made, two pages of each are mapped, and the files are closed
 *	2. the mappings grow, and the front moves over the beginning of the rear
 *	3. the record is mapped behind them
 *
 * No descriptor is open while the thread runs: a program that closes one and opens another counts
 * on the lowest free number. The rear is mapped with one page more, over which the record is
 *mapped: the address of one gives the address of the other, at whatever instant the tracer is
 *killed.
 */
#include "space-priv.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "fault.h"
#include "tree-task.h"
#include "src/base/maps.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { RECORD_SIZE = 4096 };

struct setup {
	struct space *space;
	struct tree *tree;
	const struct space_want *want;
	struct space_draft draft;
	long fd[2];	      /* the target's: the settings', the counts' */
	uint64_t front, rear; /* the first two pages; 0: none, or an answer was lost */
	bool foreign;	      /* they are of other files */
	bool left;	      /* something may be left in the target */
	bool closed;	      /* the program closed a descriptor, and so it failed */
};

/* sbinject maps the page, too. */
static bool has_little_space(pid_t pid)
{
	return task_limit(pid, "Max address space") != UINT64_MAX ||
	       task_limit(getpid(), "Max address space") != UINT64_MAX;
}

/* At its limit of locked memory the target has space for two pages, and the rear's are the first.
 */
static int map_front(struct setup *s, struct remote *r, struct sb_err *err)
{
	const int flags = MAP_SHARED | MAP_NORESERVE;
	struct sb_err why = { 0 };
	int ret = remote_map_first(r, PROT_READ, flags, s->fd[0], &s->front, &why);

	if (ret >= 0)
		return ret;
	if (remote_locks(r) && remote_unlock_first(r, s->rear, &why) >= 0)
		return remote_map_first(r, PROT_READ, flags, s->fd[0], &s->front, err);
	return err_set(err, why.code, "%s", why.what);
}

/*
 * The first pages of both files. A number may have become another file's, which another thread has
 * opened: its pages are mapped and never accessed.
 */
static int map_first(struct setup *s, struct remote *r, struct sb_err *err)
{
	pid_t pid = r->thread->proc->pid;

	s->left = true;
	if (space_make_files(s->space, r, s->want, &s->draft, s->fd, err) < 0 ||
	    fault_point("setup-map", pid) ||
	    remote_map_first(r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd[1],
			     &s->rear, err) < 0 ||
	    map_front(s, r, err) < 0 || !space_close_files(r, s->fd, &s->closed))
		return -SB_ETARGET;
	s->fd[0] = s->fd[1] = -1;
	return 0;
}

/* Not by the process whose thread made the files: a vfork(2)'s child is over soon. */
static int check_first(struct setup *s, struct sb_err *err)
{
	pid_t pid = s->space->mem.pid;
	int ret = space_check_map(s->space, pid, s->front, s->rear, err);

	s->foreign = ret < 0;
	return ret < 0 || !fault_point("setup-grow", pid) ? ret : -SB_ETARGET;
}

static int grow(struct setup *s, struct remote *r, struct sb_err *err)
{
	struct space *space = s->space;
	uint64_t size = space->page_size + RECORD_SIZE;
	long ret;

	if (remote_grow(r, &s->rear, size, err) < 0 ||
	    fault_point("setup-front", r->thread->proc->pid) ||
	    remote_grow_over(r, &s->front, s->rear, space->counters_off, err) < 0)
		return -SB_ETARGET;
	/* A core dump would read all of it, and so turn mere address space into memory. */
	if (remote_syscall(r, &ret, err, SYS_madvise, s->rear, size, (uint64_t)MADV_DONTDUMP, 0ul,
			   0ul, 0ul) < 0 ||
	    space_must(r, "madvise(MADV_DONTDUMP)", ret, err) < 0)
		return -SB_ETARGET;
	space->page_addr = space->control->page.target_addr = s->rear;
	return 0;
}

/*
 * In some programs reading the TSC ends the process (PR_SET_TSC); the kernel does not report that
 * from outside.
 */
static int check_clock(struct remote *r, struct sb_err *err)
{
	int mode = PR_TSC_ENABLE;
	uint64_t at = remote_scratch(r, &mode, sizeof(mode));
	long ret = -1;

	if (!at || remote_syscall(r, &ret, err, SYS_prctl, (uint64_t)PR_GET_TSC, at, 0ul, 0ul, 0ul,
				  0ul) < 0)
		return -SB_ETARGET;
	if (ret != 0 || memory_peek(r->mem, at, &mode, sizeof(mode)) != sizeof(mode) ||
	    mode == PR_TSC_ENABLE)
		return 0;
	err_set(err, SB_ECONFINED,
		"process %d: reading the TSC would end it (prctl PR_SET_TSC, or seccomp's strict "
		"mode)",
		r->thread->proc->pid);
	err_hint(err, "it must allow that itself: prctl(PR_SET_TSC, PR_TSC_ENABLE)");
	return -SB_ECONFINED;
}

static int map_record(struct setup *s, struct remote *r, struct sb_err *err)
{
	uint64_t at = s->space->page_addr + s->space->page_size;
	long ret;

	if (check_clock(r, err) < 0)
		return -SB_ECONFINED;
	if (fault_point("setup-record", r->thread->proc->pid))
		return -SB_ETARGET;
	if (remote_syscall(r, &ret, err, SYS_mmap, at, (uint64_t)RECORD_SIZE,
			   (uint64_t)(PROT_READ | PROT_WRITE),
			   (uint64_t)(MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED), (uint64_t)-1,
			   0ul) < 0 ||
	    space_must(r, "mmap", ret, err) < 0)
		return -SB_ETARGET;
	if (remote_syscall(r, &ret, err, SYS_madvise, at, (uint64_t)RECORD_SIZE,
			   (uint64_t)MADV_WIPEONFORK, 0ul, 0ul, 0ul) < 0 ||
	    space_must(r, "madvise(MADV_WIPEONFORK)", ret, err) < 0)
		return -SB_ETARGET;
	s->space->record_addr = at;
	return 0;
}

static bool unmap(struct remote *r, uint64_t at, uint64_t len)
{
	long ret;

	return remote_syscall(r, &ret, NULL, SYS_munmap, at, len, 0ul, 0ul, 0ul, 0ul) == 0;
}

/*
 * By what the kernel shows: a call whose answer was lost may have had its effect. Other files'
 * pages are known by their addresses alone, which may be the program's own by a second time.
 */
static bool unmap_theirs(struct setup *s, struct remote *r)
{
	struct space *space = s->space;
	bool ok = true;

	if (s->foreign)
		ok = unmap(r, s->front, REMOTE_MAP_FIRST) && unmap(r, s->rear, REMOTE_MAP_FIRST);
	s->foreign = false;
	if (!space->control)
		return ok;
	if (!space_keep_pieces(space, space->control, r->thread->proc->pid, space->page_size))
		return false;
	if (space->unfinished_size)
		ok &= unmap(r, space->unfinished_addr, space->unfinished_size);
	if (space->half_addr)
		ok &= unmap(r, space->half_addr, REMOTE_MAP_FIRST);
	space->unfinished_size = space->half_addr = 0;
	return ok;
}

/* A thread that was lost makes no more calls: something is left then. */
static int undo(struct setup *s, struct remote *r, struct sb_err *err)
{
	bool ok = unmap_theirs(s, r);

	(void)err;
	s->left = !space_close_files(r, s->fd, &s->closed) || !ok;
	return 0;
}

typedef int part_fn(struct setup *s, struct remote *r, struct sb_err *err);

/* One thread is held from remote_begin() to remote_end(). */
static int by_remote_call(struct setup *s, part_fn *part, struct sb_err *err)
{
	struct space *space = s->space;
	struct remote r;
	int ret = remote_begin(&r, s->tree, space, &space->mem, &space->gadgets, err);

	if (ret < 0)
		return ret;
	ret = part(s, &r, err);
	if (ret < 0)
		undo(s, &r, NULL);
	remote_end(&r);
	return ret;
}

static void give_up(struct setup *s)
{
	struct space *space = s->space;

	if (s->left)
		by_remote_call(s, undo, NULL);
	/* What no thread can remove now is for space_restore(). */
	if (s->left && space->control)
		space_keep_pieces(space, space->control, space->mem.pid, space->page_size);
	if (s->left)
		space_find_files(space);
	space_put_control(space->control);
	space->control = NULL;
	space->page_addr = space->record_addr = 0;
}

static int setup(struct space *space, struct tree *tree, pid_t pid, const struct space_want *want,
		 bool *closed, struct sb_err *err)
{
	struct setup s = { .space = space, .tree = tree, .want = want, .fd = { -1, -1 } };
	int ret;

	task_read_ids(pid, &s.draft.ids);
	page_layout(&s.draft.layout, &(struct page_want){ .targets = want->targets,
							  .more = want->more,
							  .spans = want->spans,
							  .functions = want->functions,
							  .chunks = want->chunks,
							  .stack_bytes = want->stack_bytes,
							  .little = has_little_space(pid) });
	ret = by_remote_call(&s, map_first, err);
	if (ret >= 0)
		ret = check_first(&s, err);
	if (ret >= 0)
		ret = by_remote_call(&s, grow, err);
	if (ret >= 0)
		ret = by_remote_call(&s, map_record, err);
	if (ret >= 0)
		return 0;
	give_up(&s);
	*closed = s.closed;
	err_set(err, SB_ETARGET, "the control page could not be set up");
	return ret;
}

static int find_gadgets(struct space *space, pid_t pid, struct sb_err *err)
{
	struct maps maps;
	int ret = maps_read(pid, &maps, err);

	if (ret < 0)
		return ret;
	ret = maps.count ? remote_find_gadgets(&space->mem, &maps, &space->gadgets, err) :
			   err_set(err, SB_ENOPROC, "process %d ended", pid);
	maps_free(&maps);
	return ret;
}

int space_setup(struct space *space, struct tree *tree, pid_t pid, const struct space_want *want,
		struct sb_err *err)
{
	int ret = find_gadgets(space, pid, err);
	struct sb_err why = { 0 };
	bool closed = false;

	if (ret < 0)
		return ret;
	ret = setup(space, tree, pid, want, &closed, &why);
	/* A thread may close unknown descriptors: not while it is held. */
	if (closed && tree_stop(tree, space, NULL) == 0) {
		why = (struct sb_err){ 0 };
		ret = setup(space, tree, pid, want, &closed, &why);
		tree_resume(tree, space);
	}
	if (ret < 0) {
		*err = why;
		return ret;
	}
	return space_register(space, pid, err);
}
