/* SPDX-License-Identifier: MIT */
#include "owners.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "elf/demangle.h"
#include "elf/module.h"
#include "elf/unwind.h"
#include "src/base/caps.h"
#include "src/base/must.h"

enum { LOOKED_AT = 32, FRAMES_MOST = 24 };

struct owner {
	bool tried; /* the symbol */
	uint32_t version;
	char *symbol;
	char *caller[OWNERS_CALLERS];
};

struct space {
	pid_t pid;
	bool fresh; /* read in this look */
	char exe[PATH_MAX];
	struct maps *maps; /* the cache refers to them; NULL: not read yet */
	struct resolve_cache *cache;
};

struct owners {
	struct owner *of; /* by number */
	size_t n;
	struct space **space;
	size_t n_spaces;
};

struct owners *owners_open(void)
{
	return must_calloc(1, sizeof(struct owners));
}

void owners_close(struct owners *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->n; i++) {
		free(o->of[i].symbol);
		for (int k = 0; k < OWNERS_CALLERS; k++)
			free(o->of[i].caller[k]);
	}
	for (size_t i = 0; i < o->n_spaces; i++) {
		resolve_cache_free(o->space[i]->cache);
		if (o->space[i]->maps)
			maps_free(o->space[i]->maps);
		free(o->space[i]->maps);
		free(o->space[i]);
	}
	free(o->space);
	free(o->of);
	free(o);
}

const char *owners_symbol(const struct owners *o, size_t number)
{
	return number < o->n ? o->of[number].symbol : NULL;
}

const char *owners_caller(const struct owners *o, size_t number, size_t i)
{
	return number < o->n && i < OWNERS_CALLERS ? o->of[number].caller[i] : NULL;
}

/* ---- the maps of a process ---- */

static struct space *space_of(struct owners *o, pid_t pid)
{
	for (size_t i = 0; i < o->n_spaces; i++)
		if (o->space[i]->pid == pid)
			return o->space[i];
	o->space = must(reallocarray(o->space, o->n_spaces + 1, sizeof(*o->space)));
	o->space[o->n_spaces] = must_calloc(1, sizeof(struct space));
	o->space[o->n_spaces]->pid = pid;
	return o->space[o->n_spaces++];
}

static void read_exe(struct space *s)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", s->pid);
	n = CAPS(readlink(link, s->exe, sizeof(s->exe) - 1));
	s->exe[n > 0 ? n : 0] = '\0';
}

static bool is_program(const struct space *s, const char *path)
{
	size_t len = strlen(path);

	return strncmp(s->exe, path, len) == 0 &&
	       (!s->exe[len] || strcmp(s->exe + len, " (deleted)") == 0);
}

/* Once in a look: libraries come, and an exec changes everything. The files that are held stay open
 * until the new list has them. */
static void refresh(struct space *s)
{
	struct resolve_cache *before = s->cache;
	struct maps *maps = s->maps;
	struct sb_err err = { 0 };

	if (s->fresh)
		return;
	s->fresh = true;
	s->maps = must_calloc(1, sizeof(*s->maps));
	maps_read(s->pid, s->maps, &err);
	read_exe(s);
	s->cache = resolve_cache_new(s->maps);
	for (size_t i = 0; before && i < s->maps->count; i++) {
		struct module_space space = { s->pid, s->maps, s->cache };
		const struct map_entry *e = &s->maps->entry[i];
		struct module m;

		if (e->x && module_at(&space, e->start, &m, &err))
			image_put(m.img);
	}
	resolve_cache_free(before);
	if (maps)
		maps_free(maps);
	free(maps);
}

static bool file_at(const struct space *s, uint64_t addr, struct module *m)
{
	struct module_space space = { s->pid, s->maps, s->cache };
	struct sb_err err = { 0 };

	return module_at(&space, addr, m, &err);
}

/* "name", or "file.so:name" of a library; text is freed. */
static char *qualified(const struct space *s, const struct module *m, char *text)
{
	char *shown = must(symbol_shown(text)), *whole;

	free(text);
	demangle_cut_parameters(shown);
	if (is_program(s, image_name(m->img)))
		return shown;
	if (asprintf(&whole, "%s:%s", module_file_name(image_name(m->img)), shown) < 0)
		abort();
	free(shown);
	return whole;
}

/* ---- the symbol ---- */

/* The file of data: memory that no file backs follows its last mapping (.bss). */
static bool file_of_data(const struct space *s, uint64_t addr, struct module *m)
{
	const struct map_entry *e = maps_find(s->maps, addr);

	if (e && !e->inode && !*e->path && e > s->maps->entry && e[-1].end == e->start)
		addr = e[-1].start;
	return e && file_at(s, addr, m);
}

static void find_symbol(const struct space *s, uint64_t addr, struct owner *owner)
{
	struct module m;
	char *name;

	if (owner->tried)
		return;
	owner->tried = true;
	if (!file_of_data(s, addr, &m))
		return;
	name = symbol_object(m.img, addr - m.bias);
	if (name)
		owner->symbol = qualified(s, &m, name);
	image_put(m.img);
}

/* ---- the callers ---- */

