/* SPDX-License-Identifier: MIT */
#include "cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cgroup-place.h"
#include "evidence.h"
#include "field.h"
#include "src/base/must.h"

enum { US = 1000 };

static const char *const controllers[CGROUP_HIERARCHIES] = {
	[CGROUP_V1_CPU] = "cpu", [CGROUP_V1_MEMORY] = "memory"
};

const char *const cgroup_names[CGROUP_COUNTERS] = {
	[CGROUP_PERIODS] = "cpu_periods",
	[CGROUP_THROTTLED_PERIODS] = "cpu_throttled_periods",
	[CGROUP_THROTTLED] = "cpu_throttled_ns",
	[CGROUP_CPU_PRESSURE] = "cpu_pressure_ns",
	[CGROUP_CPU_STALL] = "cpu_stall_ns",
	[CGROUP_MEMORY_PRESSURE] = "memory_pressure_ns",
	[CGROUP_MEMORY_STALL] = "memory_stall_ns",
	[CGROUP_IO_PRESSURE] = "io_pressure_ns",
	[CGROUP_IO_STALL] = "io_stall_ns",
	[CGROUP_MEMORY_HIGH] = "memory_high_events",
	[CGROUP_MEMORY_MAX] = "memory_max_events",
	[CGROUP_MEMORY_OOM] = "memory_oom_events",
	[CGROUP_OOM_KILLS] = "oom_kills",
	[CGROUP_FAULTS_MAJOR] = "page_faults_major",
	[CGROUP_REFAULTS_ANON] = "refault_anon_pages",
	[CGROUP_REFAULTS_FILE] = "refault_file_pages",
	[CGROUP_SWAP_IN] = "swap_in_pages",
	[CGROUP_SWAP_OUT] = "swap_out_pages",
	[CGROUP_MEMORY_CURRENT] = "memory_current_bytes",
	[CGROUP_SWAP_CURRENT] = "swap_current_bytes",
};

/* A line begins with `line` and a blank, and the number stands behind `key` or right there; without
 * `line` the file is the number. */
struct source {
	const char *file, *line, *key;
	unsigned int unit;
};

