/* SPDX-License-Identifier: MIT */
/* The names of a trace that is read: each is handed on once, and there may be so many. */
#include "read-priv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "src/base/must.h"

enum {
	FUNCTIONS_MAX = 1 << 19,
	THREADS_MAX = 1 << 18,
	PROCESSES_MAX = 1 << 18,
	NAMES_BYTES_MAX = 64 << 20,
};

/* 36 years in ns. No clock says more, and sums of three do not overflow. */
#define TIME_MAX ((uint64_t)1 << 60)

/* Numbers of entries by the hash of their keys. */
struct table {
	uint32_t *slot;
	size_t n, room;
};

struct function {
	uint64_t hash;
	enum trace_code code;
	char *name, *module;
};

struct thread {
	uint64_t key;
	int32_t pid, tid;
	char *name;
};

struct process {
	int32_t pid;
	char *name;
};

struct decls {
	struct table functions, threads, processes;
	struct function *function;
	struct thread *thread;
	struct process *process;
	size_t bytes;
	uint64_t seed;
};

/* Keys come from the file: a file cannot know which of them collide. */
struct decls *decl_new(void)
{
	struct decls *names = must_calloc(1, sizeof(*names));
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	names->seed = ((uint64_t)now.tv_nsec << 32 ^ (uintptr_t)names) | 1;
	return names;
}

void decl_free(struct decls *names)
{
	for (size_t i = 0; i < names->functions.n; i++) {
		free(names->function[i].name);
		free(names->function[i].module);
	}
	for (size_t i = 0; i < names->threads.n; i++)
		free(names->thread[i].name);
	for (size_t i = 0; i < names->processes.n; i++)
		free(names->process[i].name);
	free(names->functions.slot);
	free(names->threads.slot);
	free(names->processes.slot);
	free(names->function);
	free(names->thread);
	free(names->process);
	free(names);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	if (!text)
		return mix(hash, 1);
	for (; *text; text++)
		hash = mix(hash, (unsigned char)*text + 2u);
	return hash;
}

/* The first slot for a hash; the caller goes on to the next ones. */
static size_t slot_of(const struct table *table, uint64_t hash)
{
	return (hash ^ hash >> 32) & (table->room - 1);
}

static void insert(struct table *table, size_t i, uint64_t hash)
{
	size_t slot = slot_of(table, hash);

	while (table->slot[slot])
		slot = (slot + 1) & (table->room - 1);
	table->slot[slot] = (uint32_t)i + 1;
}

/* Entries are as many as half the slots at most. True: the slots must be filled again. */
static bool widen(struct table *table)
{
	if (table->n * 2 < table->room)
		return false;
	table->room = table->room ? table->room * 2 : 64;
	free(table->slot);
	table->slot = must_calloc(table->room, sizeof(*table->slot));
	return true;
}

static int too_many(struct reader *r, const char *what, size_t most)
{
	err_set(r->err, SB_EFILE, "'%s': more than %zu %s", r->name, most, what);
	err_hint(r->err, "this is no trace that sbinject can have written");
	return -SB_EFILE;
}

