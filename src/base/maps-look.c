/* SPDX-License-Identifier: MIT */
#include "maps-look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "src/base/caps.h"

/* As in <linux/fs.h> since 6.11. */
struct query {
	uint64_t size, flags, addr;
	uint64_t start, end, vma_flags, page_size, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};

#define QUERY _IOWR('f', 17, struct query)

enum { READABLE = 1, WRITABLE = 2, EXECUTABLE = 4, SHARED = 8 };

void maps_look_open(struct maps_look *look, pid_t pid)
{
	char path[40];

	look->pid = pid;
	look->whole = look->failed = false;
	look->maps = (struct maps){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/maps", maps_face(pid));
	look->fd = CAPS(open(path, O_RDONLY | O_CLOEXEC));
	look->failed = look->fd < 0;
}

void maps_look_close(struct maps_look *look)
{
	if (look->fd >= 0)
		close(look->fd);
	maps_free(&look->maps);
	look->fd = -1;
}

static void take_path(struct maps_look *look, uint32_t size)
{
	static const char gone[] = " (deleted)";
	struct map_entry *e = &look->entry;
	size_t len;

	look->path[size < sizeof(look->path) ? size : sizeof(look->path) - 1] = '\0';
	len = strlen(look->path);
	e->path = look->path;
	if (len < sizeof(gone) - 1 || strcmp(look->path + len - (sizeof(gone) - 1), gone) != 0)
		return;
	look->path[len - (sizeof(gone) - 1)] = '\0';
	e->deleted = true;
}

/* 0, or an errno: ENOENT where nothing is mapped. */
static int ask(struct maps_look *look, uint64_t addr)
{
	struct query q = {
		.size = sizeof(q),
		.addr = addr,
		.name_size = sizeof(look->path),
		.name_addr = (uintptr_t)look->path,
	};

	if (ioctl(look->fd, QUERY, &q) < 0)
		return errno;
	look->entry = (struct map_entry){
		.start = q.start,
		.end = q.end,
		.offset = q.offset,
		.inode = q.inode,
		.dev = q.dev_major << 20 | q.dev_minor,
		.r = q.vma_flags & READABLE,
		.w = q.vma_flags & WRITABLE,
		.x = q.vma_flags & EXECUTABLE,
		.shared = q.vma_flags & SHARED,
	};
	take_path(look, q.name_size);
	return 0;
}

static const struct map_entry *look_in_whole(struct maps_look *look, uint64_t addr)
{
	if (!look->whole && maps_read(look->pid, &look->maps, NULL) < 0) {
		look->failed = true;
		return NULL;
	}
	look->whole = true;
	return maps_find(&look->maps, addr);
}

const struct map_entry *maps_look_at(struct maps_look *look, uint64_t addr)
{
	int error;

	if (look->fd < 0)
		return NULL;
	error = look->whole ? ENOTTY : ask(look, addr);
	if (error == 0)
		return &look->entry;
	return error == ENOENT ? NULL : look_in_whole(look, addr);
}
