/* SPDX-License-Identifier: MIT */
#include "callers-priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "elf/module.h"
#include "inject/page-abi.h"
#include "src/base/must.h"

enum {
	SPACES_MOST = 1 << 16,
	FILES_MOST = 4096,
	PROLOGUE = 64, /* bytes from a function's start in which its frame is made */
};

struct callers *callers_open(void)
{
	struct callers *c = must_calloc(1, sizeof(*c));

	c->name = must_calloc(NAMES_MOST, sizeof(*c->name));
	return c;
}

static void free_space(struct space *s)
{
	maps_free(&s->maps);
	free(s->file);
}

void callers_close(struct callers *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_spaces; i++)
		free_space(&c->space[i]);
	for (size_t i = 0; i < c->n_files; i++)
		image_put(c->file[i].img);
	callers_forget_names(c);
	free(c->space);
	free(c->file);
	free(c->name);
	free(c->word);
	free(c);
}

/* ---- maps ---- */

/* A short process may have ended before the maps that it had are read here. */
static struct image *open_file(pid_t pid, const struct map_entry *e)
{
	struct sb_err err = { 0 };
	struct image *img;

	if (image_of_map(pid, e, &img, &err) == 0 || image_of_ended(e, &img, &err) == 0)
		return img;
	return NULL;
}

/* The number of the file behind an entry, which is opened for the first process that has it. */
static uint32_t file_of(struct callers *c, pid_t pid, const struct map_entry *e)
{
	if (!e->x || e->path[0] != '/' || !e->inode)
		return 0;
	for (size_t i = 0; i < c->n_files; i++) {
		struct file *f = &c->file[i];

		if (f->dev != e->dev || f->inode != e->inode)
			continue;
		if (!f->img)
			f->img = open_file(pid, e);
		return (uint32_t)i + 1;
	}
	if (c->n_files == FILES_MOST)
		return 0;
	c->file = must_realloc(c->file, (c->n_files + 1) * sizeof(*c->file));
	c->file[c->n_files] = (struct file){ e->dev, e->inode, open_file(pid, e) };
	return (uint32_t)++c->n_files;
}

static struct space *new_space(struct callers *c, pid_t pid)
{
	struct space *s = callers_space(c, pid);

	if (s) {
		free_space(s);
	} else if (c->n_spaces == SPACES_MOST) {
		s = &c->space[(uint32_t)pid % SPACES_MOST];
		free_space(s);
	} else {
		c->space = must_realloc(c->space, (c->n_spaces + 1) * sizeof(*c->space));
		s = &c->space[c->n_spaces++];
	}
	*s = (struct space){ .pid = pid };
	return s;
}

static void forget_space(struct callers *c, pid_t pid)
{
	struct space *s = callers_space(c, pid);

	if (!s)
		return;
	free_space(s);
	*s = c->space[--c->n_spaces];
}

void callers_maps(struct callers *c, const char *payload, size_t size)
{
	struct sb_err err = { 0 };
	struct space *s;
	struct maps maps;
	int32_t pid;

	if (size < sizeof(pid))
		return;
	memcpy(&pid, payload, sizeof(pid));
	if (size == sizeof(pid)) {
		forget_space(c, pid);
		return;
	}
	if (maps_parse(payload + sizeof(pid), size - sizeof(pid), &maps, &err) < 0)
		return;
	s = new_space(c, pid);
	s->maps = maps;
	s->file = must_calloc(maps.count + 1, sizeof(*s->file));
	for (size_t i = 0; i < maps.count; i++)
		s->file[i] = file_of(c, pid, &s->maps.entry[i]);
}

/* ---- a stack ---- */

void callers_stack(struct callers *c, const char *payload, size_t size)
{
	size_t words;

	c->pending = false;
	if (size < sizeof(c->head))
		return;
	memcpy(&c->head, payload, sizeof(c->head));
	payload += sizeof(c->head);
	size -= sizeof(c->head);
	words = c->head.size;
	if (words > size || words % sizeof(*c->word))
		return;
	python_stack_read(&c->python, payload + words, size - words, c->head.frames_end);
	size = words;
	if (size > c->room) {
		c->room = size;
		c->word = must_realloc(c->word, size);
	}
	if (size)
		memcpy(c->word, payload, size);
	c->n_words = size / sizeof(*c->word);
	c->pending = true;
}

