/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_PLACE_H
#define SB_OUT_PLACE_H

#include <stdio.h>
#include <sys/types.h>

/*
 * Where a result is written. A run may last for hours, and other users with write access to the
 * directory may replace the file meanwhile: by a link to one of our files, by another directory. So
 * a path is followed once, when it is checked, and the directory stays open from then on. A later
 * write goes to a file of that name in that directory, never to where a link there leads by then.
 *
 * A path that is not a regular file at that time (a device, a pipe, /dev/stdout) is opened by its
 * path when it is written. It is not written if it is a regular file by then.
 *
 * Everything is kept until the program ends. These functions return 0 or a descriptor, or -1 with
 * errno.
 */
int out_place_hold(const char *path);

/* Opens for writing, to append or from the start; creates a missing file with mode 0666. */
int out_place_open(const char *path, int flags);
FILE *out_place_stream(const char *path); /* from the start */

/* Appends in one write, as a rule. */
int out_place_append(const char *path, const char *text, size_t len);

/* Replaces the file's contents in one step where that is possible. */
int out_place_replace(const char *path, const char *text, size_t len);

#endif
