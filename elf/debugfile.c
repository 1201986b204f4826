/* SPDX-License-Identifier: MIT */
#include "debugfile.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a mini debug info may unpack to; real ones are below 10 MB. */
#define UNPACKED_MAX (256u << 20)

static bool write_all(int fd, const uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = write(fd, p, len);

		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/*
 * libdw unpacks a compressed ELF file that it is given as a descriptor; so no library for xz
 * has to be linked.
 */
bool debugfile_unpack(struct debugfile *d, struct view_range packed)
{
	size_t size = 0;
	char *base = NULL;

	*d = (struct debugfile){ .fd = -1 };
	/* The magic of xz: anything else would be handed to whichever unpacker likes it. */
	if (packed.size < 6 || memcmp(packed.bytes,
				      "\xfd"
				      "7zXZ",
				      6) != 0)
		return false;
	d->fd = memfd_create("sbinject-debugdata", MFD_CLOEXEC);
	if (d->fd < 0)
		return false;
	elf_version(EV_CURRENT);
	if (write_all(d->fd, packed.bytes, packed.size) && lseek(d->fd, 0, SEEK_SET) == 0)
		d->elf = dwelf_elf_begin(d->fd);
	if (d->elf)
		base = elf_rawfile(d->elf, &size);
	if (base && size <= UNPACKED_MAX &&
	    view_open(&d->view, base, size, ".gnu_debugdata", NULL) == 0)
		return true;
	debugfile_close(d);
	return false;
}

static bool map_debug(struct debugfile *d, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	void *base = MAP_FAILED;

	*d = (struct debugfile){ .fd = -1 };
	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
		base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (base == MAP_FAILED)
		return false;
	d->map = base;
	d->view.size = (size_t)st.st_size;
	snprintf(d->path, sizeof(d->path), "%s", path);
	if (view_open(&d->view, base, (size_t)st.st_size, path, NULL) == 0)
		return true;
	d->view.size = (size_t)st.st_size;
	debugfile_close(d);
	return false;
}

bool debugfile_find(struct debugfile *d, const char *root, const char *build_id)
{
	char path[512];

	*d = (struct debugfile){ .fd = -1 };
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
	if (d->map)
		munmap(d->map, d->view.size);
	if (d->elf)
		elf_end(d->elf);
	if (d->fd > 0)
		close(d->fd);
	*d = (struct debugfile){ .fd = -1 };
}