/* A copy of a text, off the account. A negative code: it is empty. */
static int keep(struct reader *r, const char *text, char **copy)
{
	size_t n = text ? strlen(text) + 1 : 0;

	*copy = NULL;
	if (r->names->bytes + n > NAMES_BYTES_MAX)
		return too_many(r, "bytes of names", NAMES_BYTES_MAX);
	r->names->bytes += n;
	*copy = text ? must_strdup(text) : NULL;
	return 0;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

int decl_about(struct reader *r, const struct trace_about *about)
{
	struct trace_about known = *about;

	if (r->about_given)
		return 0;
	r->about_given = true;
	r->begin_ns = known.begin_ns = about->begin_ns < TIME_MAX ? about->begin_ns : 0;
	return r->sink->about ? r->sink->about(r->ctx, &known) : 0;
}

/* A file that begins without a description of itself. */
static int about_none(struct reader *r)
{
	static const struct trace_about none;

	return decl_about(r, &none);
}

/* ---- processes ---- */

static uint64_t process_hash(const struct decls *names, int32_t pid)
{
	return mix(names->seed, (uint32_t)pid);
}

static struct process *process_of(struct decls *names, int32_t pid)
{
	struct table *table = &names->processes;
	size_t slot = table->room ? slot_of(table, process_hash(names, pid)) : 0;

	for (; table->room && table->slot[slot]; slot = (slot + 1) & (table->room - 1))
		if (names->process[table->slot[slot] - 1].pid == pid)
			return &names->process[table->slot[slot] - 1];
	return NULL;
}

static struct process *add_process(struct decls *names, int32_t pid)
{
	struct table *table = &names->processes;

	if (widen(table)) {
		names->process = must_realloc(names->process,
					      table->room / 2 * sizeof(*names->process));
		for (size_t i = 0; i < table->n; i++)
			insert(table, i, process_hash(names, names->process[i].pid));
	}
	names->process[table->n] = (struct process){ .pid = pid };
	insert(table, table->n, process_hash(names, pid));
	return &names->process[table->n++];
}

/* Takes over a new name. 1: it changed. */
static int rename_to(struct reader *r, char **old, const char *name)
{
	char *copy;
	int ret;

	if (same(*old, name))
		return 0;
	ret = keep(r, name, &copy);
	if (ret < 0)
		return ret;
	r->names->bytes -= *old ? strlen(*old) + 1 : 0;
	free(*old);
	*old = copy;
	return 1;
}

int decl_process(struct reader *r, int32_t pid, const char *name, bool named)
{
	struct process *p = process_of(r->names, pid);
	struct trace_process process = { .pid = pid };
	int changed = !p, ret;

	if (!p && r->names->processes.n == PROCESSES_MAX)
		return too_many(r, "processes", PROCESSES_MAX);
	p = p ? p : add_process(r->names, pid);
	if (named) {
		ret = rename_to(r, &p->name, name);
		if (ret < 0)
			return ret;
		changed |= ret;
	}
	process.name = p->name;
	if (!changed)
		return 0;
	ret = about_none(r);
	if (ret < 0)
		return ret;
	return r->sink->process ? r->sink->process(r->ctx, &process) : 0;
}

/* ---- threads ---- */

static uint64_t thread_hash(const struct decls *names, int32_t pid, uint64_t key)
{
	return mix(mix(names->seed, (uint32_t)pid), key);
}

static struct thread *thread_of(struct decls *names, int32_t pid, uint64_t key)
{
	struct table *table = &names->threads;
	size_t slot = table->room ? slot_of(table, thread_hash(names, pid, key)) : 0;

	for (; table->room && table->slot[slot]; slot = (slot + 1) & (table->room - 1)) {
		struct thread *t = &names->thread[table->slot[slot] - 1];

		if (t->pid == pid && t->key == key)
			return t;
	}
	return NULL;
}

static struct thread *add_thread(struct decls *names, int32_t pid, uint64_t key, int32_t tid)
{
	struct table *table = &names->threads;

	if (widen(table)) {
		names->thread = must_realloc(names->thread,
					     table->room / 2 * sizeof(*names->thread));
		for (size_t i = 0; i < table->n; i++)
			insert(table, i,
			       thread_hash(names, names->thread[i].pid, names->thread[i].key));
	}
	names->thread[table->n] = (struct thread){ .key = key, .pid = pid, .tid = tid };
	insert(table, table->n, thread_hash(names, pid, key));
	return &names->thread[table->n++];
}

int decl_thread(struct reader *r, int32_t pid, uint64_t key, int32_t tid, const char *name,
		bool named, uint32_t *id)
{
	struct thread *t = thread_of(r->names, pid, key);
	struct trace_thread thread = { .pid = pid };
	int changed = !t;

	if (!t) {
		int ret = decl_process(r, pid, NULL, false);

		if (ret < 0)
			return ret;
		if (r->names->threads.n == THREADS_MAX)
			return too_many(r, "threads", THREADS_MAX);
		t = add_thread(r->names, pid, key, tid);
	}
	if (named) {
		int ret = rename_to(r, &t->name, name);

		if (ret < 0)
			return ret;
		changed |= ret | (t->tid != tid);
		t->tid = tid;
	}
	*id = (uint32_t)(t - r->names->thread) + 1;
	thread.id = *id;
	thread.tid = t->tid;
	thread.name = t->name;
	return changed && r->sink->thread ? r->sink->thread(r->ctx, &thread) : 0;
}

/* ---- functions ---- */

static struct function *function_of(struct decls *names, const struct function *like)
{
	struct table *table = &names->functions;
	size_t slot = table->room ? slot_of(table, like->hash) : 0;

	for (; table->room && table->slot[slot]; slot = (slot + 1) & (table->room - 1)) {
		struct function *f = &names->function[table->slot[slot] - 1];

		if (f->hash == like->hash && f->code == like->code && same(f->name, like->name) &&
		    same(f->module, like->module))
			return f;
	}
	return NULL;
}

static int add_function(struct reader *r, const struct function *like)
{
	struct decls *names = r->names;
	struct table *table = &names->functions;
	struct function *f;

	if (table->n == FUNCTIONS_MAX)
		return too_many(r, "functions", FUNCTIONS_MAX);
	if (widen(table)) {
		names->function = must_realloc(names->function,
					       table->room / 2 * sizeof(*names->function));
		for (size_t i = 0; i < table->n; i++)
			insert(table, i, names->function[i].hash);
	}
	f = &names->function[table->n];
	*f = (struct function){ .hash = like->hash, .code = like->code };
	insert(table, table->n++, like->hash);
	return keep(r, like->name, &f->name) < 0 || keep(r, like->module, &f->module) < 0 ?
		       -SB_EFILE :
		       0;
}

int decl_function(struct reader *r, enum trace_code code, const char *name, const char *module,
		  uint32_t *id)
{
	struct function like = { .code = code, .name = (char *)name, .module = (char *)module };
	struct trace_function function = { .code = code, .name = name, .module = module };
	struct function *f;
	int ret;

	like.hash = mix_text(mix_text(mix(r->names->seed, code), name), module);
	f = function_of(r->names, &like);
	if (f) {
		*id = (uint32_t)(f - r->names->function) + 1;
		return 0;
	}
	ret = about_none(r);
	if (ret < 0)
		return ret;
	ret = add_function(r, &like);
	*id = function.id = (uint32_t)r->names->functions.n;
	if (ret < 0)
		return ret;
	return r->sink->function ? r->sink->function(r->ctx, &function) : 0;
}

/* ---- spans ---- */

void decl_value(struct trace_span *span, struct trace_value *room, const char *name,
		const struct trace_value *value)
{
	span->value = room;
	if (span->n_values == VALUE_MAX || !value_name_ok(name, strlen(name)) ||
	    value_name_taken(name))
		return;
	for (uint32_t i = 0; i < span->n_values; i++)
		if (!strcmp(room[i].name, name))
			return;
	room[span->n_values] = *value;
	stpcpy(room[span->n_values++].name, name);
}

int decl_span(struct reader *r, const struct trace_span *span)
{
	if (span->start_ns - r->begin_ns > TIME_MAX || span->dur_ns > TIME_MAX) {
		r->reading->skipped++;
		return 0;
	}
	r->reading->spans++;
	return r->sink->span ? r->sink->span(r->ctx, span) : 0;
}

int decl_end(struct reader *r, const struct trace_end *end)
{
	if (r->reading->ended)
		return 0;
	r->reading->ended = true;
	return r->sink->end ? r->sink->end(r->ctx, end) : 0;
}
