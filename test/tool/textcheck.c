/* SPDX-License-Identifier: MIT */
/*
 * textcheck PID: compares every executable file mapping of a process with its file, byte by
 * byte, and prints the ranges that differ. Status 0: none; 1: some; 2: cannot tell.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "face.h"

enum { CHUNK = 65536 };

struct mapping {
	unsigned long long start, end, offset;
	char path[1024];
};

static int open_file(const char *pid, const struct mapping *m)
{
	char path[1200];
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/map_files/%llx-%llx", pid, m->start, m->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/%s/root%s", pid, m->path);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void print_bytes(const char *what, const uint8_t *bytes, size_t n)
{
	printf(" %s", what);
	for (size_t i = 0; i < n && i < 16; i++)
		printf(" %02x", bytes[i]);
}

/* Prints the differing runs of one chunk; how many. */
static int compare(const struct mapping *m, unsigned long long at, const uint8_t *mem,
		   const uint8_t *file, size_t n)
{
	int found = 0;

	for (size_t i = 0; i < n; i++) {
		size_t run = 0;

		if (mem[i] == file[i])
			continue;
		while (i + run < n && mem[i + run] != file[i + run])
			run++;
		printf("%s+0x%llx (0x%llx) %zu bytes:", m->path, m->offset + at + i,
		       m->start + at + i, run);
		print_bytes("file", file + i, run);
		print_bytes("memory", mem + i, run);
		putchar('\n');
		found++;
		i += run;
	}
	return found;
}

static int check_mapping(const char *pid, int mem_fd, const struct mapping *m)
{
	static uint8_t mem[CHUNK], file[CHUNK];
	int fd = open_file(pid, m), found = 0;

	if (fd < 0) {
		fprintf(stderr, "textcheck: %s: %s\n", m->path, strerror(errno));
		return -1;
	}
	for (unsigned long long at = 0; at < m->end - m->start; at += CHUNK) {
		size_t want = m->end - m->start - at < CHUNK ? m->end - m->start - at : CHUNK;
		ssize_t got = pread(fd, file, want, (off_t)(m->offset + at));

		if (got < 0)
			got = 0;
		memset(file + got, 0, want - (size_t)got); /* the rest of the file's last page */
		if (pread(mem_fd, mem, want, (off_t)(m->start + at)) != (ssize_t)want) {
			fprintf(stderr, "textcheck: memory at 0x%llx: %s\n", m->start + at,
				strerror(errno));
			found = -1;
			break;
		}
		found += compare(m, at, mem, file, want);
	}
	close(fd);
	return found;
}

int main(int argc, char **argv)
{
	char path[64], line[2048], perms[8], pid[24];
	int mem_fd, found = 0, checked = 0;
	FILE *maps;

	if (argc != 2)
		return 2;
	argv[1] = (char *)face(argv[1], pid);
	snprintf(path, sizeof(path), "/proc/%.20s/mem", argv[1]);
	mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%.20s/maps", argv[1]);
	maps = fopen(path, "re");
	if (mem_fd < 0 || !maps) {
		fprintf(stderr, "textcheck: %s: %s\n", argv[1], strerror(errno));
		return 2;
	}
	while (fgets(line, sizeof(line), maps)) {
		struct mapping m = { 0 };
		int one;

		if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %1023[^\n]", &m.start, &m.end, perms,
			   &m.offset, m.path) != 5 ||
		    perms[2] != 'x' || m.path[0] != '/')
			continue;
		one = check_mapping(argv[1], mem_fd, &m);
		if (one < 0)
			return 2;
		found += one;
		checked++;
	}
	fclose(maps);
	return checked == 0 ? 2 : found > 0;
}
