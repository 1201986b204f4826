/* SPDX-License-Identifier: MIT */
#ifndef SB_SPACE_PRIV_H
#define SB_SPACE_PRIV_H

#include "space.h"

/* Shared by space.c and space-part.c: the files of a control page, made by a remote call. */

/*
 * Makes both files, and opens sbinject's end of them: space->control. layout NULL: computed from
 * want. fd: the target's descriptors of the settings and the counts, -1 before; on failure they
 * hold what is open there.
 */
int space_make_files(struct space *space, struct remote *r, const struct space_want *want,
		     const struct sb_page_header *layout, long fd[2], struct sb_err *err);

/* Closes them in the target. False: the thread was lost. *closed: the program had closed one. */
bool space_close_files(struct remote *r, const long fd[2], bool *closed);

/*
 * SB_ETARGET: the mappings in the page's place, of its front and its rear, are not of the files of
 * space->control.
 */
int space_check_map(const struct space *space, struct remote *r, bool front, bool rear,
		    struct sb_err *err);

/* Checks the result of a call in the target: SB_ETARGET with its error, unless it succeeded. */
int space_must(struct remote *r, const char *what, long result, struct sb_err *err);

#endif
