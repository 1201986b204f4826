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
static bool locks_memory(struct remote *r)
{
	if (!r->locks)
		r->locks = task_locks_memory(r->thread->proc->pid) ? 'y' : 'n';
	return r->locks == 'y';
}

/*
 * Grows the mapping of at most two pages at `at` to its full length. *at 0: its length is unknown
 * now.
 */
static int grow(struct remote *r, uint64_t *at, uint64_t first, uint64_t len, bool may_move,
		struct sb_err *err)
{
	long ret = 0;
	int code = 0;

	if (locks_memory(r))
		code = remote_syscall(r, &ret, err, SYS_munlock, *at, first, 0ul, 0ul, 0ul, 0ul);
	if (code < 0 || len == first)
		return code;
	code = remote_syscall(r, &ret, err, SYS_mremap, *at, first, len,
			      (uint64_t)(may_move ? MREMAP_MAYMOVE : 0), 0ul, 0ul);
	if (code < 0) {
		*at = 0;
		return code;
	}
	if (ret < 0 && ret > -4096)
		return ret == -ENOMEM && !may_move ? -SB_ENOMEM : map_refused(r, ret, err);
	*at = (uint64_t)ret;
	return 0;
}

int remote_map(struct remote *r, uint64_t addr, uint64_t len, int prot, int flags, long fd,
	       uint64_t *at, struct sb_err *err)
{
	uint64_t first = len < REMOTE_MAP_FIRST ? len : REMOTE_MAP_FIRST;
	long got = -1, ret;
	int code = remote_syscall(r, &got, err, SYS_mmap, addr, first, (uint64_t)prot,
				  (uint64_t)flags, (uint64_t)fd, 0ul);

	if (code >= 0 && got < 0 && got > -4096)
		return got == -EEXIST ? -SB_ENOMEM : map_refused(r, got, err);
	*at = (uint64_t)got;
	if (code >= 0 && addr && *at != addr)
		code = -SB_ENOMEM;
	if (code >= 0)
		code = grow(r, at, first, len, !addr, err);
	if (code < 0 && got > 0 && *at)
		remote_syscall(r, &ret, NULL, SYS_munmap, (uint64_t)got, first, 0ul, 0ul, 0ul, 0ul);
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

/* Two pages elsewhere, which grow on their way to their place: locked memory is not read in whole.
 */
static int map_and_move(struct remote *r, uint64_t addr, uint64_t len, int prot, int flags, long fd,
			uint64_t offset, struct sb_err *err)
{
	const uint64_t first = REMOTE_MAP_FIRST;
	long got = -1, ret = 0;
	int code = remote_syscall(r, &got, err, SYS_mmap, 0ul, first, (uint64_t)prot,
				  (uint64_t)flags, (uint64_t)fd, offset);

	if (code < 0)
		return code;
	if (got < 0 && got > -4096)
		return map_refused(r, got, err);
	if (fault_point("setup-move", r->thread->proc->pid))
		code = err_set(err, SB_ETARGET, "fault: setup-move");
	if (code >= 0 && locks_memory(r))
		code = remote_syscall(r, &ret, err, SYS_munlock, (uint64_t)got, first, 0ul, 0ul,
				      0ul, 0ul);
	if (code >= 0)
		code = remote_syscall(r, &ret, err, SYS_mremap, (uint64_t)got, first, len,
				      (uint64_t)(MREMAP_MAYMOVE | MREMAP_FIXED), addr, 0ul);
	if (code < 0 || (uint64_t)ret == addr)
		return code;
	remote_syscall(r, &got, NULL, SYS_munmap, (uint64_t)got, first, 0ul, 0ul, 0ul, 0ul);
	return map_refused(r, ret, err);
}

int remote_map_over(struct remote *r, uint64_t addr, uint64_t len, int prot, int flags, long fd,
		    uint64_t offset, struct sb_err *err)
{
	if (r->locks == 'n')
		return map_fixed(r, addr, len, prot, flags, fd, offset, err);
	return map_and_move(r, addr, len, prot, flags, fd, offset, err);
}
