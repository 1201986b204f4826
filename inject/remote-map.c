/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "fault.h"
#include "remote.h"
#include "tree-task.h"

static int map_refused(const struct remote *r, long result, struct sb_err *err)
{
	pid_t pid = r->thread->proc->pid;

	errno = (int)-result;
	err_sys(err, SB_ETARGET, "process %d: mmap failed in the target", pid);
	if (result == -EAGAIN)
		err_hint(err,
			 "it locks all memory that it maps (mlockall) and is at its limit: "
			 "prlimit --pid %d --memlock=... raises that",
			 pid);
	return -SB_ETARGET;
}

/* Checked once per remote_begin(), with the first pages mapped: only then MCL_FUTURE shows. */
bool remote_locks(struct remote *r)
{
	if (!r->locks)
		r->locks = task_locks_memory(r->thread->proc->pid) ? 'y' : 'n';
	return r->locks == 'y';
}

/* The first pages, at addr if that is not 0. */
static int map_first(struct remote *r, uint64_t addr, uint64_t len, int prot, int flags, long fd,
		     uint64_t offset, uint64_t *at, struct sb_err *err)
{
	long got = -1;
	int code = remote_syscall(r, &got, err, SYS_mmap, addr, len, (uint64_t)prot,
				  (uint64_t)flags, (uint64_t)fd, offset);

	*at = got > 0 ? (uint64_t)got : 0;
	if (code < 0)
		return code;
	if (got < 0 && got > -4096)
		return got == -EEXIST ? -SB_ENOMEM : map_refused(r, got, err);
	return addr && *at != addr ? -SB_ENOMEM : 0;
}

int remote_map_first(struct remote *r, int prot, int flags, long fd, uint64_t *at,
		     struct sb_err *err)
{
	return map_first(r, 0, REMOTE_MAP_FIRST, prot, flags, fd, 0, at, err);
}

static int unlock(struct remote *r, uint64_t at, uint64_t len, struct sb_err *err)
{
	long ret;

	return remote_syscall(r, &ret, err, SYS_munlock, at, len, 0ul, 0ul, 0ul, 0ul);
}

int remote_unlock_first(struct remote *r, uint64_t at, struct sb_err *err)
{
	return unlock(r, at, REMOTE_MAP_FIRST, err);
}

/* flags: as mremap(2). *at 0 afterwards: its length is unknown now. */
static int grow(struct remote *r, uint64_t *at, uint64_t first, uint64_t len, int flags,
		uint64_t to, struct sb_err *err)
{
	int code = remote_locks(r) ? unlock(r, *at, first, err) : 0;
	long ret = 0;

	if (code < 0 || len == first)
		return code;
	code = remote_syscall(r, &ret, err, SYS_mremap, *at, first, len, (uint64_t)flags, to, 0ul);
	if (code < 0) {
		*at = 0;
		return code;
	}
	if (ret < 0 && ret > -4096)
		return ret == -ENOMEM && !flags ? -SB_ENOMEM : map_refused(r, ret, err);
	*at = (uint64_t)ret;
	return 0;
}

int remote_grow(struct remote *r, uint64_t *at, uint64_t len, struct sb_err *err)
{
	return grow(r, at, REMOTE_MAP_FIRST, len, MREMAP_MAYMOVE, 0, err);
}

int remote_grow_over(struct remote *r, uint64_t *at, uint64_t to, uint64_t len, struct sb_err *err)
{
	return grow(r, at, REMOTE_MAP_FIRST, len, MREMAP_MAYMOVE | MREMAP_FIXED, to, err);
}

int remote_map(struct remote *r, uint64_t addr, uint64_t len, int prot, int flags, long fd,
	       uint64_t *at, struct sb_err *err)
{
	uint64_t first = len < REMOTE_MAP_FIRST ? len : REMOTE_MAP_FIRST, was;
	int code = map_first(r, addr, first, prot, flags, fd, 0, at, err);
	long ret;

	was = *at;
	if (code >= 0)
		code = grow(r, at, first, len, addr ? 0 : MREMAP_MAYMOVE, 0, err);
	if (code < 0 && was && *at)
		remote_syscall(r, &ret, NULL, SYS_munmap, was, first, 0ul, 0ul, 0ul, 0ul);
	return code;
}

/* At once, where it is known that a new mapping is not locked. */
static int map_fixed(struct remote *r, uint64_t addr, uint64_t len, int prot, int flags, long fd,
		     uint64_t offset, struct sb_err *err)
{
	long got = -1;
	int code = remote_syscall(r, &got, err, SYS_mmap, addr, len, (uint64_t)prot,
				  (uint64_t)(flags | MAP_FIXED), (uint64_t)fd, offset);

	if (code >= 0 && fault_point("setup-move", r->thread->proc->pid))
		return err_set(err, SB_ETARGET, "fault: setup-move");
	return code < 0 || (uint64_t)got == addr ? code : map_refused(r, got, err);
}

/*
 * Two pages elsewhere, which grow on their way to their place: locked memory is not read in whole.
 */
static int map_and_move(struct remote *r, uint64_t addr, uint64_t len, int prot, int flags, long fd,
			uint64_t offset, struct sb_err *err)
{
	uint64_t at, first;
	long ret;
	int code = map_first(r, 0, REMOTE_MAP_FIRST, prot, flags, fd, offset, &at, err);

	if (code < 0)
		return code;
	first = at;
	if (fault_point("setup-move", r->thread->proc->pid))
		return err_set(err, SB_ETARGET, "fault: setup-move");
	code = remote_grow_over(r, &at, addr, len, err);
	if (code < 0 && at)
		remote_syscall(r, &ret, NULL, SYS_munmap, first, (uint64_t)REMOTE_MAP_FIRST, 0ul,
			       0ul, 0ul, 0ul);
	return code;
}

int remote_map_over(struct remote *r, uint64_t addr, uint64_t len, int prot, int flags, long fd,
		    uint64_t offset, struct sb_err *err)
{
	if (r->locks == 'n')
		return map_fixed(r, addr, len, prot, flags, fd, offset, err);
	return map_and_move(r, addr, len, prot, flags, fd, offset, err);
}
