/* SPDX-License-Identifier: MIT */
/* Samples of a process tree, kept by the place in a file, and the functions at these places. */
#include "candidates.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "candidates-infer.h"
#include "candidates-names.h"
#include "elf/module.h"
#include "evidence/samples.h"
#include "inject/clock.h"
#include "python-samples.h"
#include "src/base/must.h"
#include "src/session/processes.h"

/* No multiple of the periods of timers, so that samples do not fall into step with them. */
#define PERIOD_NS    1003009ull
#define SAMPLES_MOST 10000 /* of a thread */
#define WAIT_NS	     50000000ull
#define LOOK_NS	     7000000ull /* and up to as much more */

enum {
	ACTIVE_MOST = 256, /* as many threads as are watched */
	ROUND_EACH = 3,	   /* takes: what waits does so for longer */
};

struct process {
	pid_t pid;
	struct maps maps;
	struct resolve_cache *cache;
	bool read;
	const struct map_entry *python; /* a mapping of its interpreter; NULL: it has none */
};

/* A thread that was on a processor since the last look. */
struct active {
	size_t process; /* number */
	pid_t pid, tid;
};

/* Where a sample was. An exec gives the addresses of a process another meaning: it gets a number.
 */
struct place {
	uint64_t ip;
	size_t process;	   /* number, 1 or more; 0: free */
	struct image *img; /* NULL: no file */
	uint64_t vaddr;
	bool runtime;	  /* Go's: it works for the function that called it */
	bool interpreter; /* in Python's, and Python's functions are known */
	double *in;	  /* samples, by block */
	uint64_t python;  /* samples that a Python function has instead */
};

struct candidates {
	const struct session_config *cfg;
	struct samples *samples;
	struct python_samples *python;
	bool any_python;
	uint64_t takes;
	uint32_t chance; /* so that looks do not fall into step with timers */
	struct active active[ACTIVE_MOST];
	size_t n_active;
	size_t blocks, block;
	double *all; /* samples, by block */
	struct process **process;
	size_t n_processes;
	struct place *place; /* a hash table: cap is a power of two */
	size_t n_places, cap;
};

struct candidates *candidates_open(const struct session_config *cfg, uint64_t time_ns,
				   size_t blocks)
{
	struct candidates *c = must_calloc(1, sizeof(*c));
	uint64_t period = time_ns / SAMPLES_MOST;

	c->cfg = cfg;
	c->blocks = blocks;
	c->all = must_calloc(blocks, sizeof(*c->all));
	c->cap = 1024;
	c->place = must_calloc(c->cap, sizeof(*c->place));
	c->python = python_samples_open(blocks);
	c->chance = (uint32_t)clock_ns();
	c->samples = samples_open(period < PERIOD_NS ? PERIOD_NS : period);
	candidates_edge(c);
	c->block = 0;
	return c;
}

void candidates_close(struct candidates *c)
{
	if (!c)
		return;
	samples_close(c->samples);
	python_samples_close(c->python);
	for (size_t i = 0; i < c->n_processes; i++) {
		resolve_cache_free(c->process[i]->cache);
		maps_free(&c->process[i]->maps);
		free(c->process[i]);
	}
	for (size_t i = 0; i < c->cap; i++) {
		image_put(c->place[i].img);
		free(c->place[i].in);
	}
	free(c->process);
	free(c->place);
	free(c->all);
	free(c);
}

/* ---- places ---- */

/* Its number. Each has memory of its own: a cache refers to the maps of its process. */
static size_t process_new(struct candidates *c, pid_t pid)
{
	struct process *p = must_calloc(1, sizeof(*p));

	p->pid = pid;
	c->process = must(reallocarray(c->process, c->n_processes + 1, sizeof(*c->process)));
	c->process[c->n_processes] = p;
	return ++c->n_processes;
}

static size_t process_of(struct candidates *c, pid_t pid)
{
	for (size_t i = c->n_processes; i > 0; i--)
		if (c->process[i - 1]->pid == pid)
			return i;
	return process_new(c, pid);
}

static void read_maps(struct candidates *c, size_t number)
{
	struct process *p = c->process[number - 1];
	struct sb_err err = { 0 };
	uint64_t runtime;

	if (p->read)
		return;
	p->read = true;
	maps_read(p->pid, &p->maps, &err);
	p->cache = resolve_cache_new(&p->maps);
	if (!python_samples_watch(c->python, number, p->pid, &p->maps, &runtime))
		return;
	c->any_python = true;
	p->python = maps_find(&p->maps, runtime);
}

static struct place *slot_of(struct place *table, size_t cap, size_t process, uint64_t ip)
{
	size_t i = (size_t)((ip * 0x9e3779b97f4a7c15u) >> 20) + process;

	while (table[i & (cap - 1)].process &&
	       (table[i & (cap - 1)].ip != ip || table[i & (cap - 1)].process != process))
		i++;
	return &table[i & (cap - 1)];
}

