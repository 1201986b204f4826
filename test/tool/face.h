/* SPDX-License-Identifier: MIT */
#ifndef FACE_H
#define FACE_H

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

/*
 * The thread through which /proc shows a process's memory: the leader, or another one where
 * that has ended (pthread_exit in main). buf takes its number.
 */
static inline const char *face(const char *pid, char buf[24])
{
	char path[96], byte;
	struct dirent *e;
	DIR *dir;

	snprintf(buf, 24, "%.20s", pid);
	snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	if (readlink(path, &byte, 1) > 0)
		return buf;
	snprintf(path, sizeof(path), "/proc/%.20s/task", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%.20s/exe", e->d_name);
		if (e->d_name[0] == '.' || readlink(path, &byte, 1) <= 0)
			continue;
		snprintf(buf, 24, "%.20s", e->d_name);
		break;
	}
	if (dir)
		closedir(dir);
	return buf;
}

#endif
