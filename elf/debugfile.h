/* SPDX-License-Identifier: MIT */
#ifndef SB_DEBUGFILE_H
#define SB_DEBUGFILE_H

#include "view.h"

/*
 * Symbols and lines that were taken out of a file: packed inside it (.gnu_debugdata, an xz
 * stream) or in a file of their own, found by build-id. Nothing is ever fetched from a network.
 */
struct debugfile {
	struct view view;
	void *map; /* of a file, view.size bytes; NULL: none */
	void *elf; /* libelf's handle that owns the unpacked bytes */
	int fd;	   /* of the unpacked bytes; valid while elf is set */
	char path[512];
};

/* Unpacks a .gnu_debugdata section. False where it is damaged or cannot be unpacked here. */
bool debugfile_unpack(struct debugfile *d, struct view_range packed);

/* Finds ROOT/usr/lib/debug/.build-id/xx/yyyy.debug, then the same without ROOT. */
bool debugfile_find(struct debugfile *d, const char *root, const char *build_id);
void debugfile_close(struct debugfile *d);

#endif
