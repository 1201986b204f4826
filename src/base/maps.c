/* SPDX-License-Identifier: MIT */
#include "maps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "src/base/caps.h"

/* A growing stack must never run into what lies below it; the usual limit of a stack is 8 MiB. */
#define STACK_ROOM (16ull << 20)
/* The heap grows by brk(); malloc survives a blocked brk, but is slower from then on. */
#define HEAP_ROOM (256ull << 20)

enum { READ_TRIES = 50 };

/* ---- parsing ---- */

struct cursor {
	const char *at, *end;
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static bool take_hex(struct cursor *c, uint64_t *value)
{
	const char *first = c->at;

	*value = 0;
	while (c->at < c->end && hex_digit(*c->at) >= 0) {
		if (c->at - first == 16)
			return false;
		*value = *value << 4 | (unsigned int)hex_digit(*c->at++);
	}
	return c->at > first;
}

static bool take_decimal(struct cursor *c, uint64_t *value)
{
	const char *first = c->at;

	*value = 0;
	while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
		if (c->at - first == 20)
			return false;
		*value = *value * 10 + (unsigned int)(*c->at++ - '0');
	}
	return c->at > first;
}

static bool take_char(struct cursor *c, char want)
{
	if (c->at >= c->end || *c->at != want)
		return false;
	c->at++;
	return true;
}

static bool take_flag(struct cursor *c, char set, char clear, bool *flag)
{
	*flag = c->at < c->end && *c->at == set;
	return take_char(c, *flag ? set : clear);
}

static bool take_dev(struct cursor *c, uint32_t *dev)
{
	uint64_t major, minor;

	if (!take_hex(c, &major) || !take_char(c, ':') || !take_hex(c, &minor))
		return false;
	*dev = (uint32_t)(major << 20 | minor);
	return true;
}

static bool take_numbers(struct cursor *c, struct map_entry *e)
{
	return take_hex(c, &e->start) && take_char(c, '-') && take_hex(c, &e->end) &&
	       take_char(c, ' ') && take_flag(c, 'r', '-', &e->r) &&
	       take_flag(c, 'w', '-', &e->w) && take_flag(c, 'x', '-', &e->x) &&
	       take_flag(c, 's', 'p', &e->shared) && take_char(c, ' ') && take_hex(c, &e->offset) &&
	       take_char(c, ' ') && take_dev(c, &e->dev) && take_char(c, ' ') &&
	       take_decimal(c, &e->inode) && e->start < e->end;
}

