/* SPDX-License-Identifier: MIT */
/*
 * textcheck PID: compares every executable file mapping of a process with its file, byte by
 * byte, and prints the ranges that differ. Status 0: none; 1: some; 2: cannot tell.
 *
 * A uprobe of another session, or of another user of the machine, puts its breakpoint into every
 * process that maps the file: into this one, too, which is how it is told from a breakpoint that
 * sbinject put into the one process. It is no difference. In the victims' own folder (V) it is:
 * no other test probes there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "face.h"

enum { CHUNK = 65536, BREAKPOINT = 0xcc, LOOKS = 5, LOOK_US = 50000 };

struct mapping {
	unsigned long long start, end, offset;
	char path[1024];
	const uint8_t *own; /* the same in this process; NULL: nothing is tolerated there */
	int mem_fd;
};

static void map_own(struct mapping *m, int fd)
{
	const char *victims = getenv("V");
	void *own;

	if (!victims || !strncmp(m->path, victims, strlen(victims)))
		return;
	own = mmap(NULL, m->end - m->start, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
		   (off_t)m->offset);
	m->own = own == MAP_FAILED ? NULL : own;
}

/* Processes get it, and lose it, one after the other: it is looked for a few times. */
static bool is_strangers(const struct mapping *m, unsigned long long at, uint8_t file)
{
	for (int i = 0; m->own && i < LOOKS; i++) {
		uint8_t now = BREAKPOINT;

		if (((volatile const uint8_t *)m->own)[at] == BREAKPOINT)
			return true;
		if (pread(m->mem_fd, &now, 1, (off_t)(m->start + at)) == 1 && now == file)
			return true;
		usleep(LOOK_US);
	}
	return false;
}

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
		if (run == 1 && mem[i] == BREAKPOINT && is_strangers(m, at + i, file[i]))
			continue;
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

static int check_mapping(const char *pid, struct mapping *m)
{
	static uint8_t mem[CHUNK], file[CHUNK];
	int fd = open_file(pid, m), found = 0;

	if (fd < 0) {
		fprintf(stderr, "textcheck: %s: %s\n", m->path, strerror(errno));
		return -1;
	}
	map_own(m, fd);
	for (unsigned long long at = 0; at < m->end - m->start; at += CHUNK) {
		size_t want = m->end - m->start - at < CHUNK ? m->end - m->start - at : CHUNK;
		ssize_t got = pread(fd, file, want, (off_t)(m->offset + at));

		if (got < 0)
			got = 0;
		memset(file + got, 0, want - (size_t)got); /* the rest of the file's last page */
		if (pread(m->mem_fd, mem, want, (off_t)(m->start + at)) != (ssize_t)want) {
			fprintf(stderr, "textcheck: memory at 0x%llx: %s\n", m->start + at,
				strerror(errno));
			found = -1;
			break;
		}
		found += compare(m, at, mem, file, want);
	}
	close(fd);
	if (m->own)
		munmap((void *)m->own, m->end - m->start);
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
		m.mem_fd = mem_fd;
		one = check_mapping(argv[1], &m);
		if (one < 0)
			return 2;
		found += one;
		checked++;
	}
	fclose(maps);
	return checked == 0 ? 2 : found > 0;
}