/* v1: the hierarchy of the controller, if that is mounted; `old` is where it has the number. */
static const struct row {
	enum evidence_group group;
	enum cgroup_hierarchy v1; /* CGROUP_V2: no controller, the number is always v2's */
	struct source now, old;
} rows[CGROUP_COUNTERS] = {
	[CGROUP_PERIODS] = { GROUP_TIME,
			     CGROUP_V1_CPU,
			     { "cpu.stat", "nr_periods", "", 1 },
			     { "cpu.stat", "nr_periods", "", 1 } },
	[CGROUP_THROTTLED_PERIODS] = { GROUP_TIME,
				       CGROUP_V1_CPU,
				       { "cpu.stat", "nr_throttled", "", 1 },
				       { "cpu.stat", "nr_throttled", "", 1 } },
	[CGROUP_THROTTLED] = { GROUP_TIME,
			       CGROUP_V1_CPU,
			       { "cpu.stat", "throttled_usec", "", US },
			       { "cpu.stat", "throttled_time", "", 1 } },
	[CGROUP_CPU_PRESSURE] = { GROUP_TIME,
				  CGROUP_V2,
				  { "cpu.pressure", "some", "total=", US },
				  { 0 } },
	[CGROUP_CPU_STALL] = { GROUP_TIME,
			       CGROUP_V2,
			       { "cpu.pressure", "full", "total=", US },
			       { 0 } },
	[CGROUP_MEMORY_PRESSURE] = { GROUP_FAULTS,
				     CGROUP_V2,
				     { "memory.pressure", "some", "total=", US },
				     { 0 } },
	[CGROUP_MEMORY_STALL] = { GROUP_FAULTS,
				  CGROUP_V2,
				  { "memory.pressure", "full", "total=", US },
				  { 0 } },
	[CGROUP_IO_PRESSURE] = { GROUP_IO,
				 CGROUP_V2,
				 { "io.pressure", "some", "total=", US },
				 { 0 } },
	[CGROUP_IO_STALL] = { GROUP_IO, CGROUP_V2, { "io.pressure", "full", "total=", US }, { 0 } },
	[CGROUP_MEMORY_HIGH] = { GROUP_FAULTS,
				 CGROUP_V1_MEMORY,
				 { "memory.events", "high", "", 1 },
				 { 0 } },
	[CGROUP_MEMORY_MAX] = { GROUP_FAULTS,
				CGROUP_V1_MEMORY,
				{ "memory.events", "max", "", 1 },
				{ "memory.failcnt", NULL, "", 1 } },
	[CGROUP_MEMORY_OOM] = { GROUP_FAULTS,
				CGROUP_V1_MEMORY,
				{ "memory.events", "oom", "", 1 },
				{ 0 } },
	[CGROUP_OOM_KILLS] = { GROUP_FAULTS,
			       CGROUP_V1_MEMORY,
			       { "memory.events", "oom_kill", "", 1 },
			       { "memory.oom_control", "oom_kill", "", 1 } },
	[CGROUP_FAULTS_MAJOR] = { GROUP_FAULTS,
				  CGROUP_V1_MEMORY,
				  { "memory.stat", "pgmajfault", "", 1 },
				  { "memory.stat", "total_pgmajfault", "", 1 } },
	[CGROUP_REFAULTS_ANON] = { GROUP_FAULTS,
				   CGROUP_V1_MEMORY,
				   { "memory.stat", "workingset_refault_anon", "", 1 },
				   { "memory.stat", "total_workingset_refault_anon", "", 1 } },
	[CGROUP_REFAULTS_FILE] = { GROUP_FAULTS,
				   CGROUP_V1_MEMORY,
				   { "memory.stat", "workingset_refault_file", "", 1 },
				   { "memory.stat", "total_workingset_refault_file", "", 1 } },
	[CGROUP_SWAP_IN] = { GROUP_FAULTS,
			     CGROUP_V1_MEMORY,
			     { "memory.stat", "pswpin", "", 1 },
			     { "memory.stat", "total_pswpin", "", 1 } },
	[CGROUP_SWAP_OUT] = { GROUP_FAULTS,
			      CGROUP_V1_MEMORY,
			      { "memory.stat", "pswpout", "", 1 },
			      { "memory.stat", "total_pswpout", "", 1 } },
	[CGROUP_MEMORY_CURRENT] = { GROUP_FAULTS,
				    CGROUP_V1_MEMORY,
				    { "memory.current", NULL, "", 1 },
				    { "memory.usage_in_bytes", NULL, "", 1 } },
	[CGROUP_SWAP_CURRENT] = { GROUP_FAULTS,
				  CGROUP_V1_MEMORY,
				  { "memory.swap.current", NULL, "", 1 },
				  { "memory.stat", "total_swap", "", 1 } },
};

struct cgroup {
	unsigned int groups;
	char *dir[CGROUP_HIERARCHIES]; /* NULL: not visible here */
	char *path;
	struct cgroup_values base;
};

static int read_one(const char *dir, const struct source *s, uint64_t *value)
{
	char *path;
	int why;

	if (asprintf(&path, "%s/%s", dir, s->file) < 0)
		abort();
	why = field_read(path, s->line, s->key, value);
	free(path);
	*value *= s->unit;
	return why == ENODATA ? CGROUP_LACKS : why;
}

static bool is_old(const struct cgroup *g, const struct row *row)
{
	return row->v1 != CGROUP_V2 && g->dir[row->v1];
}

