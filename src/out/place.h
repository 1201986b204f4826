/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_PLACE_H
#define SB_OUT_PLACE_H

#include <stdio.h>
#include <sys/types.h>

/*
 * Where a result is written. A run may last for hours, and whoever can write to the directory may
 * put something else there meanwhile: a link to a file of ours, another directory. So a path is
 * followed once, when it is checked, and the directory is held open from then on: what is written
 * later is a file of that name in that directory, never what a link there leads to by then.
 *
 * What is no regular file at that time (a device, a pipe, /dev/stdout) is opened by its path when
 * it is written, and is not written where it is a regular file by then.
 *
 * Everything is kept until the program ends; 0 or a descriptor, or -1 with errno.
 */
int out_place_hold(const char *path);

/* Opened to be written: append, or from the start; made with mode 0666 where there is none. */
int out_place_open(const char *path, int flags);
FILE *out_place_stream(const char *path); /* from the start */

/* In one write, as a rule. */
int out_place_append(const char *path, const char *text, size_t len);

/* The text takes the file's place in one step, where that is possible. */
int out_place_replace(const char *path, const char *text, size_t len);

#endif
