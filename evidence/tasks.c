/* SPDX-License-Identifier: MIT */
#include "tasks.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

/* Where id is, or belongs. */
static size_t place_of(const struct tasks *t, pid_t id)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->id[mid] < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool has(const struct tasks *t, pid_t id)
{
	size_t at = place_of(t, id);

	return at < t->n && t->id[at] == id;
}

void tasks_add(struct tasks *t, pid_t id)
{
	size_t at = place_of(t, id);

	if (at < t->n && t->id[at] == id)
		return;
	t->id = must(reallocarray(t->id, t->n + 1, sizeof(*t->id)));
	memmove(t->id + at + 1, t->id + at, (t->n - at) * sizeof(*t->id));
	t->id[at] = id;
	t->n++;
}

void tasks_free(struct tasks *t)
{
	free(t->id);
	*t = (struct tasks){ 0 };
}

static void add_process(pid_t pid, bool children, struct tasks *seen, struct tasks *threads);

static void add_children(pid_t pid, pid_t tid, struct tasks *seen, struct tasks *threads)
{
	char path[96];
	int child;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &child) == 1)
		add_process(child, true, seen, threads);
	if (f)
		fclose(f);
}

static void add_process(pid_t pid, bool children, struct tasks *seen, struct tasks *threads)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;

	if (has(seen, pid))
		return;
	tasks_add(seen, pid);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		tasks_add(threads, tid);
		if (children)
			add_children(pid, tid, seen, threads);
	}
	if (dir)
		closedir(dir);
}

void tasks_threads(const struct tasks *processes, bool children, struct tasks *threads)
{
	struct tasks seen = { 0 };

	tasks_free(threads);
	for (size_t i = 0; i < processes->n; i++)
		add_process(processes->id[i], children, &seen, threads);
	tasks_free(&seen);
}

size_t tasks_missing(const struct tasks *all, const struct tasks *some)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += !has(some, all->id[i]);
	return n;
}
