/* SPDX-License-Identifier: MIT */
#include "debugfile.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "src/base/inroot.h"

bool debugfile_take(struct debugfile *d, int fd)
{
	struct stat st;

	*d = (struct debugfile){ 0 };
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    !mapping_open(&d->map, fd, (size_t)st.st_size))
		return false;
	if (view_open(&d->view, d->map.base, d->map.size, "debug file", NULL) == 0)
		return true;
	debugfile_close(d);
	return false;
}

/* Only what the owner of the file itself, or root, could have put there. */
static int open_of(const char *root, const char *path, uid_t owner)
{
	int fd = inroot_open(root, path);
	struct stat st;

	if (fd < 0 || (fstat(fd, &st) == 0 && (st.st_uid == owner || st.st_uid == 0) &&
		       !(st.st_mode & (S_IWGRP | S_IWOTH))))
		return fd;
	close(fd);
	return -1;
}

int debugfile_open(const char *root, const char *build_id, uid_t owner)
{
	char path[512];
	int fd = -1;

	if (strlen(build_id) < 4)
		return -1;
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id,
		 build_id + 2);
	if (*root)
		fd = open_of(root, path, owner);
	return fd < 0 ? open_of("", path, owner) : fd;
}

void debugfile_close(struct debugfile *d)
{
	mapping_close(&d->map);
	*d = (struct debugfile){ 0 };
}
