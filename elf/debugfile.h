/* SPDX-License-Identifier: MIT */
#ifndef SB_DEBUGFILE_H
#define SB_DEBUGFILE_H

#include "mapping.h"
#include "view.h"

/*
 * Symbols and lines that were removed from a file: packed inside it (.gnu_debugdata, an xz stream)
 * or in a file of their own, found by build-id. Nothing is ever fetched from a network.
 */
struct debugfile {
	struct view view;
	struct mapping map; /* of a file of its own */
	bool packed;	    /* it was packed inside the file itself */
	char path[512];
};

/*
 * Unpacks a .gnu_debugdata section, in a process of its own without privileges, with limits on
 * memory and time: a few bytes can unpack to any size.
 */
enum unpacked {
	UNPACK_DONE,
	UNPACK_DAMAGED, /* or it cannot be unpacked here */
	UNPACK_TOO_MUCH,
};
enum unpacked debugfile_unpack(struct debugfile *d, struct view_range packed);

/* Finds ROOT/usr/lib/debug/.build-id/xx/yyyy.debug, then the same without ROOT. */
bool debugfile_find(struct debugfile *d, const char *root, const char *build_id);
void debugfile_close(struct debugfile *d);

#endif