static bool read_word(void *ctx, uint64_t addr, uint64_t *value)
{
	const struct callers *c = ctx;
	uint64_t at = addr - c->head.sp;

	if (at / 8 >= c->n_words || at % 8)
		return false;
	*value = c->word[at / 8];
	return true;
}

/* As the caller of the call has them, right behind its call. */
static struct unwind_regs first_regs(const struct callers *c)
{
	struct unwind_regs r = { .called = true,
				 .known = 1u << UNWIND_PC | 1u << UNWIND_RSP | 1u << UNWIND_RBP |
					  1u << UNWIND_RBX | 0xfu << UNWIND_R12 };

	r.reg[UNWIND_PC] = c->word[0];
	r.reg[UNWIND_RSP] = c->head.sp + 8;
	r.reg[UNWIND_RBP] = c->head.bp;
	r.reg[UNWIND_RBX] = c->head.bx;
	memcpy(&r.reg[UNWIND_R12], c->head.r12, sizeof(c->head.r12));
	return r;
}

/* ---- the walk ---- */

/*
 * Does the function around a place keep a frame pointer? Near its beginning, and before the place,
 * it has push %rbp, and behind that mov %rsp, %rbp. The compiler may put other instructions in
 * front and in between, but no call.
 */
static bool keeps_pointer(struct image *img, uint64_t vaddr)
{
	static const char move[2][4] = { "\x48\x89\xe5", "\x48\x8b\xec" };
	uint64_t start, end;
	const uint8_t *code, *made;
	size_t n;

	if (!image_function_at(img, vaddr, &start, &end))
		return false;
	code = image_bytes(img, start, &n);
	if (!code || vaddr - start > n)
		return false;
	n = vaddr - start < PROLOGUE ? vaddr - start : PROLOGUE;
	made = memmem(code, n, move[0], 3);
	if (!made)
		made = memmem(code, n, move[1], 3);
	return made && memchr(code, 0x55, (size_t)(made - code));
}

/* By its frame pointer. Registers that a function may have saved are not known any more. */
static bool step_by_pointer(struct callers *c, const struct at *at, struct unwind_regs *regs)
{
	struct unwind_regs up = { .called = true };
	uint64_t bp = regs->reg[UNWIND_RBP];

	if (!(regs->known >> UNWIND_RBP & 1) || bp < regs->reg[UNWIND_RSP] ||
	    !keeps_pointer(at->img, regs->reg[UNWIND_PC] - regs->called - at->bias))
		return false;
	if (!read_word(c, bp, &up.reg[UNWIND_RBP]) || !read_word(c, bp + 8, &up.reg[UNWIND_PC]))
		return false;
	up.reg[UNWIND_RSP] = bp + 16;
	up.known = 1u << UNWIND_PC | 1u << UNWIND_RSP | 1u << UNWIND_RBP;
	*regs = up;
	return true;
}

static void end_because(struct callers *c, const char *why, const char *what)
{
	snprintf(c->end, sizeof(c->end), "%s%s", why, what);
	c->stack.end = c->end;
}

/* What a frame needs is not in the copy. */
static void end_of_copy(struct callers *c, uint64_t sp)
{
	uint64_t size = c->n_words * 8;
	char copied[32];

	snprintf(copied, sizeof(copied), "%llu bytes", (unsigned long long)size);
	if (sp < c->head.sp || sp - c->head.sp > size + (1 << 20))
		end_because(c, "it goes on on another stack, which is not copied", "");
	else if (c->head.end == SB_STACK_WHOLE)
		end_because(c, "what follows is not within this stack", "");
	else if (c->head.end == SB_STACK_PAGE)
		end_because(c, "truncated: where this stack ends is not known; copied: ", copied);
	else
		end_because(c, "truncated: the copy of the stack ends here: ", copied);
}

static void end_without_table(struct callers *c, const struct at *at)
{
	end_because(c,
		    at->img ? "no unwinder's table for this place, and no frame pointer: " :
			      "this file cannot be read: ",
		    module_file_name(at->map->path));
}

