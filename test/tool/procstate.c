/* SPDX-License-Identifier: MIT */
/*
 * procstate PID: what of a process must be the same after a detach as before the attach, one
 * fact a line, so that two outputs can be compared with diff:
 *
 *	map	file mappings as they are; neighbouring anonymous ones as one range (a heap that
 *		gives some of its reserve a different protection is still the same range);
 *		[heap] and [stack] by their fixed end only; not [uprobes], the kernel's own page
 *		for any uprobe of the machine that the process has hit, which stays
 *	fd	number and what it points to
 *	status	TracerPid, SigBlk of the leader, SigIgn, SigCgt, NoNewPrivs, Seccomp
 *	thread	TracerPid and SigBlk of each, with -t
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "face.h"

struct range {
	unsigned long long start, end;
};

static void flush(struct range *anon)
{
	if (anon->end)
		printf("map %llx-%llx anonymous\n", anon->start, anon->end);
	anon->start = anon->end = 0;
}

static bool by_one_end(const char *path, unsigned long long start, unsigned long long end)
{
	if (strcmp(path, "[heap]") == 0)
		printf("map %llx [heap]\n", start);
	else if (strcmp(path, "[stack]") == 0)
		printf("map %llx [stack]\n", end);
	else if (strcmp(path, "[uprobes]") != 0)
		return false;
	return true;
}

static int print_maps(const char *pid)
{
	char name[64], line[2048];
	struct range anon = { 0 };
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%.20s/maps", pid);
	f = fopen(name, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		char perms[8], offset[32], dev[16], inode[32], path[1024] = "";
		struct range r;

		if (sscanf(line, "%llx-%llx %7s %31s %15s %31s %1023[^\n]", &r.start, &r.end, perms,
			   offset, dev, inode, path) < 6)
			continue;
		if (path[0] == 0 && perms[3] == 'p') {
			if (anon.end != r.start) {
				flush(&anon);
				anon.start = r.start;
			}
			anon.end = r.end;
			continue;
		}
		flush(&anon);
		if (!by_one_end(path, r.start, r.end))
			printf("map %llx-%llx %s %s %s %s %s\n", r.start, r.end, perms, offset, dev,
			       inode, path);
	}
	flush(&anon);
	fclose(f);
	return 0;
}

static int numeric(const struct dirent *entry)
{
	return isdigit((unsigned char)entry->d_name[0]);
}

static int print_fds(const char *pid)
{
	char dir[64], path[400], to[1024];
	struct dirent **list;
	int n;

	snprintf(dir, sizeof(dir), "/proc/%.20s/fd", pid);
	n = scandir(dir, &list, numeric, versionsort);
	if (n < 0)
		return -1;
	for (int i = 0; i < n; i++) {
		ssize_t len;

		snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
		len = readlink(path, to, sizeof(to) - 1);
		to[len < 0 ? 0 : len] = 0;
		printf("fd %s %s\n", list[i]->d_name, to);
		free(list[i]);
	}
	free(list);
	return 0;
}

static int print_status(const char *path, const char *label, const char *const *keys)
{
	char line[512];
	FILE *f = fopen(path, "re");

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		for (const char *const *key = keys; *key; key++)
			if (strncmp(line, *key, strlen(*key)) == 0)
				printf("%s %s", label, line);
	fclose(f);
	return 0;
}

static int print_threads(const char *pid)
{
	static const char *const keys[] = { "TracerPid:", "SigBlk:", NULL };
	char dir[64], path[400], label[300];
	struct dirent **list;
	int n;

	snprintf(dir, sizeof(dir), "/proc/%.20s/task", pid);
	n = scandir(dir, &list, numeric, versionsort);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s/status", dir, list[i]->d_name);
		snprintf(label, sizeof(label), "thread %s", list[i]->d_name);
		print_status(path, label, keys);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return n < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
	static const char *const keys[] = { "TracerPid:",  "SigBlk:",  "SigIgn:", "SigCgt:",
					    "NoNewPrivs:", "Seccomp:", NULL };
	bool threads = argc == 3 && strcmp(argv[1], "-t") == 0;
	const char *pid = argv[argc - 1];
	char path[64], shown[24];

	if (argc < 2)
		return 2;
	snprintf(path, sizeof(path), "/proc/%.20s/status", pid);
	if (print_maps(face(pid, shown)) || print_fds(shown) ||
	    print_status(path, "status", keys) || (threads && print_threads(pid))) {
		fprintf(stderr, "procstate: %s: %s\n", pid, strerror(errno));
		return 2;
	}
	return 0;
}
