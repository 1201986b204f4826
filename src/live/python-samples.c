/* SPDX-License-Identifier: MIT */
#include "python-samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include "elf/interpreter.h"
#include "inject/pyframes-layout.h"
#include "src/base/caps.h"
#include "src/base/must.h"

enum {
	THREADS_MOST = 1024, /* of a process */
	FUNCTIONS_MOST = 4096,
	CODES_MOST = 16384,
	SHIMS_MOST = 4,	 /* frames of no code in a row: entries from C */
	FRAME_WORDS = 9, /* what is looked at of a frame, in every version */
	TEXT_MOST = 200,
	NATIVE = 8,	 /* behind thread_id: the thread's number, as it knows it itself */
	OWNED_BY_C = 3,	 /* FRAME_OWNED_BY_CSTACK, from 3.12 on */
	STR_LENGTH = 16, /* in every version */
	STR_STATE = 32,
	STR_ASCII = 0x60,    /* of its state: compact, ascii */
	DICT_KEYS = 32,	     /* of a dict */
	KEYS_LOG2_INDEX = 9, /* of its keys: their index's size, their kind, the index */
	KEYS_KIND = 10,
	KEYS_INDEX = 32,
	KEYS_GENERAL = 0,
	KEYS_UNICODE = 1,
};

/* What inject/pyframes-layout.h does not have. Offsets. */
static const struct place {
	uint32_t version;
	uint16_t interpreter; /* of _PyRuntime: the main interpreter */
	uint16_t threads;     /* of an interpreter: its first thread */
	uint16_t threads_at;  /* ... or of _PyRuntime: where that offset is; 0: it is not there */
	uint16_t next;	      /* of a thread */
	uint16_t globals;     /* of a frame */
} places[] = {
	{ .version = 0x030b, .interpreter = 48, .threads = 16, .next = 8, .globals = 8 },
	{ .version = 0x030c, .interpreter = 48, .threads = 72, .next = 8, .globals = 24 },
	{ .version = 0x030d, .interpreter = 640, .threads_at = 72, .next = 8, .globals = 24 },
};

struct thread {
	pid_t native;
	uint64_t state;
};

struct process {
	size_t number;
	pid_t pid;
	struct sb_page_python layout;
	const struct place *place;
	uint64_t runtime;
	struct thread thread[THREADS_MOST];
	size_t n_threads;
	/* The numbers that its threads have here and in their own namespace. */
	struct known {
		pid_t tid, native;
	} * known;
	size_t n_known;
};

/* A code object, and its texts: another one may be made in its place. */
struct code {
	const struct process *of;
	uint64_t at, name, file, globals;
	size_t function; /* SIZE_MAX: none */
};

struct python_samples {
	size_t blocks;
	double *all;
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
	return s;
}

void python_samples_close(struct python_samples *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_processes; i++) {
		free(s->process[i]->known);
		free(s->process[i]);
	}
	for (size_t i = 0; i < s->n_functions; i++) {
		free(s->function[i].target);
		free(s->function[i].in);
	}
	free(s->process);
	free(s->code);
	free(s->function);
	free(s->all);
	free(s);
}

/* ---- memory ---- */

static bool read_bytes(const struct process *p, uint64_t at, void *to, size_t size)
{
	struct iovec ours = { to, size }, theirs = { (void *)(uintptr_t)at, size };

	return CAPS(process_vm_readv(p->pid, &ours, 1, &theirs, 1, 0)) == (ssize_t)size;
}

/* 0: it cannot be read. */
static uint64_t word_at(const struct process *p, uint64_t at)
{
	uint64_t word;

	return read_bytes(p, at, &word, sizeof(word)) ? word : 0;
}

/* A pointer to an object, or 0. */
static uint64_t pointer_at(const struct process *p, uint64_t at)
{
	uint64_t word = word_at(p, at);

	return word & 7 ? 0 : word;
}

