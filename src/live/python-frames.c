/* SPDX-License-Identifier: MIT */
#include "python-frames.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include "elf/interpreter.h"
#include "inject/pyframes-layout.h"
#include "src/base/caps.h"
#include "src/base/must.h"
#include "src/session/processes.h"

enum {
	THREADS_MOST = 1024, /* of a process */
	SHIMS_MOST = 4,	     /* frames of no code in a row: entries from C */
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
	pid_t tid;
	uint64_t state;
};

struct python_process {
	pid_t pid;
	struct sb_page_python layout;
	const struct place *place;
	uint64_t runtime;
	struct thread thread[THREADS_MOST]; /* those that have run Python */
	size_t n_threads;
	/* The numbers that its threads have here and in their own namespace. */
	struct known {
		pid_t tid, native;
	} * known;
	size_t n_known;
};

/* ---- memory ---- */

static bool read_bytes(const struct python_process *p, uint64_t at, void *to, size_t size)
{
	struct iovec ours = { to, size }, theirs = { (void *)(uintptr_t)at, size };

	return CAPS(process_vm_readv(p->pid, &ours, 1, &theirs, 1, 0)) == (ssize_t)size;
}

/* 0: it cannot be read. */
static uint64_t word_at(const struct python_process *p, uint64_t at)
{
	uint64_t word;

	return read_bytes(p, at, &word, sizeof(word)) ? word : 0;
}

/* A pointer to an object, or 0. */
static uint64_t pointer_at(const struct python_process *p, uint64_t at)
{
	uint64_t word = word_at(p, at);

	return word & 7 ? 0 : word;
}

/* An ASCII str of printable characters; false: it is something else, or too long. */
static bool text_at(const struct python_process *p, uint64_t str, char text[TEXT_MOST])
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

struct python_process *python_process_open(pid_t pid, const struct maps *maps, uint64_t *runtime)
{
	struct interpreter_types types;
	const struct sb_page_python *layout;
	const struct place *place = NULL;
	struct python_process *p;

	if (!interpreter_types(pid, maps, &types))
		return NULL;
	layout = pyframes_layout(types.version);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (places[i].version == types.version)
			place = &places[i];
	if (!layout || !place)
		return NULL;
	p = must_calloc(1, sizeof(*p));
	p->pid = pid;
	p->layout = *layout;
	p->layout.code_type = types.code;
	p->layout.str_type = types.str;
	p->place = place;
	p->runtime = *runtime = types.runtime;
	python_process_threads(p);
	return p;
}

void python_process_close(struct python_process *p)
{
	if (!p)
		return;
	free(p->known);
	free(p);
}

/* The last of its numbers: that in the innermost namespace. */
static pid_t number_inside(pid_t pid, pid_t tid)
{
	char text[4096], *at, *line_end;

	processes_thread_file(pid, tid, "status", text, sizeof(text));
	at = strstr(text, "\nNSpid:");
	if (!at)
		return tid;
	line_end = strchr(at + 1, '\n');
	if (line_end)
		*line_end = '\0';
	at = strrchr(at, '\t');
	return at ? (pid_t)strtol(at, NULL, 10) : tid;
}

static pid_t native_of(struct python_process *p, pid_t tid)
{
	for (size_t i = 0; i < p->n_known; i++)
		if (p->known[i].tid == tid)
			return p->known[i].native;
	p->known = must(reallocarray(p->known, p->n_known + 1, sizeof(*p->known)));
	p->known[p->n_known] = (struct known){ tid, number_inside(p->pid, tid) };
	return p->known[p->n_known++].native;
}

