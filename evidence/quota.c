/* SPDX-License-Identifier: MIT */
#include "quota.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cgroup-place.h"
#include "src/base/must.h"

struct group {
	char *dir;
	struct quota_use base;
};

struct quota {
	struct group *group;
	size_t n;
};

/* ---- one group ---- */

static bool read_stat(const char *dir, struct quota_use *use)
{
	unsigned long long n;
	char path[PATH_MAX], line[128];
	int found = 0;
	FILE *f;

	*use = (struct quota_use){ 0 };
	if (snprintf(path, sizeof(path), "%s/cpu.stat", dir) >= (int)sizeof(path))
		return false;
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "nr_periods %llu", &n) == 1)
			use->periods = n, found++;
		else if (sscanf(line, "nr_throttled %llu", &n) == 1)
			use->used_up = n, found++;
		else if (sscanf(line, "throttled_time %llu", &n) == 1)
			use->ns = n, found++;
		else if (sscanf(line, "throttled_usec %llu", &n) == 1)
			use->ns = n * 1000, found++;
	}
	if (f)
		fclose(f);
	return found == 3;
}

static void add_group(struct quota *q, const char *dir)
{
	struct group g;

	for (size_t i = 0; i < q->n; i++)
		if (strcmp(q->group[i].dir, dir) == 0)
			return;
	if (!read_stat(dir, &g.base))
		return;
	g.dir = must_strdup(dir);
	q->group = must(reallocarray(q->group, q->n + 1, sizeof(*q->group)));
	q->group[q->n++] = g;
}

/* The group and all above it: a quota holds for what is below. */
static void add_groups(struct quota *q, const char *mount, const char *below)
{
	char dir[PATH_MAX], *slash;
	size_t least = strlen(mount);

	if (snprintf(dir, sizeof(dir), "%s%s", mount, below) >= (int)sizeof(dir))
		return;
	while (strlen(dir) > least) {
		add_group(q, dir);
		slash = strrchr(dir, '/');
		*slash = '\0';
	}
	add_group(q, mount);
}

/* v2's, and that of v1 that has the controller. */
static void add_process(struct quota *q, pid_t pid)
{
	static const char *const hierarchies[] = { NULL, "cpu" };
	struct cgroup_place place;

	for (size_t i = 0; i < 2; i++)
		if (cgroup_find(pid, hierarchies[i], &place))
			add_groups(q, place.mount, place.below);
}

struct quota *quota_open(const pid_t *pid, size_t n)
{
	struct quota *q = must_calloc(1, sizeof(*q));

	for (size_t i = 0; i < n; i++)
		add_process(q, pid[i]);
	return q;
}

void quota_close(struct quota *q)
{
	if (!q)
		return;
	for (size_t i = 0; i < q->n; i++)
		free(q->group[i].dir);
	free(q->group);
	free(q);
}

bool quota_take(const struct quota *q, struct quota_use *use)
{
	const char *group = NULL;
	struct quota_use now;

	*use = (struct quota_use){ 0 };
	for (size_t i = 0; i < q->n; i++) {
		const struct group *g = &q->group[i];

		if (!read_stat(g->dir, &now) || now.used_up - g->base.used_up <= use->used_up ||
		    now.used_up < g->base.used_up)
			continue;
		*use = (struct quota_use){ .periods = now.periods - g->base.periods,
					   .used_up = now.used_up - g->base.used_up,
					   .ns = now.ns - g->base.ns };
		group = g->dir;
	}
	use->group = group ? must_strdup(group) : NULL;
	return group != NULL;
}
