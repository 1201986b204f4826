/* SPDX-License-Identifier: MIT */
#ifndef SB_MAPFILE_H
#define SB_MAPFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "src/base/err.h"

/*
 * /tmp/perf-PID.map, in which perf(1) and other profilers look up code that no file contains. A
 * line is "ADDRESS SIZE NAME". The file is where perf looks for it: below the root of the process,
 * named by its innermost pid; by its pid here if it has our mount namespace.
 *
 * The process is not trusted, and its /tmp belongs to everyone. So the file is opened with the
 * user and group ids of the process, and none of our rights: nothing can be created, changed or
 * removed through it that the process could not create, change or remove itself. No link is
 * followed. A file that exists is used if it is a regular file of the process's user with one
 * name, and if the process itself only appends to it (CPython does; V8 writes at an offset of its
 * own, and would write into our lines).
 *
 * Our lines are known by the text that their names begin with. That is all that is needed to
 * remove them, so a detach and a recovery after a crash use the same function. A file that has
 * nothing else is removed, and one that they end is cut. If the process has the file open, either
 * could take a line that the process is about to add: newlines, which readers skip, replace our
 * lines.
 *
 * Any file system can be there, and its calls may block: so all but mapfile_open() belongs to the
 * thread of mapfiles.h, which also has its own ids.
 */
#define MAPFILE_PREFIX "sbinject:"

struct mapfile {
	pid_t pid;
	int proc;  /* the folder in /proc of the process, or -1 */
	int dir;   /* its /tmp; -1: not found yet */
	uid_t uid; /* of the process, for files */
	gid_t gid;
	char name[40]; /* of the file in dir */
};

/* The process lives. Opens nothing but /proc. */
int mapfile_open(struct mapfile *m, pid_t pid, struct sb_err *err);
void mapfile_close(struct mapfile *m);

/* Adds lines. SB_ENOPROC: the process has ended. On failure the file has none of them. */
int mapfile_append(struct mapfile *m, const char *lines, size_t len, struct sb_err *err);

/* Removes our lines, also after the end of the process. Without a file, it does nothing. */
int mapfile_clean(struct mapfile *m, struct sb_err *err);

#endif