static void grow(struct candidates *c)
{
	struct place *old = c->place;
	size_t cap = c->cap;

	if (c->n_places < cap / 2)
		return;
	c->cap = 2 * cap;
	c->place = must_calloc(c->cap, sizeof(*c->place));
	for (size_t i = 0; i < cap; i++)
		if (old[i].process)
			*slot_of(c->place, c->cap, old[i].process, old[i].ip) = old[i];
	free(old);
}

static void find_file(struct process *p, struct place *at)
{
	struct module_space space = { p->pid, &p->maps, p->cache };
	struct sb_err err = { 0 };
	struct module m;

	if (!module_at(&space, at->ip, &m, &err))
		return;
	at->img = m.img;
	at->vaddr = at->ip - m.bias;
	at->interpreter = p->python && m.map->inode == p->python->inode &&
			  m.map->dev == p->python->dev;
	at->runtime = candidates_runtime(m.img, at->vaddr);
}

static struct place *place_of(struct candidates *c, size_t process, uint64_t ip)
{
	struct place *at;

	grow(c);
	at = slot_of(c->place, c->cap, process, ip);
	if (!at->process) {
		*at = (struct place){ .ip = ip, .process = process };
		at->in = must_calloc(c->blocks, sizeof(*at->in));
		find_file(c->process[process - 1], at);
		c->n_places++;
	}
	return at;
}

/* The innermost function; in Go, whose programs keep frame pointers, that which the runtime works
 * for. A return address may be that of the next function: one less is in the caller. */
static void take_sample(void *ctx, pid_t pid, pid_t tid, const uint64_t *ip, size_t n)
{
	struct candidates *c = ctx;
	size_t process = process_of(c, pid);
	struct place *at;

	if (c->block >= c->blocks)
		return;
	read_maps(c, process);
	if (!c->n_active || c->active[c->n_active - 1].tid != tid)
		if (c->n_active < ACTIVE_MOST)
			c->active[c->n_active++] = (struct active){ process, pid, tid };
	at = place_of(c, process, ip[0]);
	for (size_t i = 1; i < n && at->runtime; i++)
		at = place_of(c, process, ip[i] - 1);
	if (at->runtime || !at->img)
		at = place_of(c, process, ip[0]);
	if (at->interpreter && python_samples_has(c->python, process, tid))
		at->python++;
	else
		at->in[c->block]++;
	c->all[c->block]++;
}

void candidates_take(struct candidates *c)
{
	c->n_active = 0;
	samples_drain(c->samples, take_sample, c);
	if (!c->any_python)
		return;
	for (size_t i = 0; i < c->n_active; i++)
		python_samples_look(c->python, c->active[i].process, c->active[i].pid,
				    c->active[i].tid, c->block);
	if (++c->takes % ROUND_EACH == 0)
		python_samples_round(c->python, c->block);
}

uint64_t candidates_wait_ns(struct candidates *c)
{
	if (!c->any_python)
		return WAIT_NS;
	c->chance = c->chance * 1664525u + 1013904223u;
	return LOOK_NS + c->chance % LOOK_NS;
}

/* An exec, or a library that was loaded since: what follows is of a process with a new number. */
static void look_again(struct candidates *c, size_t i)
{
	struct process *p = c->process[i];
	struct sb_err err = { 0 };
	struct maps now = { 0 };
	bool same;

	if (!p->read || maps_read(p->pid, &now, &err) < 0)
		return;
	same = now.count == p->maps.count;
	for (size_t k = 0; same && k < now.count; k++)
		same = !now.entry[k].x || (now.entry[k].start == p->maps.entry[k].start &&
					   now.entry[k].inode == p->maps.entry[k].inode);
	maps_free(&now);
	if (!same)
		process_new(c, p->pid);
}

static bool is_latest(const struct candidates *c, size_t i)
{
	for (size_t k = i + 1; k < c->n_processes; k++)
		if (c->process[k]->pid == c->process[i]->pid)
			return false;
	return true;
}

void candidates_edge(struct candidates *c)
{
	size_t n, known = c->n_processes;
	pid_t *pids;

	candidates_take(c);
	for (size_t i = 0; i < known; i++)
		if (is_latest(c, i))
			look_again(c, i);
	processes_descendants(c->cfg, &pids, &n);
	for (size_t i = 0; i < n; i++)
		samples_watch(c->samples, pids[i]);
	free(pids);
	python_samples_threads(c->python);
	c->block++;
}

/* ---- functions ---- */

struct function {
	struct image *img;
	uint64_t start;
};

static size_t function_of(struct function **list, size_t *n, struct image *img, uint64_t vaddr)
{
	uint64_t start, end;

	if (!image_function_at(img, vaddr, &start, &end))
		return SIZE_MAX;
	for (size_t i = 0; i < *n; i++)
		if ((*list)[i].img == img && (*list)[i].start == start)
			return i;
	*list = must(reallocarray(*list, *n + 1, sizeof(**list)));
	(*list)[*n] = (struct function){ img, start };
	return (*n)++;
}

static struct candidate_tally *tally_places(struct candidates *c, struct function **list, size_t *n)
{
	struct candidate_tally *tally = NULL;

