/* SPDX-License-Identifier: MIT */
#include "class.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

/* Calls that some architectures do not have. */
#define NONE (-1)
#ifndef SYS_poll
#define SYS_poll NONE
#endif
#ifndef SYS_select
#define SYS_select NONE
#endif
#ifndef SYS_epoll_wait
#define SYS_epoll_wait NONE
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 NONE
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv NONE
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait NONE
#endif
#ifndef SYS_pause
#define SYS_pause NONE
#endif
#ifndef SYS_open
#define SYS_open NONE
#endif
#ifndef SYS_stat
#define SYS_stat NONE
#endif
#ifndef SYS_lstat
#define SYS_lstat NONE
#endif
#ifndef SYS_unlink
#define SYS_unlink NONE
#endif
#ifndef SYS_rename
#define SYS_rename NONE
#endif
#ifndef SYS_mkdir
#define SYS_mkdir NONE
#endif
#ifndef SYS_rmdir
#define SYS_rmdir NONE
#endif
#ifndef SYS_creat
#define SYS_creat NONE
#endif
#ifndef SYS_getdents
#define SYS_getdents NONE
#endif
#ifndef SYS_renameat
#define SYS_renameat NONE
#endif
#ifndef SYS_newfstatat
#define SYS_newfstatat NONE
#endif

static const struct {
	int call;
	__u8 class;
} classes[] = {
	{ SYS_restart_syscall, EVIDENCE_RESTARTED },
	{ SYS_futex, EVIDENCE_STATE_FUTEX },
	{ SYS_futex_waitv, EVIDENCE_SEVERAL },
	{ SYS_futex_wait, EVIDENCE_STATE_FUTEX },
	{ SYS_nanosleep, EVIDENCE_STATE_SLEEP },
	{ SYS_clock_nanosleep, EVIDENCE_STATE_SLEEP },
	{ SYS_pause, EVIDENCE_STATE_SLEEP },
	{ SYS_rt_sigtimedwait, EVIDENCE_STATE_SLEEP },
	{ SYS_rt_sigsuspend, EVIDENCE_STATE_SLEEP },
	{ SYS_accept, EVIDENCE_STATE_NETWORK },
	{ SYS_accept4, EVIDENCE_STATE_NETWORK },
	{ SYS_connect, EVIDENCE_STATE_NETWORK },
	{ SYS_sendto, EVIDENCE_STATE_NETWORK },
	{ SYS_recvfrom, EVIDENCE_STATE_NETWORK },
	{ SYS_sendmsg, EVIDENCE_STATE_NETWORK },
	{ SYS_recvmsg, EVIDENCE_STATE_NETWORK },
	{ SYS_sendmmsg, EVIDENCE_STATE_NETWORK },
	{ SYS_recvmmsg, EVIDENCE_STATE_NETWORK },
	{ SYS_shutdown, EVIDENCE_STATE_NETWORK },
	{ SYS_poll, EVIDENCE_STATE_NETWORK },
	{ SYS_ppoll, EVIDENCE_STATE_NETWORK },
	{ SYS_select, EVIDENCE_STATE_NETWORK },
	{ SYS_pselect6, EVIDENCE_STATE_NETWORK },
	{ SYS_epoll_wait, EVIDENCE_STATE_NETWORK },
	{ SYS_epoll_pwait, EVIDENCE_STATE_NETWORK },
	{ SYS_epoll_pwait2, EVIDENCE_STATE_NETWORK },
	{ SYS_read, EVIDENCE_BY_FILE },
	{ SYS_write, EVIDENCE_BY_FILE },
	{ SYS_readv, EVIDENCE_BY_FILE },
	{ SYS_writev, EVIDENCE_BY_FILE },
	{ SYS_close, EVIDENCE_BY_FILE },
	{ SYS_ioctl, EVIDENCE_BY_FILE },
	{ SYS_splice, EVIDENCE_BY_FILE },
	{ SYS_sendfile, EVIDENCE_BY_FILE },
	{ SYS_pread64, EVIDENCE_STATE_IO },
	{ SYS_pwrite64, EVIDENCE_STATE_IO },
	{ SYS_preadv, EVIDENCE_STATE_IO },
	{ SYS_pwritev, EVIDENCE_STATE_IO },
	{ SYS_preadv2, EVIDENCE_STATE_IO },
	{ SYS_pwritev2, EVIDENCE_STATE_IO },
	{ SYS_fsync, EVIDENCE_STATE_IO },
	{ SYS_fdatasync, EVIDENCE_STATE_IO },
	{ SYS_sync, EVIDENCE_STATE_IO },
	{ SYS_syncfs, EVIDENCE_STATE_IO },
	{ SYS_sync_file_range, EVIDENCE_STATE_IO },
	{ SYS_msync, EVIDENCE_STATE_IO },
	{ SYS_fallocate, EVIDENCE_STATE_IO },
	{ SYS_ftruncate, EVIDENCE_STATE_IO },
	{ SYS_truncate, EVIDENCE_STATE_IO },
	{ SYS_openat, EVIDENCE_STATE_IO },
	{ SYS_open, EVIDENCE_STATE_IO },
	{ SYS_creat, EVIDENCE_STATE_IO },
	{ SYS_stat, EVIDENCE_STATE_IO },
	{ SYS_lstat, EVIDENCE_STATE_IO },
	{ SYS_fstat, EVIDENCE_STATE_IO },
	{ SYS_newfstatat, EVIDENCE_STATE_IO },
	{ SYS_statx, EVIDENCE_STATE_IO },
	{ SYS_unlink, EVIDENCE_STATE_IO },
	{ SYS_unlinkat, EVIDENCE_STATE_IO },
	{ SYS_rename, EVIDENCE_STATE_IO },
	{ SYS_renameat, EVIDENCE_STATE_IO },
	{ SYS_renameat2, EVIDENCE_STATE_IO },
	{ SYS_mkdir, EVIDENCE_STATE_IO },
	{ SYS_mkdirat, EVIDENCE_STATE_IO },
	{ SYS_rmdir, EVIDENCE_STATE_IO },
	{ SYS_getdents64, EVIDENCE_STATE_IO },
	{ SYS_getdents, EVIDENCE_STATE_IO },
	{ SYS_lseek, EVIDENCE_STATE_IO },
	{ SYS_readahead, EVIDENCE_STATE_IO },
	{ SYS_copy_file_range, EVIDENCE_STATE_IO },
	{ SYS_io_getevents, EVIDENCE_STATE_IO },
	{ SYS_io_uring_enter, EVIDENCE_STATE_IO },
};

void evidence_classes(__u8 class_of[EVIDENCE_CALLS])
{
	memset(class_of, EVIDENCE_STATE_OTHER, EVIDENCE_CALLS);
	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++)
		if (classes[i].call >= 0 && classes[i].call < EVIDENCE_CALLS)
			class_of[classes[i].call] = classes[i].class;
}
