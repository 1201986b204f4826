/* SPDX-License-Identifier: MIT */
#ifndef SB_SPACE_PRIV_H
#define SB_SPACE_PRIV_H

#include "space.h"

/*
 * Shared by space.c, space-setup.c, space-part.c and fork.c: the files of a control page, made by a
 * remote call, and their mappings.
 */

/* What is known of a page before a thread is held to make it. */
struct space_draft {
	struct sb_page_header layout;
	struct task_ids ids; /* of the process */
};

/*
 * Makes both files, and opens sbinject's end of them: space->control. fd: the target's descriptors
 * of the settings and the counts, -1 before; on failure they hold what is open there.
 */
int space_make_files(struct space *space, struct remote *r, const struct space_want *want,
		     const struct space_draft *draft, long fd[2], struct sb_err *err);

/* Closes them in the target. False: the thread was lost. *closed: the program had closed one. */
bool space_close_files(struct remote *r, const long fd[2], bool *closed);

/*
 * SB_ETARGET: what the process maps at these addresses (0: not asked) is not the front, or the
 * rear, of space->control. SB_ENOPROC: it ended, or runs another program.
 */
int space_check_map(const struct space *space, pid_t pid, uint64_t front, uint64_t rear,
		    struct sb_err *err);

/*
 * What the process maps of a page that is not finished, for removal: unfinished_addr, and
 * half_addr. False: its mappings cannot be read.
 */
bool space_keep_pieces(struct space *space, const struct control *control, pid_t pid,
		       uint64_t page_size);

/* Checks the result of a call in the target: SB_ETARGET with its error, unless it succeeded. */
int space_must(struct remote *r, const char *what, long result, struct sb_err *err);

#endif