	for (size_t i = 0; i < c->cap; i++) {
		struct place *at = &c->place[i];
		size_t before = *n, f;

		f = at->img ? function_of(list, n, at->img, at->vaddr) : SIZE_MAX;
		if (f == SIZE_MAX)
			continue;
		if (*n > before) {
			tally = must(reallocarray(tally, *n, sizeof(*tally)));
			tally[f] = (struct candidate_tally){ .function = f };
			tally[f].in = must_calloc(c->blocks, sizeof(*tally[f].in));
		}
		for (size_t b = 0; b < c->blocks; b++) {
			tally[f].in[b] += at->in[b];
			tally[f].samples += (uint64_t)at->in[b];
		}
	}
	return tally;
}

static uint64_t in_interpreters(const struct candidates *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->cap; i++)
		n += c->place[i].python;
	return n;
}

static void describe(const struct candidates *c, struct explain_result *res)
{
	for (size_t b = 0; b < c->blocks; b++)
		res->samples += (uint64_t)c->all[b];
	res->samples_interpreter = in_interpreters(c);
	res->samples_nowhere = res->samples - res->samples_interpreter;
	res->samples_lost = samples_lost(c->samples);
	res->threads_unsampled = samples_unwatched(c->samples);
	res->samples_user_only = samples_user_only(c->samples);
	if (samples_limit(c->samples))
		res->samples_limit = *samples_limit(c->samples);
}

static int by_share(const void *a, const void *b)
{
	const struct explain_candidate *x = a, *y = b;

	return (x->share.est < y->share.est) - (x->share.est > y->share.est);
}

/* Python functions among those of files: both have shares of the same time. */
static void add_python(const struct candidates *c, size_t blocks, struct explain_result *res)
{
	struct python_looks looks = python_samples_looks(c->python);
	struct candidate_tally *tally = must_calloc(looks.n, sizeof(*tally));
	size_t good;

	for (size_t i = 0; i < looks.n; i++)
		tally[i] = (struct candidate_tally){ .function = i,
						     .in = looks.function[i].in,
						     .samples = looks.function[i].looks };
	good = candidates_rank(tally, looks.n, looks.all, blocks);
	good = good < CANDIDATES_MOST ? good : CANDIDATES_MOST;
	for (size_t i = 0; i < good; i++)
		res->candidate[res->n_candidates++] = (struct explain_candidate){
			.target = must_strdup(looks.function[tally[i].function].target),
			.share = tally[i].share,
			.samples = tally[i].samples,
		};
	free(tally);
	if (c->any_python)
		res->looks = looks.looks;
	if (!good)
		return;
	qsort(res->candidate, res->n_candidates, sizeof(*res->candidate), by_share);
	while (res->n_candidates > CANDIDATES_MOST)
		free(res->candidate[--res->n_candidates].target);
}

/* Python functions in which threads wait: a share of the time, for each thread that does. */
static void add_waits(const struct candidates *c, size_t blocks, struct explain_result *res)
{
	struct python_looks looks = python_samples_looks(c->python);
	struct candidate_tally *tally = must_calloc(looks.n, sizeof(*tally));
	size_t n = 0, good;

	for (size_t i = 0; i < looks.n; i++)
		if (!looks.function[i].wait_helper)
			tally[n++] = (struct candidate_tally){ .function = i,
							       .in = looks.function[i].wait,
							       .samples = looks.function[i].waits };
	good = candidates_rank(tally, n, looks.rounds, blocks);
	good = good < WAITS_MOST ? good : WAITS_MOST;
	res->wait = must_calloc(good, sizeof(*res->wait));
	res->n_waits = good;
	for (size_t i = 0; i < good; i++)
		res->wait[i] = (struct explain_candidate){
			.target = must_strdup(looks.function[tally[i].function].target),
			.share = tally[i].share,
			.samples = tally[i].samples,
		};
	free(tally);
}

void candidates_fill(struct candidates *c, struct sweep_job *job, struct explain_result *res)
{
	size_t n = 0, good, blocks = c->block < c->blocks ? c->block : c->blocks;
	struct function *list = NULL;
	struct candidate_tally *tally = tally_places(c, &list, &n);

	describe(c, res);
	for (size_t i = 0; i < n; i++)
		res->samples_nowhere -= tally[i].samples;
	good = candidates_rank(tally, n, c->all, blocks);
	good = good < CANDIDATES_MOST ? good : CANDIDATES_MOST;
	res->candidate = must_calloc(2 * CANDIDATES_MOST, sizeof(*res->candidate));
	res->n_candidates = good;
	for (size_t i = 0; i < good; i++) {
		struct function *f = &list[tally[i].function];

		res->candidate[i].target = candidates_name(c->cfg, f->img, f->start);
		res->candidate[i].share = tally[i].share;
		res->candidate[i].samples = tally[i].samples;
	}
	add_python(c, blocks, res);
	add_waits(c, blocks, res);
	candidates_check(job, res);
	candidates_command(job, res);
	for (size_t i = 0; i < n; i++)
		free(tally[i].in);
	free(tally);
	free(list);
}
