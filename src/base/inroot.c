/* SPDX-License-Identifier: MIT */
#include "inroot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "src/base/caps.h"

static int close_keeping_errno(int fd)
{
	int saved = errno;

	close(fd);
	errno = saved;
	return -1;
}

int inroot_find(const char *root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	int dir, fd;

	if (!root)
		return CAPS(open(path, O_PATH | O_CLOEXEC));
	if (!*root)
		return open(path, O_PATH | O_CLOEXEC);
	dir = CAPS(open(root, O_PATH | O_DIRECTORY | O_CLOEXEC));
	if (dir < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	close_keeping_errno(dir);
	return fd;
}

int inroot_open(const char *root, const char *path)
{
	int at = inroot_find(root, path), fd;
	struct stat st;
	char same[32];

	if (at < 0)
		return -1;
	if (fstat(at, &st) < 0)
		return close_keeping_errno(at);
	if (!S_ISREG(st.st_mode)) {
		errno = ENOEXEC;
		return close_keeping_errno(at);
	}
	/* The very file that was looked at. O_NONBLOCK: its owner may hold a lease on it. */
	snprintf(same, sizeof(same), "/proc/self/fd/%d", at);
	fd = open(same, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	close_keeping_errno(at);
	return fd;
}
