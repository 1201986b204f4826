/* SPDX-License-Identifier: MIT */
#include "debugfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool map_debug(struct debugfile *d, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	bool mapped;

	*d = (struct debugfile){ 0 };
	if (fd < 0)
		return false;
	mapped = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
		 mapping_open(&d->map, fd, (size_t)st.st_size);
	close(fd);
	if (!mapped)
		return false;
	snprintf(d->path, sizeof(d->path), "%s", path);
	if (view_open(&d->view, d->map.base, d->map.size, path, NULL) == 0)
		return true;
	debugfile_close(d);
	return false;
}

bool debugfile_find(struct debugfile *d, const char *root, const char *build_id)
{
	char path[512];

	*d = (struct debugfile){ 0 };
	if (strlen(build_id) < 4)
		return false;
	for (int i = 0; i < 2; i++) {
		if (i == 0 && !*root)
			continue;
		snprintf(path, sizeof(path), "%s/usr/lib/debug/.build-id/%.2s/%s.debug",
			 i ? "" : root, build_id, build_id + 2);
		if (map_debug(d, path))
			return true;
	}
	return false;
}

void debugfile_close(struct debugfile *d)
{
	mapping_close(&d->map);
	*d = (struct debugfile){ 0 };
}
