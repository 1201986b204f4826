/* SPDX-License-Identifier: MIT */
/*
 * Which threads are at work at the same instant: lane.h says what for. A thread that runs, waits
 * for a processor, reads a disk or sleeps for a set time is at work. One that waits in futex()
 * waits for another thread. What another system call waits for is not known: a socket may be that
 * of the next request, or of an answer that the item needs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include "inject/clock.h"
#include "read.h"
#include "src/base/caps.h"
#include "src/base/must.h"
#include "src/session/processes.h"

#define MS 1000000ull

enum {
	SCAN_MOST = 256, /* threads; of more nothing is known */
	SCAN_LEAST_MS = 5,
	SCAN_SHARE = 100, /* looking takes one part in so many of the time */
};

enum work { WORK_NONE, WORK_PERHAPS, WORK_SURELY };

/* Threads are looked at together, and counted by sets: set 0 is that of all treated targets, those
 * after it are of the parts of a shared window. */
enum { SCAN_SETS = 64 };

struct scanned {
	pid_t pid, tid;
	size_t role;
	uint64_t sets; /* a bit each */
	enum work work;
	bool changed, hands_on;
};

struct sweep_scan {
	struct scanned thread[SCAN_MOST];
	size_t n, n_sets;
	uint64_t due_ns;
	struct lane_scan *role; /* [set * n_roles + role] */
	size_t n_roles;
};

static struct scanned *find(struct sweep_scan *scan, pid_t tid)
{
	for (size_t i = 0; i < scan->n; i++)
		if (scan->thread[i].tid == tid)
			return &scan->thread[i];
	return NULL;
}

/* False: too many, or one without a name. */
static bool add(struct sweep_scan *scan, const struct sweep_row *row, size_t role, uint64_t sets,
		bool hands_on)
{
	struct scanned *t = row->tid ? find(scan, row->tid) : NULL;

	if (!row->tid || (!t && scan->n == SCAN_MOST))
		return false;
	if (!t) {
		t = &scan->thread[scan->n++];
		*t = (struct scanned){
			.pid = row->pid, .tid = row->tid, .role = role, .hands_on = hands_on
		};
	}
	t->sets |= sets;
	return true;
}

/* Of a treated target. */
static uint64_t sets_of(const struct sweep_scan *scan, const struct drive *drive, size_t target)
{
	uint64_t sets = 1;

	for (size_t i = 1; i < scan->n_sets; i++)
		if (drive_part_treated(drive, i - 1)[target])
			sets |= 1ull << i;
	return sets;
}

/* Rows are sorted; *at goes along with them. */
static bool grew(const struct sweep_reading *before, size_t *at, const struct sweep_row *row)
{
	while (*at < before->n_rows && sweep_row_order(&before->row[*at], row) < 0)
		++*at;
	if (*at == before->n_rows || sweep_row_order(&before->row[*at], row))
		return row->hits > 0;
	return row->hits > before->row[*at].hits;
}

struct sweep_scan *sweep_scan_begin(struct sweep_reader *reader, struct drive *drive,
				    const struct sweep_reading *before,
				    const struct sweep_reading *r)
{
	const bool *treated = drive_treated(drive);
	struct sweep_scan *scan = must_calloc(1, sizeof(*scan));
	bool whole = true;
	size_t at = 0;

	scan->n_sets = 1 + drive_parts(drive) < SCAN_SETS ? 1 + drive_parts(drive) : SCAN_SETS;
	for (size_t i = 0; i < r->n_rows && whole; i++) {
		const struct sweep_row *row = &r->row[i];
		size_t role;

		if (!row->pid || row->target >= drive_targets(drive) || !treated[row->target] ||
		    !grew(before, &at, row))
			continue;
		role = drive_role(drive, sweep_role_of(reader, row->pid));
		scan->n_roles = role >= scan->n_roles ? role + 1 : scan->n_roles;
		whole = add(scan, row, role, sets_of(scan, drive, row->target),
			    sweep_hands_on(reader, row->pid));
	}
	if (!whole || scan->n < 2)
		scan->n = 0;
	scan->role = must_calloc(scan->n_sets * scan->n_roles, sizeof(*scan->role));
	scan->due_ns = clock_ns() + SCAN_LEAST_MS * MS / 2;
	return scan;
}

