/* SPDX-License-Identifier: MIT */
#include "proc.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "now.h"
#include "src/base/must.h"

struct thread {
	pid_t pid, tid;
	uint64_t first_ns, last_ns; /* when it was looked at */
	uint64_t start;		    /* field 22 of its stat: tells apart threads of one number */
	struct evidence_values base, now;
	bool seen; /* in this look */
};

struct evidence_proc {
	bool children;
	pid_t *pid;
	size_t n_pids;
	struct thread *thread;
	size_t n_threads;
	struct evidence_values ended;
	uint64_t n_ended;
};

/* Kernels without CONFIG_TASK_IO_ACCOUNTING do not have it. */
static bool has_io(void)
{
	static int has = -1;

	if (has < 0)
		has = access("/proc/thread-self/io", F_OK) == 0;
	return has;
}

bool evidence_proc_knows(enum evidence_counter counter)
{
	switch (counter) {
	case EVIDENCE_ON_CPU:
	case EVIDENCE_RUN_QUEUE:
	case EVIDENCE_VOLUNTARY:
	case EVIDENCE_INVOLUNTARY:
	case EVIDENCE_FAULTS_MINOR:
	case EVIDENCE_FAULTS_MAJOR:
		return true;
	case EVIDENCE_READ_CALLS:
	case EVIDENCE_WRITE_CALLS:
	case EVIDENCE_READ_BYTES:
	case EVIDENCE_WRITE_BYTES:
	case EVIDENCE_DISK_READ_BYTES:
	case EVIDENCE_DISK_WRITE_BYTES:
		return has_io();
	default:
		return false;
	}
}

struct evidence_proc *evidence_proc_open(bool children)
{
	struct evidence_proc *p = must_calloc(1, sizeof(*p));

	p->children = children;
	return p;
}

void evidence_proc_close(struct evidence_proc *p)
{
	if (!p)
		return;
	free(p->pid);
	free(p->thread);
	free(p);
}

/* ---- one thread ---- */

static FILE *file_of(pid_t pid, pid_t tid, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	return fopen(path, "re");
}

static bool read_schedstat(pid_t pid, pid_t tid, struct evidence_values *v)
{
	unsigned long long run = 0, wait = 0;
	FILE *f = file_of(pid, tid, "schedstat");
	bool ok = f && fscanf(f, "%llu %llu", &run, &wait) == 2;

	if (f)
		fclose(f);
	v->of[EVIDENCE_ON_CPU] = run;
	v->of[EVIDENCE_RUN_QUEUE] = wait;
	return ok;
}

static bool read_switches(pid_t pid, pid_t tid, struct evidence_values *v)
{
	FILE *f = file_of(pid, tid, "status");
	unsigned long long n;
	char line[256];
	int found = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &n) == 1) {
			v->of[EVIDENCE_VOLUNTARY] = n;
			found++;
		} else if (sscanf(line, "nonvoluntary_ctxt_switches: %llu", &n) == 1) {
			v->of[EVIDENCE_INVOLUNTARY] = n;
			found++;
		}
	}
	if (f)
		fclose(f);
	return found == 2;
}

/* Its name, in parentheses, may hold anything: the fields begin behind the last one. */
static bool read_stat(pid_t pid, pid_t tid, struct evidence_values *v, uint64_t *start)
{
	unsigned long long minor = 0, major = 0, began = 0;
	FILE *f = file_of(pid, tid, "stat");
	char text[1024];
	const char *at;
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = '\0';
	at = strrchr(text, ')');
	if (!at || sscanf(at,
			  ") %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu %*u %*u %*u %*d %*d "
			  "%*d %*d %*d %*d %llu",
			  &minor, &major, &began) != 3)
		return false;
	v->of[EVIDENCE_FAULTS_MINOR] = minor;
	v->of[EVIDENCE_FAULTS_MAJOR] = major;
	*start = began;
	return true;
}