/* The state of each thread, by the number that the interpreter has for it. */
static size_t read_states(const struct python_process *p, struct thread state[THREADS_MOST])
{
	const struct place *place = p->place;
	uint64_t main = pointer_at(p, p->runtime + place->interpreter), at;
	uint64_t threads = place->threads_at ? word_at(p, p->runtime + place->threads_at) :
					       place->threads;
	size_t n = 0;

	at = main ? pointer_at(p, main + threads) : 0;
	while (at && n < THREADS_MOST) {
		uint64_t native = word_at(p, at + p->layout.thread_id + NATIVE);

		state[n++] = (struct thread){ (pid_t)native, at };
		at = pointer_at(p, at + place->next);
	}
	return n;
}

void python_process_threads(struct python_process *p)
{
	struct thread *state = must_calloc(THREADS_MOST, sizeof(*state));
	size_t n = read_states(p, state);
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", p->pid);
	dir = opendir(path);
	p->n_threads = 0;
	while (dir && (entry = readdir(dir)) && p->n_threads < THREADS_MOST) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		pid_t native = tid > 0 ? native_of(p, tid) : 0;

		for (size_t i = 0; native && i < n; i++)
			if (state[i].tid == native) {
				p->thread[p->n_threads++] = (struct thread){ tid, state[i].state };
				break;
			}
	}
	if (dir)
		closedir(dir);
	free(state);
}

size_t python_process_count(const struct python_process *p)
{
	return p->n_threads;
}

pid_t python_process_tid(const struct python_process *p, size_t i)
{
	return p->thread[i].tid;
}

uint64_t python_process_state(const struct python_process *p, pid_t tid)
{
	for (size_t i = 0; i < p->n_threads; i++)
		if (p->thread[i].tid == tid)
			return p->thread[i].state;
	return 0;
}

bool python_thread_runs(pid_t pid, pid_t tid)
{
	char text[256];
	const char *end;

	processes_thread_file(pid, tid, "stat", text, sizeof(text));
	end = strrchr(text, ')');
	return end && !strncmp(end, ") R", 3);
}

/* ---- frames ---- */

static uint64_t pointer_in(const struct python_frame *frame, uint16_t offset)
{
	uint64_t word = frame->word[offset / 8];

	return word & 7 ? 0 : word;
}

/* The first from this one on that runs code, and not an entry from C. */
static bool read_frame(const struct python_process *p, uint64_t at, struct python_frame *to)
{
	const struct sb_page_python *l = &p->layout;

	for (int i = 0; at && i < SHIMS_MOST; i++) {
		if (!read_bytes(p, at, to->word, sizeof(to->word)))
			return false;
		if (l->version == 0x030b || ((const uint8_t *)to->word)[l->owner] != OWNED_BY_C)
			return true;
		at = pointer_in(to, l->previous);
	}
	return false;
}

bool python_frame_first(const struct python_process *p, uint64_t state, struct python_frame *frame)
{
	const struct sb_page_python *l = &p->layout;
	uint64_t cframe;

	if (!l->cframe)
		return read_frame(p, pointer_at(p, state + l->frame), frame);
	cframe = pointer_at(p, state + l->cframe);
	return cframe && read_frame(p, pointer_at(p, cframe + l->cframe_frame), frame);
}

bool python_frame_next(const struct python_process *p, struct python_frame *frame)
{
	return read_frame(p, pointer_in(frame, p->layout.previous), frame);
}

bool python_frame_code(const struct python_process *p, const struct python_frame *frame,
		       struct python_code *code)
{
	uint64_t at = pointer_in(frame, p->layout.code);

	if (!at || word_at(p, at + 8) != p->layout.code_type)
		return false;
	*code = (struct python_code){ .at = at,
				      .name = pointer_at(p, at + p->layout.name),
				      .file = pointer_at(p, at + p->layout.file),
				      .globals = pointer_in(frame, p->place->globals) };
	return true;
}

/* ---- names ---- */

/* The first entry of a module's dict is its __name__. */
static bool module_of(const struct python_process *p, uint64_t globals, char module[TEXT_MOST])
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

char *python_code_target(const struct python_process *p, const struct python_code *code)
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