static int read_row(const struct cgroup *g, const struct row *row, uint64_t *value)
{
	bool old = is_old(g, row);
	const char *dir = g->dir[old ? row->v1 : CGROUP_V2];

	if (!(g->groups & 1u << row->group))
		return CGROUP_UNASKED;
	if (!dir)
		return CGROUP_NOWHERE;
	if (old && !row->old.file)
		return CGROUP_OLD;
	return read_one(dir, old ? &row->old : &row->now, value);
}

static void read_all(const struct cgroup *g, struct cgroup_values *values)
{
	*values = (struct cgroup_values){ 0 };
	for (int c = 0; c < CGROUP_COUNTERS; c++)
		values->why[c] = read_row(g, &rows[c], &values->of[c]);
}

/* ---- the group ---- */

/* Those whose numbers are read. */
static void make_path(struct cgroup *g)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);
	const char *before = "";

	if (!to)
		abort();
	for (int h = CGROUP_HIERARCHIES - 1; h >= 0; h--) {
		if (g->dir[h])
			fprintf(to, "%s%s", before, g->dir[h]);
		before = g->dir[h] ? ", " : before;
	}
	fclose(to);
	g->path = text;
}

struct cgroup *cgroup_open(pid_t pid, unsigned int groups)
{
	char *dir[CGROUP_HIERARCHIES] = { NULL };
	struct cgroup_place place;
	struct cgroup *g;

	for (int h = 0; h < CGROUP_HIERARCHIES; h++)
		if (cgroup_find(pid, controllers[h], &place) &&
		    asprintf(&dir[h], "%s%s", place.mount, place.below) < 0)
			abort();
	g = cgroup_open_at((const char *const *)dir, groups);
	for (int h = 0; h < CGROUP_HIERARCHIES; h++)
		free(dir[h]);
	return g;
}

struct cgroup *cgroup_open_at(const char *const dir[CGROUP_HIERARCHIES], unsigned int groups)
{
	struct cgroup *g = must_calloc(1, sizeof(*g));

	g->groups = groups;
	for (int h = 0; h < CGROUP_HIERARCHIES; h++)
		g->dir[h] = dir[h] ? must_strdup(dir[h]) : NULL;
	make_path(g);
	read_all(g, &g->base);
	return g;
}

void cgroup_close(struct cgroup *g)
{
	if (!g)
		return;
	for (int h = 0; h < CGROUP_HIERARCHIES; h++)
		free(g->dir[h]);
	free(g->path);
	free(g);
}

const char *cgroup_path(const struct cgroup *g)
{
	return g->path;
}

void cgroup_take(const struct cgroup *g, struct cgroup_values *values)
{
	read_all(g, values);
	for (int c = 0; c < CGROUP_MEMORY_CURRENT; c++) {
		if (g->base.why[c])
			values->why[c] = g->base.why[c];
		if (values->why[c] || values->of[c] < g->base.of[c])
			values->of[c] = 0;
		else
			values->of[c] -= g->base.of[c];
	}
}

const char *cgroup_unknown(const struct cgroup *g, enum cgroup_counter c, int why, char *buf,
			   size_t size)
{
	const struct row *row = &rows[c];
	const char *file = is_old(g, row) ? row->old.file : row->now.file;

	if (why == CGROUP_UNASKED)
		snprintf(buf, size, "its group is not in --evidence=GROUPS");
	else if (why == CGROUP_NOWHERE)
		snprintf(buf, size, "the control group is not visible here: %s",
			 row->v1 == CGROUP_V2 ? "it takes cgroup v2" :
						"no mounted hierarchy has the controller");
	else if (why == CGROUP_OLD)
		snprintf(buf, size, "not on this machine: the controller is of cgroup v1");
	else if (why == CGROUP_LACKS)
		snprintf(buf, size, "not on this machine: the control group's %s does not have it",
			 file);
	else
		snprintf(buf, size, "the control group's %s: %s%s", file, strerror(why),
			 why == ENOENT ? ": it is the root, its controller is not enabled, or the "
					 "group is gone" :
					 "");
	return buf;
}
