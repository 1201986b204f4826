/* SPDX-License-Identifier: MIT */
#include "confine.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { UNPRIVILEGED_ID = 65534 };

/* The linker's own symbol for the header of the running binary. */
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

static bool done;

uint64_t confine_data_size(uint64_t *resident)
{
	unsigned long pages = 0, rss = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%*u %lu %*u %*u %*u %lu", &rss, &pages) != 2)
		pages = rss = 0;
	if (f)
		fclose(f);
	*resident = (uint64_t)rss * (uint64_t)sysconf(_SC_PAGESIZE);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void confine_limit(int what, uint64_t most)
{
	struct rlimit old, new = { most, most };

	if (getrlimit((__rlimit_resource_t)what, &old) == 0 && old.rlim_max < most)
		new.rlim_cur = new.rlim_max = old.rlim_max;
	setrlimit((__rlimit_resource_t)what, &new);
}

void confine_rights(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (geteuid() == 0) {
		int left = setgroups(0, NULL);

		left += setresgid(UNPRIVILEGED_ID, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
		left += setresuid(UNPRIVILEGED_ID, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
		(void)left;
	}
	syscall(SYS_capset, &header, none);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* Memory, the descriptors that it has, time, and its own end. */
static const int permitted[] = {
	SYS_read,	  SYS_write,	    SYS_pread64,	SYS_close,
	SYS_fstat,	  SYS_lseek,	    SYS_fcntl,		SYS_dup,
	SYS_mmap,	  SYS_munmap,	    SYS_mremap,		SYS_mprotect,
	SYS_madvise,	  SYS_brk,	    SYS_sendto,		SYS_recvmsg,
	SYS_rt_sigaction, SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_futex,
	SYS_exit,	  SYS_exit_group,   SYS_getpid,		SYS_gettid,
	SYS_tgkill,	  SYS_getrusage,    SYS_clock_gettime,	SYS_memfd_create,
	SYS_ftruncate,	  SYS_sched_yield,  SYS_newfstatat,
};

/* libdw opens the alternate debug file that a debug file names. */
#define WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_TMPFILE)

enum { COUNT = sizeof(permitted) / sizeof(*permitted), HEAD = 3, OPEN = HEAD + COUNT, TAIL = 5 };

bool confine_calls(void)
{
	const struct sock_filter tail[TAIL] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, WRITES & ~O_DIRECTORY, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_filter code[OPEN + TAIL] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		/* To the refusal at the end, where it is a call of another architecture. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			 __ehdr_start.e_machine | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE, 0,
			 COUNT + 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { .len = OPEN + TAIL, .filter = code };

	for (unsigned int i = 0; i < COUNT; i++)
		code[HEAD + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							      (unsigned int)permitted[i],
							      (uint8_t)(COUNT - i + 3), 0);
	memcpy(code + OPEN, tail, sizeof(tail));
	done = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
	return done;
}

bool confine_is_done(void)
{
	return done;
}