/* An ASCII str of printable characters; false: it is something else, or too long. */
static bool text_at(const struct process *p, uint64_t str, char text[TEXT_MOST])
{
	uint64_t head[5];

	if (!str || !read_bytes(p, str, head, sizeof(head)) || head[1] != p->layout.str_type ||
	    (head[STR_STATE / 8] & STR_ASCII) != STR_ASCII || head[STR_LENGTH / 8] >= TEXT_MOST ||
	    !read_bytes(p, str + p->layout.ascii, text, head[STR_LENGTH / 8]))
		return false;
	text[head[STR_LENGTH / 8]] = '\0';
	for (const char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			return false;
	return strlen(text) == head[STR_LENGTH / 8];
}

/* ---- processes and their threads ---- */

static void read_threads(struct process *p)
{
	const struct place *place = p->place;
	uint64_t main = pointer_at(p, p->runtime + place->interpreter), state;
	uint64_t threads = place->threads_at ? word_at(p, p->runtime + place->threads_at) :
					       place->threads;

	p->n_threads = 0;
	state = main ? pointer_at(p, main + threads) : 0;
	while (state && p->n_threads < THREADS_MOST) {
		uint64_t native = word_at(p, state + p->layout.thread_id + NATIVE);

		p->thread[p->n_threads++] = (struct thread){ (pid_t)native, state };
		state = pointer_at(p, state + place->next);
	}
}

bool python_samples_watch(struct python_samples *s, size_t number, pid_t pid,
			  const struct maps *maps, uint64_t *runtime)
{
	struct interpreter_types types;
	const struct sb_page_python *layout;
	const struct place *place = NULL;
	struct process *p;

	if (!interpreter_types(pid, maps, &types))
		return false;
	layout = pyframes_layout(types.version);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (places[i].version == types.version)
			place = &places[i];
	if (!layout || !place)
		return false;
	p = must_calloc(1, sizeof(*p));
	*p = (struct process){ .number = number,
			       .pid = pid,
			       .layout = *layout,
			       .place = place,
			       .runtime = types.runtime };
	p->layout.code_type = types.code;
	p->layout.str_type = types.str;
	s->process = must(reallocarray(s->process, s->n_processes + 1, sizeof(*s->process)));
	s->process[s->n_processes++] = p;
	read_threads(p);
	*runtime = types.runtime;
	return true;
}

void python_samples_threads(struct python_samples *s)
{
	for (size_t i = 0; i < s->n_processes; i++)
		read_threads(s->process[i]);
}

static struct process *process_of(const struct python_samples *s, size_t number)
{
	for (size_t i = 0; i < s->n_processes; i++)
		if (s->process[i]->number == number)
			return s->process[i];
	return NULL;
}

/* The last of its numbers: that in the innermost namespace. */
static pid_t number_inside(pid_t pid, pid_t tid)
{
	static const char field[] = "\nNSpid:";
	char path[64], text[4096], *at, *line_end;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	f = fopen(path, "re");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = '\0';
	at = strstr(text, field);
	if (!at)
		return tid;
	line_end = strchr(at + 1, '\n');
	if (line_end)
		*line_end = '\0';
	at = strrchr(at, '\t');
	return at ? (pid_t)strtol(at, NULL, 10) : tid;
}

static pid_t native_of(struct process *p, pid_t tid)
{
	for (size_t i = 0; i < p->n_known; i++)
		if (p->known[i].tid == tid)
			return p->known[i].native;
	p->known = must(reallocarray(p->known, p->n_known + 1, sizeof(*p->known)));
	p->known[p->n_known] = (struct known){ tid, number_inside(p->pid, tid) };
	return p->known[p->n_known++].native;
}

/* Its state; 0: it has none, and runs no Python. */
static uint64_t state_of(struct process *p, pid_t tid)
{
	pid_t native = native_of(p, tid);

	for (size_t i = 0; i < p->n_threads; i++)
		if (p->thread[i].native == native)
			return p->thread[i].state;
	return 0;
}

bool python_samples_has(const struct python_samples *s, size_t number, pid_t tid)
{
	struct process *p = process_of(s, number);

	return p && state_of(p, tid);
}

static bool runs(pid_t pid, pid_t tid)
{
	char path[64], text[256];
	const char *end;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	f = fopen(path, "re");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = '\0';
	end = strrchr(text, ')');
	return end && !strncmp(end, ") R", 3);
}

/* ---- functions ---- */

/* The first entry of a module's dict is its __name__. */
static bool module_of(const struct process *p, uint64_t globals, char module[TEXT_MOST])
{
	uint64_t keys = globals ? pointer_at(p, globals + DICT_KEYS) : 0, entry, pair[2];
	uint8_t head[KEYS_INDEX];
	char key[TEXT_MOST];

	if (!keys || !read_bytes(p, keys, head, sizeof(head)) || head[KEYS_LOG2_INDEX] > 24 ||
	    head[KEYS_KIND] > KEYS_UNICODE)
		return false;
	entry = keys + KEYS_INDEX + (1ull << head[KEYS_LOG2_INDEX]);
	if (head[KEYS_KIND] == KEYS_GENERAL)
		entry += sizeof(uint64_t); /* the key's hash */
	return read_bytes(p, entry, pair, sizeof(pair)) && text_at(p, pair[0], key) &&
	       !strcmp(key, "__name__") && text_at(p, pair[1], module);
}

/* Would it be a part of a target's name, and match nothing but itself? */
static bool is_plain(const char *text)
{
	return *text && !strpbrk(text, ":*?[]\\ ");
}

static char *target_of(const struct process *p, const struct code *code)
{
	char qualname[TEXT_MOST], where[TEXT_MOST], *target;

	if (!text_at(p, code->name, qualname) || !is_plain(qualname))
		return NULL;
	if (!(module_of(p, code->globals, where) && is_plain(where) && !strchr(where, '/')) &&
	    !(text_at(p, code->file, where) && is_plain(where) && strchr(where, '/')))
		return NULL;
	if (asprintf(&target, "py:%s:%s", where, qualname) < 0)
		abort();
	return target;
}

static size_t function_of(struct python_samples *s, const struct process *p,
			  const struct code *code)
{
	char *target = s->n_functions < FUNCTIONS_MOST ? target_of(p, code) : NULL;
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
	*f = (struct python_function){ .target = target };
	f->in = must_calloc(s->blocks, sizeof(*f->in));
	return s->n_functions++;
}

/* A frame, whose thread goes on meanwhile: all of it by one read. */
struct frame {
	uint64_t word[FRAME_WORDS];
};

static uint64_t pointer_in(const struct frame *frame, uint16_t offset)
{
	uint64_t word = frame->word[offset / 8];

	return word & 7 ? 0 : word;
}

/* The innermost one that runs code. False: there is none. */
static bool read_frame(const struct process *p, uint64_t state, struct frame *to)
{
	const struct sb_page_python *l = &p->layout;
	uint64_t cframe = l->cframe ? pointer_at(p, state + l->cframe) : 0, frame;

	if (l->cframe)
		frame = cframe ? pointer_at(p, cframe + l->cframe_frame) : 0;
	else
		frame = pointer_at(p, state + l->frame);
	for (int i = 0; frame && i < SHIMS_MOST; i++) {
		if (!read_bytes(p, frame, to, sizeof(*to)))
			return false;
		if (l->version == 0x030b || ((const uint8_t *)to->word)[l->owner] != OWNED_BY_C)
			return true;
		frame = pointer_in(to, l->previous);
	}
	return false;
}

/* SIZE_MAX: none that is known. */
static size_t running(struct python_samples *s, const struct process *p, uint64_t state)
{
	struct code code = { .of = p };
	struct frame frame;

	if (!read_frame(p, state, &frame))
		return SIZE_MAX;
	code.at = pointer_in(&frame, p->layout.code);
	if (!code.at || word_at(p, code.at + 8) != p->layout.code_type)
		return SIZE_MAX;
	code.name = pointer_at(p, code.at + p->layout.name);
	code.file = pointer_at(p, code.at + p->layout.file);
	code.globals = pointer_in(&frame, p->place->globals);
	for (size_t i = 0; i < s->n_codes; i++) {
		const struct code *c = &s->code[i];

		if (c->of == p && c->at == code.at && c->name == code.name &&
		    c->file == code.file && c->globals == code.globals)
			return c->function;
	}
	if (s->n_codes == CODES_MOST)
		return SIZE_MAX;
	code.function = function_of(s, p, &code);
	s->code = must(reallocarray(s->code, s->n_codes + 1, sizeof(*s->code)));
	s->code[s->n_codes++] = code;
	return code.function;
}

void python_samples_look(struct python_samples *s, size_t number, pid_t pid, pid_t tid,
			 size_t block)
{
	struct process *p = process_of(s, number);
	uint64_t state;
	size_t f;

	if (block >= s->blocks || !runs(pid, tid))
		return;
	s->all[block]++;
	s->looks++;
	state = p ? state_of(p, tid) : 0;
	f = state ? running(s, p, state) : SIZE_MAX;
	if (f == SIZE_MAX)
		return;
	s->function[f].in[block]++;
	s->function[f].looks++;
}

struct python_looks python_samples_looks(const struct python_samples *s)
{
	return (struct python_looks){ s->function, s->n_functions, s->all, s->looks };
}
