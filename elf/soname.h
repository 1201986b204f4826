/* SPDX-License-Identifier: MIT */
#ifndef SB_SONAME_H
#define SB_SONAME_H

#include <sys/stat.h>

/*
 * The DT_SONAME of files that were opened before. A search for a library by that name looks at all
 * files that a process has mapped, hundreds, most of which the processes of a tree have in common:
 * each is opened and read once. Files are distinguished by number, size and times.
 */
void soname_keep(const struct stat *st, const char *soname);

/* "" if it has none; NULL: not known. Valid until the next soname_keep(). */
const char *soname_known(const struct stat *st);

#endif