static bool read_io(pid_t pid, pid_t tid, struct evidence_values *v)
{
	unsigned long long n[6];
	FILE *f = file_of(pid, tid, "io");
	bool ok = f && fscanf(f,
			      "rchar: %llu wchar: %llu syscr: %llu syscw: %llu read_bytes: %llu "
			      "write_bytes: %llu",
			      &n[0], &n[1], &n[2], &n[3], &n[4], &n[5]) == 6;

	if (f)
		fclose(f);
	if (!ok)
		return false;
	v->of[EVIDENCE_READ_BYTES] = n[0];
	v->of[EVIDENCE_WRITE_BYTES] = n[1];
	v->of[EVIDENCE_READ_CALLS] = n[2];
	v->of[EVIDENCE_WRITE_CALLS] = n[3];
	v->of[EVIDENCE_DISK_READ_BYTES] = n[4];
	v->of[EVIDENCE_DISK_WRITE_BYTES] = n[5];
	return true;
}

static struct thread *find(struct evidence_proc *p, pid_t tid, uint64_t start)
{
	for (size_t i = 0; i < p->n_threads; i++)
		if (p->thread[i].tid == tid && p->thread[i].start == start)
			return &p->thread[i];
	return NULL;
}

static void look_at_thread(struct evidence_proc *p, pid_t pid, pid_t tid)
{
	struct evidence_values v = { 0 };
	struct thread *t;
	uint64_t start, now = evidence_now_ns();

	if (!read_stat(pid, tid, &v, &start) || !read_schedstat(pid, tid, &v) ||
	    !read_switches(pid, tid, &v) || (has_io() && !read_io(pid, tid, &v)))
		return;
	t = find(p, tid, start);
	if (!t) {
		p->thread = must(reallocarray(p->thread, p->n_threads + 1, sizeof(*p->thread)));
		t = &p->thread[p->n_threads++];
		*t = (struct thread){
			.pid = pid, .tid = tid, .first_ns = now, .start = start, .base = v
		};
	}
	t->now = v;
	t->last_ns = now;
	t->seen = true;
}

/* ---- the tree ---- */

static void enter(struct evidence_proc *p, pid_t pid)
{
	for (size_t i = 0; i < p->n_pids; i++)
		if (p->pid[i] == pid)
			return;
	p->pid = must(reallocarray(p->pid, p->n_pids + 1, sizeof(*p->pid)));
	p->pid[p->n_pids++] = pid;
}

/* Where the kernel lists no children (CONFIG_PROC_CHILDREN), none are found. */
static void enter_children(struct evidence_proc *p, pid_t pid, pid_t tid)
{
	FILE *f = p->children ? file_of(pid, tid, "children") : NULL;
	int child;

	while (f && fscanf(f, "%d", &child) == 1)
		enter(p, child);
	if (f)
		fclose(f);
}

static void look_at_process(struct evidence_proc *p, pid_t pid)
{
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		look_at_thread(p, pid, tid);
		enter_children(p, pid, tid);
	}
	if (dir)
		closedir(dir);
}

static void of_thread(const struct thread *t, struct evidence_thread *out)
{
	*out = (struct evidence_thread){ .pid = t->pid,
					 .tid = t->tid,
					 .began_ns = t->first_ns,
					 .t_ns = t->last_ns,
					 .span_ns = t->last_ns - t->first_ns,
					 .values = t->now };
	evidence_values_take(&out->values, &t->base);
}

void evidence_proc_add(struct evidence_proc *p, pid_t pid)
{
	enter(p, pid);
	look_at_process(p, pid);
}

uint64_t evidence_proc_lost(const struct evidence_proc *p)
{
	return p->n_ended;
}

void evidence_proc_take(struct evidence_proc *p, struct evidence_reading *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n_threads; i++)
		p->thread[i].seen = false;
	for (size_t i = 0; i < p->n_pids; i++) /* grows meanwhile */
		look_at_process(p, p->pid[i]);
	r->t_ns = evidence_now_ns();
	r->thread = must_calloc(p->n_threads, sizeof(*r->thread));
	for (size_t i = 0; i < p->n_threads; i++) {
		struct evidence_thread out;

		of_thread(&p->thread[i], &out);
		if (!p->thread[i].seen) {
			p->n_ended++;
			evidence_values_add(&p->ended, &out.values);
			continue;
		}
		p->thread[kept++] = p->thread[i];
		r->thread[r->n_threads++] = out;
		evidence_values_add(&r->sum, &out.values);
	}
	p->n_threads = kept;
	evidence_values_add(&r->sum, &p->ended);
}
