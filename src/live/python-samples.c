/* SPDX-License-Identifier: MIT */
#include "python-samples.h"

#include <stdlib.h>
#include <string.h>
#include "python-frames.h"
#include "src/base/must.h"

enum {
	FUNCTIONS_MOST = 4096,
	CODES_MOST = 16384,
	FRAMES_MOST = 24,  /* of a thread that waits */
	THREADS_MOST = 64, /* of a process, that are looked at in a round */
};

struct process {
	size_t number;
	pid_t pid;
	struct python_process *python;
};

struct code {
	const struct process *of;
	struct python_code code;
	size_t function; /* SIZE_MAX: none */
};

struct python_samples {
	size_t blocks;
	double *all, *rounds;
	uint64_t round; /* its number, from 1 */
	uint64_t looks;
	struct process **process;
	size_t n_processes;
	struct code *code;
	size_t n_codes;
	struct python_function *function;
	size_t n_functions;
};

struct python_samples *python_samples_open(size_t blocks)
{
	struct python_samples *s = must_calloc(1, sizeof(*s));

	s->blocks = blocks;
	s->all = must_calloc(blocks, sizeof(*s->all));
	s->rounds = must_calloc(blocks, sizeof(*s->rounds));
	return s;
}

void python_samples_close(struct python_samples *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_processes; i++) {
		python_process_close(s->process[i]->python);
		free(s->process[i]);
	}
	for (size_t i = 0; i < s->n_functions; i++) {
		free(s->function[i].target);
		free(s->function[i].in);
		free(s->function[i].wait);
	}
	free(s->process);
	free(s->code);
	free(s->function);
	free(s->rounds);
	free(s->all);
	free(s);
}

/* ---- processes ---- */

bool python_samples_watch(struct python_samples *s, size_t number, pid_t pid,
			  const struct maps *maps, uint64_t *runtime)
{
	struct python_process *python = python_process_open(pid, maps, runtime);
	struct process *p;

	if (!python)
		return false;
	p = must_calloc(1, sizeof(*p));
	*p = (struct process){ number, pid, python };
	s->process = must(reallocarray(s->process, s->n_processes + 1, sizeof(*s->process)));
	s->process[s->n_processes++] = p;
	return true;
}

void python_samples_threads(struct python_samples *s)
{
	for (size_t i = 0; i < s->n_processes; i++)
		python_process_threads(s->process[i]->python);
}

static struct process *process_of(const struct python_samples *s, size_t number)
{
	for (size_t i = 0; i < s->n_processes; i++)
		if (s->process[i]->number == number)
			return s->process[i];
	return NULL;
}

bool python_samples_has(const struct python_samples *s, size_t number, pid_t tid)
{
	const struct process *p = process_of(s, number);

	return p && python_process_state(p->python, tid);
}

/* ---- functions ---- */

/*
 * What the standard library does for a program that waits: its caller waits. A module's own code
 * runs once.
 */
static bool helps_to_wait(const char *target)
{
	static const char *const module[] = { "threading",    "queue",	    "selectors",
					      "asyncio",      "socket",	    "ssl",
					      "subprocess",   "concurrent", "multiprocessing",
					      "socketserver", "runpy" };
	const char *name = target + strlen("py:"), *end = strrchr(target, ':');
	size_t len = strcspn(name, ".:");

	for (size_t i = 0; i < sizeof(module) / sizeof(*module); i++)
		if (strlen(module[i]) == len && !strncmp(name, module[i], len))
			return true;
	return !strcmp(end, ":<module>");
}

static size_t function_of(struct python_samples *s, const struct process *p,
			  const struct python_code *code)
{
	char *target = s->n_functions < FUNCTIONS_MOST ? python_code_target(p->python, code) : NULL;
	struct python_function *f;

	if (!target)
		return SIZE_MAX;
	for (size_t i = 0; i < s->n_functions; i++)
		if (!strcmp(s->function[i].target, target)) {
			free(target);
			return i;
		}
	s->function = must(reallocarray(s->function, s->n_functions + 1, sizeof(*s->function)));
	f = &s->function[s->n_functions];
	*f = (struct python_function){ .target = target, .wait_helper = helps_to_wait(target) };
	f->in = must_calloc(s->blocks, sizeof(*f->in));
	f->wait = must_calloc(s->blocks, sizeof(*f->wait));
	return s->n_functions++;
}

/* SIZE_MAX: none that is known. */
static size_t function_in(struct python_samples *s, const struct process *p,
			  const struct python_frame *frame)
{
	struct code code = { .of = p };

	if (!python_frame_code(p->python, frame, &code.code))
		return SIZE_MAX;
	for (size_t i = 0; i < s->n_codes; i++)
		if (s->code[i].of == p && !memcmp(&s->code[i].code, &code.code, sizeof(code.code)))
			return s->code[i].function;
	if (s->n_codes == CODES_MOST)
		return SIZE_MAX;
	code.function = function_of(s, p, &code.code);
	s->code = must(reallocarray(s->code, s->n_codes + 1, sizeof(*s->code)));
	s->code[s->n_codes++] = code;
	return code.function;
}

/* ---- looks ---- */

void python_samples_look(struct python_samples *s, size_t number, pid_t pid, pid_t tid,
			 size_t block)
{
	const struct process *p = process_of(s, number);
	struct python_frame frame;
	uint64_t state;
	size_t f;

	if (block >= s->blocks || !python_thread_runs(pid, tid))
		return;
	s->all[block]++;
	s->looks++;
	state = p ? python_process_state(p->python, tid) : 0;
	if (!state || !python_frame_first(p->python, state, &frame))
		return;
	f = function_in(s, p, &frame);
	if (f == SIZE_MAX)
		return;
	s->function[f].in[block]++;
	s->function[f].looks++;
}

/* The innermost function that is not the standard library's part of a wait; SIZE_MAX: none. */
static size_t waits_in(struct python_samples *s, const struct process *p, uint64_t state)
{
	struct python_frame frame;
	bool any = python_frame_first(p->python, state, &frame);

	for (int i = 0; any && i < FRAMES_MOST; i++) {
		size_t f = function_in(s, p, &frame);

		if (f == SIZE_MAX || !s->function[f].wait_helper)
			return f;
		any = python_frame_next(p->python, &frame);
	}
	return SIZE_MAX;
}

/* Once a round, however many threads do. */
static void waited(const struct python_samples *s, struct python_function *f, size_t block)
{
	if (f->last_round == s->round)
		return;
	f->last_round = s->round;
	f->wait[block]++;
	f->waits++;
}

void python_samples_round(struct python_samples *s, size_t block)
{
	if (block >= s->blocks)
		return;
	s->rounds[block]++;
	s->round++;
	for (size_t i = 0; i < s->n_processes; i++) {
		const struct process *p = s->process[i];
		size_t n = python_process_count(p->python);

		for (size_t k = 0; k < n && k < THREADS_MOST; k++) {
			pid_t tid = python_process_tid(p->python, k);
			uint64_t state = python_process_state(p->python, tid);
			size_t f = python_thread_runs(p->pid, tid) ? SIZE_MAX :
								     waits_in(s, p, state);

			if (f != SIZE_MAX)
				waited(s, &s->function[f], block);
		}
	}
}

struct python_looks python_samples_looks(const struct python_samples *s)
{
	return (struct python_looks){ s->function, s->n_functions, s->all, s->looks, s->rounds };
}
