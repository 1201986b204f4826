/* SPDX-License-Identifier: MIT */
#include "strays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "processes.h"
#include "inject/space.h"
#include "inject/tree-task.h"
#include "src/base/caps.h"
#include "src/base/maps.h"

/* The last so many pages count: a chain of execs makes one page each, and leaves it behind. */
enum { PAGES = 1 << 16, ROOTS = 1 << 14, GENERATIONS = 1 << 12 };

struct page_id {
	uint64_t inode;
	uint32_t dev;
	struct task_ids ids;
};

struct root {
	pid_t pid;
	uint64_t start; /* another process with this number has another start time */
};

struct strays {
	uint32_t n_pages, n_roots; /* all so far; array indices are modulo the sizes */
	struct page_id page[PAGES];
	struct root root[ROOTS];
};

struct strays *strays_new(void)
{
	void *t = mmap(NULL, sizeof(struct strays), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return t == MAP_FAILED ? NULL : t;
}

void strays_free(struct strays *t)
{
	if (t)
		munmap(t, sizeof(*t));
}

/* The count is increased last: the writer may be killed at any instant. */
void strays_root(struct strays *t, pid_t pid)
{
	uint64_t start = t ? task_start(pid) : 0;

	if (!start || strays_is_root(t, pid))
		return;
	t->root[t->n_roots % ROOTS] = (struct root){ pid, start };
	__atomic_fetch_add(&t->n_roots, 1, __ATOMIC_RELEASE);
}

void strays_page(struct strays *t, const struct task_ids *ids, uint32_t dev, uint64_t inode)
{
	struct page_id page = { .dev = dev, .inode = inode, .ids = *ids };

	if (!t)
		return;
	t->page[t->n_pages % PAGES] = page;
	__atomic_fetch_add(&t->n_pages, 1, __ATOMIC_RELEASE);
}

bool strays_is_root(const struct strays *t, pid_t pid)
{
	uint64_t start = t ? task_start(pid) : 0;
	uint32_t n = t && start ? t->n_roots < ROOTS ? t->n_roots : ROOTS : 0;

	for (uint32_t i = 0; i < n; i++)
		if (t->root[i].pid == pid && t->root[i].start == start)
			return true;
	return false;
}

static bool is_below_root(const struct strays *t, pid_t pid)
{
	for (int i = 0; i < GENERATIONS && pid > 1; i++) {
		if (strays_is_root(t, pid))
			return true;
		pid = task_parent(pid);
	}
	return false;
}

static const struct page_id *find_page(const struct strays *t, uint32_t dev, uint64_t inode)
{
	uint32_t n = t->n_pages < PAGES ? t->n_pages : PAGES;

	for (uint32_t i = 0; i < n; i++)
		if (t->page[i].inode == inode && t->page[i].dev == dev)
			return &t->page[i];
	return NULL;
}

/* The next mapping in a file of maps that has the name of our pages. */
static bool next_named(FILE *f, uint32_t *dev, uint64_t *inode)
{
	unsigned int major, minor;
	unsigned long long ino;
	char line[512];

	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, "/memfd:sbinject") ||
		    sscanf(line, "%*s %*s %*s %x:%x %llu", &major, &minor, &ino) != 3)
			continue;
		*dev = (uint32_t)(major << 20 | minor);
		*inode = ino;
		return true;
	}
	return false;
}

static FILE *open_maps(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", maps_face(pid));
	return CAPS(fopen(path, "re"));
}

/* Does the process map a page of this session, and is it a stray? */
static void judge(const struct strays *t, pid_t pid, bool *maps_it, bool *stray)
{
	struct task_ids ids = { 0 };
	FILE *f = open_maps(pid);
	uint64_t inode;
	uint32_t dev;

	*maps_it = *stray = false;
	while (f && !*stray && next_named(f, &dev, &inode)) {
		const struct page_id *page = find_page(t, dev, inode);

		if (!page)
			continue;
		*maps_it = true;
		*stray = (task_read_ids(pid, &ids) && !memcmp(&ids, &page->ids, sizeof(ids))) ||
			 is_below_root(t, pid);
	}
	if (f)
		fclose(f);
}

static void add(pid_t **pids, size_t *n, pid_t pid)
{
	*pids = realloc(*pids, (*n + 1) * sizeof(**pids));
	if (!*pids)
		abort();
	(*pids)[(*n)++] = pid;
}

int strays_find(const struct strays *t, pid_t **pids, size_t *n, pid_t *other)
{
	pid_t *all;
	size_t total = t ? processes_all(&all) : 0;

	*pids = NULL;
	*n = 0;
	if (other)
		*other = 0;
	if (!t)
		return 0;
	for (size_t i = 0; i < total; i++) {
		pid_t pid = all[i];
		bool maps_it, stray;

		if (pid == getpid())
			continue;
		judge(t, pid, &maps_it, &stray);
		if (stray)
			add(pids, n, pid);
		else if (maps_it && other)
			*other = pid;
	}
	free(all);
	return total ? 0 : -SB_ESYS;
}

static bool looks_hooked(pid_t pid)
{
	struct space *space;
	FILE *f = open_maps(pid);
	uint64_t inode;
	uint32_t dev;
	bool named = f && next_named(f, &dev, &inode), hooked = false;

	if (f)
		fclose(f);
	if (!named || space_load(pid, &space, NULL) < 0)
		return false;
	hooked = space_holds(space);
	space_put(space);
	return hooked;
}

int strays_looking_hooked(pid_t **pids, size_t *n)
{
	pid_t *all;
	size_t total = processes_all(&all);

	*pids = NULL;
	*n = 0;
	for (size_t i = 0; i < total; i++)
		if (all[i] != getpid() && looks_hooked(all[i]))
			add(pids, n, all[i]);
	free(all);
	return total ? 0 : -SB_ESYS;
}