/* False: this was the last one. */
static bool step(struct callers *c, const struct at *at, struct unwind_regs *regs, bool *signal)
{
	uint64_t sp = regs->reg[UNWIND_RSP];
	enum unwind_result result = UNWIND_NO_TABLE;

	if (at->img)
		result = unwind_caller(at->img, at->bias, regs, read_word, c);
	*signal = result == UNWIND_SIGNAL;
	switch (result) {
	case UNWIND_CALLER:
	case UNWIND_SIGNAL:
		return true;
	case UNWIND_OUTERMOST:
		return false;
	case UNWIND_NO_MEMORY:
		end_of_copy(c, sp);
		return false;
	default:
		if (at->img && step_by_pointer(c, at, regs))
			return true;
		end_without_table(c, at);
		return false;
	}
}

static void add_frame(struct callers *c, const char *text)
{
	c->frame[c->stack.n++] = text;
}

/* ---- the Python frames between them ---- */

static bool is_full(struct callers *c)
{
	if (c->stack.n < TRACE_FRAMES_MAX)
		return false;
	end_because(c, "there are more callers than are kept", "");
	return true;
}

/* The groups whose place is below this address. True: there was one. */
static bool add_python(struct callers *c, uint64_t below)
{
	struct python_stack *p = &c->python;
	uint64_t at = python_stack_at(p);
	bool any = false;

	while (at >= c->head.sp && at < below) {
		while (p->next < p->n && p->at[p->next] == at && c->stack.n < TRACE_FRAMES_MAX)
			add_frame(c, p->frame[p->next++]);
		any = true;
		if (python_stack_at(p) == at) /* no room */
			break;
		at = python_stack_at(p);
	}
	return any;
}

/*
 * A signal came in the middle of the interpreter, or of what it has called: its frames may have
 * been half written.
 */
static void drop_python(struct callers *c)
{
	if (!c->python.next)
		c->python.n = c->python.end = 0;
}

/* The frames whose place was not found, and the reasons why there are no more. */
static void end_python(struct callers *c)
{
	struct python_stack *p = &c->python;
	const char *why = python_stack_why(p);
	char before[sizeof(c->end)];

	if (c->stack.n == TRACE_FRAMES_MAX)
		return;
	if (p->next < p->n && c->n_words) {
		snprintf(before, sizeof(before), "%s",
			 c->stack.end ? c->stack.end : "the other ones end");
		snprintf(c->end, sizeof(c->end),
			 "from frame %u on there are only those of Python: "
			 "%.400s",
			 c->stack.n + 1, before);
		c->stack.end = c->end;
	}
	while (p->next < p->n && !is_full(c))
		add_frame(c, p->frame[p->next++]);
	if (!why || c->stack.n == TRACE_FRAMES_MAX)
		return;
	snprintf(before, sizeof(before), "%s", c->stack.end ? c->stack.end : "");
	snprintf(c->end, sizeof(c->end), "%.400s%s%s", before, *before ? "; " : "", why);
	c->stack.end = c->end;
}

/* A frame of the function that runs Python is shown as the Python frames that it runs. */
static bool walk_one(struct callers *c, const struct at *at, struct unwind_regs *regs)
{
	const char *name = callers_name(c, at->file, at->map->path, regs->reg[UNWIND_PC] - at->bias,
					regs->called);
	bool signal = false, more;

	add_python(c, regs->reg[UNWIND_RSP]);
	more = step(c, at, regs, &signal);
	if (signal)
		drop_python(c);
	if ((signal || !more || !add_python(c, regs->reg[UNWIND_RSP])) && !is_full(c))
		add_frame(c, signal ? "(a signal's handler returns here)" : name);
	return more;
}

static void walk(struct callers *c, const struct space *s)
{
	struct unwind_regs regs = first_regs(c);
	bool more = true;
	struct at at;

	callers_bound_names(c);
	while (more && regs.reg[UNWIND_PC] && !is_full(c)) {
		callers_find(c, s, &regs, &at);
		if (at.file) {
			more = walk_one(c, &at, &regs);
			continue;
		}
		snprintf(c->place, sizeof(c->place), "[0x%llx]",
			 (unsigned long long)regs.reg[UNWIND_PC]);
		add_frame(c, c->place);
		end_because(c, "this code is in no file", "");
		return;
	}
}

const struct trace_stack *callers_take(struct callers *c)
{
	const struct space *s = c->pending ? callers_space(c, c->head.pid) : NULL;

	if (!c->pending)
		return NULL;
	c->pending = false;
	c->stack = (struct trace_stack){ .frame = c->frame };
	if (s && c->n_words)
		walk(c, s);
	else if (!s)
		end_because(c, "the process had ended before its maps were read", "");
	end_python(c);
	return &c->stack;
}
