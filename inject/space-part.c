/* SPDX-License-Identifier: MIT */
/*
 * A fork that shares its parent's page gets one of its own: two new files, mapped over the old ones
 * while all its threads are stopped. Stubs, record, mailbox and index stay as they are, so a thread
 * in the middle of a hit continues it. The rear comes first: between the two steps the old front
 * works with the new rear, at the same places.
 */
#include "space-priv.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "fault.h"
#include "src/base/log.h"
#include "src/base/maps.h"

enum { FRONT_TRIES = 3 };

static int map_both(struct space *space, struct remote *r, const long fd[2], struct sb_err *err)
{
	const uint64_t rear = space->page_addr + space->counters_off;
	const uint64_t len = space->page_size - space->counters_off;
	const int flags = MAP_SHARED | MAP_NORESERVE;
	pid_t pid = r->thread->proc->pid;
	long ret;

	if (fault_point("part-rear", pid) ||
	    remote_map_over(r, rear, len, PROT_READ | PROT_WRITE, flags, fd[1], space->counters_off,
			    err) < 0 ||
	    space_check_map(space, pid, 0, rear, err) < 0)
		return -SB_ETARGET;
	/*
	 * The new rear under the old front counts correctly, but sbinject no longer controls its
	 * settings.
	 */
	for (int i = 0; i < FRONT_TRIES && space_check_map(space, pid, space->page_addr, 0, NULL);
	     i++)
		if (fault_point("part-front", pid) ||
		    remote_map_over(r, space->page_addr, space->counters_off, PROT_READ, flags,
				    fd[0], 0, err) < 0)
			log_debug("process %d: its settings could not be mapped", pid);
	if (space_check_map(space, pid, space->page_addr, 0, err) < 0)
		return -SB_ETARGET;
	/* As at the first mapping: excluded from core dumps. */
	if (remote_syscall(r, &ret, err, SYS_madvise, space->page_addr, space->page_size,
			   (uint64_t)MADV_DONTDUMP, 0ul, 0ul, 0ul) < 0)
		return -SB_ETARGET;
	return space_must(r, "madvise(MADV_DONTDUMP)", ret, err);
}

static int part_in_call(struct space *space, struct remote *r, const struct space_want *want,
			const struct space_draft *draft, const struct control *old,
			struct sb_err *err)
{
	long fd[2] = { -1, -1 };
	bool closed = false;
	int ret = -SB_ETARGET;

	if (space_make_files(space, r, want, draft, fd, err) == 0) {
		page_take_over(&space->control->page, &old->page, space->proc);
		space->control->page.target_addr = space->page_addr;
		space->control->notes_read = page_notice(&space->control->page)->notes_used;
		ret = fault_point("part-files", r->thread->proc->pid) ? -SB_ETARGET :
									map_both(space, r, fd, err);
	}
	fault_point("part-done", r->thread->proc->pid);
	space_close_files(r, fd, &closed);
	return ret < 0 ? err_set(err, SB_ETARGET, "it could not get counters of its own") : 0;
}

/* A call may have had its effect although its answer was lost. */
static bool counts_in_new(const struct space *space, pid_t pid)
{
	const struct map_entry *m;
	struct maps maps;
	bool is;

	if (!space->control || maps_read(pid, &maps, NULL) < 0)
		return false;
	m = maps_find(&maps, space->page_addr + space->counters_off);
	is = m && m->inode == space->control->rear_inode &&
	     !strcmp(m->path, "/memfd:sbinject-counts");
	maps_free(&maps);
	return is;
}

/* A fork that is reported later may have been born before. One generation is enough. */
static void remember(struct control *control, struct control *before)
{
	space_put_control(before->before);
	before->before = NULL;
	before->refs++;
	control->before = before;
}

static bool is_forking(const struct tree *tree, const struct space *space)
{
	for (const struct proc *p = tree->procs; p; p = p->next)
		for (const struct thread *t = p->threads; t; t = t->next)
			if (p->space == space && tree_forks(t))
				return true;
	return false;
}

int space_part(struct space *space, struct tree *tree, pid_t pid, const struct space_want *want,
	       struct control **old, struct sb_err *err)
{
	struct control *had = space->control;
	struct space_draft draft = { .layout = had->page.lay };
	struct remote r;
	int ret;

	*old = NULL;
	task_read_ids(pid, &draft.ids);
	ret = tree_stop_patiently(tree, space, err);
	if (ret < 0)
		return ret;
	if (is_forking(tree, space)) {
		tree_resume(tree, space);
		return err_set(err, SB_ETARGET, "it forks all the time");
	}
	ret = remote_begin(&r, tree, space, &space->mem, &space->gadgets, err);
	if (ret == 0) {
		space->control = NULL;
		ret = part_in_call(space, &r, want, &draft, had, err);
		remote_end(&r);
	}
	if (space->control != had && (ret == 0 || counts_in_new(space, pid))) {
		remember(space->control, had);
		*old = had;
	} else if (space->control != had) {
		space_put_control(space->control);
		space->control = had;
	}
	tree_resume(tree, space);
	return ret;
}