/* The kernel escapes only the newline, as \012; everything else in a path is literal. */
static void unescape_newlines(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		if (strncmp(from, "\\012", 4) == 0) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static void take_path(struct cursor *c, char *eol, struct map_entry *e)
{
	static const char gone[] = " (deleted)";
	char *path;
	size_t len;

	while (c->at < c->end && *c->at == ' ')
		c->at++;
	path = eol - (c->end - c->at);
	*eol = '\0';
	unescape_newlines(path);
	len = strlen(path);
	if (len >= sizeof(gone) - 1 && strcmp(path + len - (sizeof(gone) - 1), gone) == 0) {
		path[len - (sizeof(gone) - 1)] = '\0';
		e->deleted = true;
	}
	e->path = path;
}

static bool parse_line(char *line, char *eol, struct map_entry *e)
{
	struct cursor c = { line, eol };

	*e = (struct map_entry){ 0 };
	if (!take_numbers(&c, e))
		return false;
	take_path(&c, eol, e);
	return true;
}

static size_t count_lines(const char *text, size_t len)
{
	size_t n = len && text[len - 1] != '\n';

	for (const char *p = text; (p = memchr(p, '\n', len - (size_t)(p - text))); p++)
		n++;
	return n;
}

/* Takes ownership of text, whose byte at len is writable. */
static int parse_owned(char *text, size_t len, struct maps *maps, struct sb_err *err)
{
	size_t lines = count_lines(text, len);
	char *line = text, *end = text + len;

	*maps = (struct maps){ .text = text };
	maps->entry = calloc(lines ? lines : 1, sizeof(*maps->entry));
	if (!maps->entry) {
		maps_free(maps);
		return err_set(err, SB_ENOMEM, "no memory for %zu mappings", lines);
	}
	for (size_t i = 0; i < lines; i++) {
		struct map_entry *e = &maps->entry[i];
		char *eol = memchr(line, '\n', (size_t)(end - line));

		eol = eol ? eol : end;
		if (!parse_line(line, eol, e) || (i && e->start < e[-1].end)) {
			maps_free(maps);
			return err_set(err, SB_EFILE, "memory map: line %zu is malformed", i + 1);
		}
		line = eol + 1;
		maps->count = i + 1;
	}
	return 0;
}

int maps_parse(const char *text, size_t len, struct maps *maps, struct sb_err *err)
{
	char *copy = malloc(len + 1);

	*maps = (struct maps){ 0 };
	if (!copy)
		return err_set(err, SB_ENOMEM, "no memory for a map of %zu bytes", len);
	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	return parse_owned(copy, len, maps, err);
}

/* ---- reading ---- */

/* Everything up to the end of fd; NULL with errno set. */
static char *read_all(int fd, size_t *len)
{
	size_t size = 64 << 10;
	char *text = malloc(size), *more;
	ssize_t got;

	*len = 0;
	while (text) {
		got = read(fd, text + *len, size - *len - 1);
		if (got == 0)
			break;
		if (got < 0 && errno == EINTR)
			continue;
		if (got > 0)
			*len += (size_t)got;
		more = NULL;
		if (got > 0 && size - *len > 1)
			continue;
		if (got > 0)
			more = realloc(text, size *= 2);
		if (!more)
			free(text);
		text = more;
	}
	return text;
}

static int read_failed(pid_t pid, struct sb_err *err)
{
	char dir[32];
	int saved = errno;

	snprintf(dir, sizeof(dir), "/proc/%d", pid);
	/* Since 6.16 a process without memory gives ESRCH; earlier kernels give an empty file. */
	if (saved == ESRCH && access(dir, F_OK) == 0)
		return 0;
	errno = saved;
	if (err && !err->code)
		err->pid = pid;
	if (saved == ESRCH || saved == ENOENT)
		return err_set(err, SB_ENOPROC, "process %d does not exist", pid);
	if (saved == EACCES || saved == EPERM)
		return err_sys(err, SB_EPERM, "cannot read the memory map of process %d", pid);
	return err_sys(err, SB_EFILE, "cannot read /proc/%d/maps", pid);
}

/* A task without memory has no executable either. A task whose link we may not read counts as one
 * with memory. */
static bool has_memory(pid_t tid)
{
	char path[40], byte;

	snprintf(path, sizeof(path), "/proc/%d/exe", tid);
	return CAPS(readlink(path, &byte, 1)) >= 0 || (errno != ENOENT && errno != ESRCH);
}

pid_t maps_face(pid_t pid)
{
	struct dirent *e;
	pid_t face = pid;
	char path[40];
	DIR *dir;

	if (has_memory(pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && face == pid && (e = readdir(dir))) {
		pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);

		if (tid > 0 && tid != pid && has_memory(tid))
			face = tid;
	}
	if (dir)
		closedir(dir);
	return face;
}

static int read_once(pid_t pid, struct maps *maps, struct sb_err *err)
{
	char path[40], *text = NULL;
	size_t len = 0;
	int fd;

	*maps = (struct maps){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/maps", maps_face(pid));
	fd = CAPS(open(path, O_RDONLY | O_CLOEXEC));
	if (fd >= 0) {
		text = read_all(fd, &len);
		int saved = errno;

		close(fd);
		errno = saved;
	}
	if (!text)
		return read_failed(pid, err);
	return parse_owned(text, len, maps, err);
}

/*
 * The kernel prints the file in pieces. An entry that is split or joined between two pieces may
 * appear twice; then read again. A process that changes its map all the time pauses in between.
 */
int maps_read(pid_t pid, struct maps *maps, struct sb_err *err)
{
	struct sb_err why = { 0 };
	int ret = read_once(pid, maps, &why);

	for (int i = 0; ret == -SB_EFILE && i < READ_TRIES; i++) {
		why = (struct sb_err){ 0 };
		ret = read_once(pid, maps, &why);
	}
	if (ret < 0 && err && !err->code)
		*err = why;
	return ret;
}

void maps_free(struct maps *maps)
{
	free(maps->entry);
	free(maps->text);
	*maps = (struct maps){ 0 };
}

/* ---- questions ---- */

const struct map_entry *maps_find(const struct maps *maps, uint64_t addr)
{
	size_t lo = 0, hi = maps->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (maps->entry[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < maps->count && maps->entry[lo].start <= addr ? &maps->entry[lo] : NULL;
}

static uint64_t page_size(void)
{
	static uint64_t size;

	if (!size)
		size = (uint64_t)sysconf(_SC_PAGESIZE);
	return size;
}

static uint64_t mmap_min_addr(void)
{
	static uint64_t min_addr;
	unsigned long long value = 0;
	FILE *f;

	if (min_addr)
		return min_addr;
	f = fopen("/proc/sys/vm/mmap_min_addr", "re");
	if (f) {
		if (fscanf(f, "%llu", &value) != 1)
			value = 0;
		fclose(f);
	}
	/* Never nearer to NULL than the kernel's usual setting: an access at NULL plus a small
	 * offset must fault. */
	min_addr = value > 0x10000 ? value : 0x10000;
	return min_addr;
}

/* The highest address that the architecture lets a process map, from what this process has
 * mapped. */
static uint64_t user_ceiling(const struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++)
		if (maps->entry[i].start >= 1ull << 47 && maps->entry[i].end <= 1ull << 48)
			return (1ull << 48) - page_size();
	return (1ull << 47) - page_size();
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The usable part of the hole before entry i. */
static void usable_hole(const struct maps *maps, size_t i, bool spare_heap, uint64_t *lo,
			uint64_t *hi)
{
	*lo = i ? maps->entry[i - 1].end : 0;
	*hi = i < maps->count ? maps->entry[i].start : UINT64_MAX;
	if (i && spare_heap && strcmp(maps->entry[i - 1].path, "[heap]") == 0)
		*lo = add_capped(*lo, HEAP_ROOM);
	if (i < maps->count && strcmp(maps->entry[i].path, "[stack]") == 0)
		*hi = *hi > STACK_ROOM ? *hi - STACK_ROOM : 0;
}

static uint64_t clamp(uint64_t v, uint64_t lo, uint64_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

static uint64_t nearest_gap(const struct maps *maps, uint64_t near, uint64_t lo, uint64_t hi,
			    uint64_t len, bool spare_heap)
{
	uint64_t mask = page_size() - 1, best = 0, best_far = UINT64_MAX;

	for (size_t i = 0; i <= maps->count; i++) {
		uint64_t from, to, at, far;

		usable_hole(maps, i, spare_heap, &from, &to);
		from = from > lo ? from : lo;
		to = (to < hi ? to : hi) & ~mask;
		if (from > UINT64_MAX - mask)
			continue;
		from = (from + mask) & ~mask;
		if (from >= to || to - from < len)
			continue;
		at = clamp(near & ~mask, from, to - len);
		far = at > near ? at - near : near - at;
		if (far < best_far) {
			best_far = far;
			best = at;
		}
	}
	return best;
}

uint64_t maps_find_gap(const struct maps *maps, uint64_t near, uint64_t lo, uint64_t hi,
		       uint64_t len)
{
	uint64_t mask = page_size() - 1, ceiling = user_ceiling(maps), at;

	if (!len || len > UINT64_MAX - mask)
		return 0;
	len = (len + mask) & ~mask;
	lo = lo > mmap_min_addr() ? lo : mmap_min_addr();
	hi = hi < ceiling ? hi : ceiling;
	at = nearest_gap(maps, near, lo, hi, len, true);
	return at ? at : nearest_gap(maps, near, lo, hi, len, false);
}
