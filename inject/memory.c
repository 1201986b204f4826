/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "src/base/caps.h"
#include "src/base/maps.h"

int memory_open(struct memory *mem, pid_t pid, struct sb_err *err)
{
	char path[64];

	mem->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/mem", maps_face(pid));
	mem->fd = CAPS(open(path, O_RDWR | O_CLOEXEC));
	if (mem->fd >= 0)
		return 0;
	if (errno == ENOENT || errno == ESRCH)
		return err_set(err, SB_ENOPROC, "process %d ended", pid);
	return err_sys(err, SB_EPERM, "open %s", path);
}

void memory_close(struct memory *mem)
{
	if (mem->fd >= 0)
		close(mem->fd);
	mem->fd = -1;
}

/*
 * No process maps the first page: a read there is an error, and the end of file where no memory is
 * left.
 */
bool memory_gone(const struct memory *mem)
{
	char byte;

	return pread(mem->fd, &byte, 1, 0) == 0;
}

int memory_err_gone(pid_t pid, struct sb_err *err)
{
	return err_set(err, SB_ENOPROC, "process %d ended, or runs another program", pid);
}

size_t memory_peek(const struct memory *mem, uint64_t addr, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(mem->fd, (char *)buf + done, len - done, (off_t)(addr + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

int memory_write(const struct memory *mem, uint64_t addr, const void *buf, size_t len,
		 struct sb_err *err)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pwrite(mem->fd, (const char *)buf + done, len - done,
				   (off_t)(addr + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(err, SB_ETARGET,
				       "process %d: cannot write %zu bytes at 0x%llx", mem->pid,
				       len, (unsigned long long)addr);
		done += (size_t)n;
	}
	return 0;
}