static bool read_stack(void *ctx, uint64_t addr, uint64_t *value)
{
	const struct evidence_stack_copy *stack = ctx;
	uint64_t at = addr - stack->sp;

	if (stack->size < sizeof(*value) || at > stack->size - sizeof(*value))
		return false;
	memcpy(value, stack->bytes + at, sizeof(*value));
	return true;
}

static struct unwind_regs regs_of(const struct evidence_stack_copy *stack)
{
	struct unwind_regs r = { .known = 1u << UNWIND_PC | 1u << UNWIND_RSP | 1u << UNWIND_RBP |
					  1u << UNWIND_RBX | 0xfu << UNWIND_R12 };

	r.reg[UNWIND_PC] = stack->ip;
	r.reg[UNWIND_RSP] = stack->sp;
	r.reg[UNWIND_RBP] = stack->bp;
	r.reg[UNWIND_RBX] = stack->bx;
	r.reg[UNWIND_R12] = stack->r12;
	r.reg[UNWIND_R12 + 1] = stack->r13;
	r.reg[UNWIND_R12 + 2] = stack->r14;
	r.reg[UNWIND_R12 + 3] = stack->r15;
	return r;
}

static bool begins(const char *text, const char *const *with)
{
	for (; *with; with++)
		if (strncmp(text, *with, strlen(*with)) == 0)
			return true;
	return false;
}

/* A library that waits for others. name: of the function, demangled. */
static bool is_machinery(const struct module *m, const char *name)
{
	static const char *const files[] = { "libc.so",	   "libc-",	"libc.musl", "ld-",
					     "libpthread", "libstdc++", "libc++",    NULL };
	static const char *const names[] = {
		"pthread_", "__pthread_", "___pthread", "__lll_",      "lll_",
		"__futex",  "futex",	  "__gthread",	"std::",       "core::",
		"<std::",   "<core::",	  "syscall",	"parking_lot", "<parking_lot",
		"__GI_",    "sem_wait",	  "__new_sem",	NULL
	};

	return begins(module_file_name(image_name(m->img)), files) || begins(name, names);
}

/* The name of the function around a pc; NULL: it is in none, or in the machinery. */
static char *caller_at(const struct space *s, const struct module *m, uint64_t pc)
{
	uint64_t start, end;
	char *name, *shown;
	bool machinery;

	if (!image_function_at(m->img, pc - m->bias, &start, &end))
		return NULL;
	name = must(symbol_holder(m->img, start));
	shown = must(symbol_shown(name));
	machinery = is_machinery(m, shown);
	free(shown);
	if (!machinery)
		return qualified(s, m, name);
	free(name);
	return NULL;
}

static char *find_caller(const struct space *s, struct evidence_stack_copy *stack)
{
	struct unwind_regs regs = regs_of(stack);
	char *name = NULL;

	for (int i = 0; i < FRAMES_MOST && !name; i++) {
		uint64_t pc = regs.reg[UNWIND_PC] - regs.called;
		struct module m;
		bool more;

		if (!file_at(s, pc, &m))
			return NULL;
		name = caller_at(s, &m, pc);
		more = !name && unwind_step(m.img, m.bias, &regs, read_stack, stack);
		image_put(m.img);
		if (!name && !more)
			return NULL;
	}
	return name;
}

static void add_caller(struct owner *owner, char *name)
{
	for (int i = 0; i < OWNERS_CALLERS && name; i++) {
		if (!owner->caller[i]) {
			owner->caller[i] = name;
			return;
		}
		if (strcmp(owner->caller[i], name) == 0)
			break;
	}
	free(name);
}

/* ---- a look ---- */

static void look_at(struct owners *o, const struct evidence *e, const struct evidence_futex *f,
		    size_t number)
{
	struct owner *owner = &o->of[number];
	struct evidence_stack_copy stack;
	bool stacked = evidence_stack(e, number, &stack) && stack.version != owner->version;
	struct space *s;

	if (!f->pid || (!stacked && owner->tried))
		return;
	s = space_of(o, f->pid);
	refresh(s);
	if (!s->maps->count)
		return;
	find_symbol(s, f->addr, owner);
	if (!stacked)
		return;
	owner->version = stack.version;
	add_caller(owner, find_caller(s, &stack));
}

static const struct evidence_reading *sorted;

static int by_time(const void *a, const void *b)
{
	const uint64_t x = sorted->futex[*(const size_t *)a].ns,
		       y = sorted->futex[*(const size_t *)b].ns;

	return (x < y) - (x > y);
}

void owners_look(struct owners *o, const struct evidence *e, const struct evidence_reading *r)
{
	size_t *order = must_calloc(r->n_futexes, sizeof(*order));

	if (r->n_futexes > o->n) {
		o->of = must(reallocarray(o->of, r->n_futexes, sizeof(*o->of)));
		memset(o->of + o->n, 0, (r->n_futexes - o->n) * sizeof(*o->of));
		o->n = r->n_futexes;
	}
	for (size_t i = 0; i < r->n_futexes; i++)
		order[i] = i;
	sorted = r;
	if (r->n_futexes)
		qsort(order, r->n_futexes, sizeof(*order), by_time);
	for (size_t i = 0; i < o->n_spaces; i++)
		o->space[i]->fresh = false;
	for (size_t i = 0; i < r->n_futexes && i < LOOKED_AT; i++)
		if (order[i])
			look_at(o, e, &r->futex[order[i]], order[i]);
	free(order);
}
