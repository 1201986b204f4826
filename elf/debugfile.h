/* SPDX-License-Identifier: MIT */
#ifndef SB_DEBUGFILE_H
#define SB_DEBUGFILE_H

#include <sys/types.h>
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

/*
 * Opens ROOT/usr/lib/debug/.build-id/xx/yyyy.debug, or the same without ROOT; -1: there is none.
 * All processes that map a file share what is known of it, and each has a root of its own: so a
 * debug file counts only if root or the owner of the file owns it, and no other user can write it.
 */
int debugfile_open(const char *root, const char *build_id, uid_t owner);
/* Maps that file; fd stays the caller's, and may be -1. */
bool debugfile_take(struct debugfile *d, int fd);
void debugfile_close(struct debugfile *d);

#endif