static bool read_file(pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
	return CAPS(processes_thread_file(pid, tid, name, buf, size));
}

/* R, S, D, ...; X: it has ended. */
static char state_of(const struct scanned *t)
{
	char buf[256];
	const char *end;

	if (!read_file(t->pid, t->tid, "stat", buf, sizeof(buf)))
		return 'X';
	end = strrchr(buf, ')');
	return end && end[1] == ' ' && end[2] ? end[2] : 'X';
}

static enum work waits_in(const struct scanned *t)
{
	char buf[256], *end;
	long nr;

	if (!read_file(t->pid, t->tid, "syscall", buf, sizeof(buf)))
		return WORK_PERHAPS;
	nr = strtol(buf, &end, 10);
	if (end == buf) /* "running" */
		return WORK_SURELY;
	if (nr == SYS_futex)
		return WORK_NONE;
	return nr == SYS_nanosleep || nr == SYS_clock_nanosleep ? WORK_SURELY : WORK_PERHAPS;
}

static enum work work_of(const struct scanned *t)
{
	char state = state_of(t);

	if (state == 'R' || state == 'D')
		return WORK_SURELY;
	return state == 'S' ? waits_in(t) : WORK_NONE;
}

/* Did one that was taken for running stop since, or the reverse? */
static bool changed(const struct scanned *t)
{
	char state = state_of(t);

	return state == 'R' ? t->work != WORK_SURELY : state == 'X';
}

static void count(struct sweep_scan *scan, size_t set, size_t role)
{
	double surely = 0, perhaps = 0;
	bool unsteady = false;

	for (size_t i = 0; i < scan->n; i++) {
		const struct scanned *t = &scan->thread[i];

		if (!(t->sets >> set & 1))
			continue;
		unsteady |= t->changed || t->hands_on;
		surely += t->role == role && t->work == WORK_SURELY;
		perhaps += t->role == role && t->work != WORK_NONE;
	}
	lane_scan_add(&scan->role[set * scan->n_roles + role],
		      &(struct lane_scan){ .n = 1,
					   .unsteady = unsteady,
					   .surely = surely,
					   .surely2 = surely * surely,
					   .perhaps = perhaps,
					   .perhaps2 = perhaps * perhaps });
}

void sweep_scan_look(struct sweep_scan *scan, uint64_t now_ns)
{
	uint64_t took;

	if (!scan->n || now_ns < scan->due_ns)
		return;
	for (size_t i = 0; i < scan->n; i++)
		scan->thread[i].work = work_of(&scan->thread[i]);
	for (size_t i = 0; i < scan->n; i++)
		scan->thread[i].changed = changed(&scan->thread[i]);
	for (size_t set = 0; set < scan->n_sets; set++)
		for (size_t r = 0; r < scan->n_roles; r++)
			count(scan, set, r);
	took = clock_ns() - now_ns;
	scan->due_ns = now_ns + (SCAN_SHARE * took > SCAN_LEAST_MS * MS ? SCAN_SHARE * took :
									  SCAN_LEAST_MS * MS);
}

const struct lane_scan *sweep_scan_seen(const struct sweep_scan *scan, size_t part, size_t *n)
{
	size_t set = part == SWEEP_SCAN_ALL ? 0 : part + 1, threads = 0;

	for (size_t i = 0; i < scan->n && set < scan->n_sets; i++)
		threads += scan->thread[i].sets >> set & 1;
	*n = threads < 2 ? 0 : scan->n_roles;
	return set < scan->n_sets ? scan->role + set * scan->n_roles : NULL;
}

void sweep_scan_end(struct sweep_scan *scan)
{
	if (scan)
		free(scan->role);
	free(scan);
}
