/* SPDX-License-Identifier: MIT */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "text.h"
#include "turn.h"

#define TARGETS_MAX 65536
#define NOTED_MAX   65536

/* A code object and its properties, determined when a target needs them. */
struct subject {
	PyObject *code, *globals, *generator;
	const char *module, *file, *name, *qualname;
	PyObject *held[4]; /* the strs that contain the texts */
};

struct matches {
	size_t n, room;
	/*
	 * A watch is needed before the first call: that one is not timed, and what has begun before
	 * is resumed without one.
	 */
	bool early;
	struct watch_cell *cells;
};

/* ---- the list of targets ---- */

void list_free(struct list *list)
{
	free(list->targets);
	free(list->texts);
	memset(list, 0, sizeof(*list));
}

/* A text in the mailbox: it must end inside. */
static bool text_inside(const struct sb_mailbox *mailbox, uint32_t off)
{
	return off < mailbox->size &&
	       memchr((const char *)mailbox + off, '\0', mailbox->size - off);
}

static int targets_load(struct list *list, const struct sb_mailbox *mailbox)
{
	const struct sb_mailbox_target *from =
		(const void *)((const char *)mailbox + mailbox->targets_off);

	memcpy(list->texts, mailbox, mailbox->size);
	for (size_t i = 0; i < list->n; i++) {
		struct target *t = &list->targets[i];

		if (from[i].cell >= agent.page.targets_max ||
		    !text_inside(mailbox, from[i].module) || !text_inside(mailbox, from[i].name))
			return SB_AGENT_DAMAGED;
		t->cell = from[i].cell;
		t->flags = from[i].flags;
		t->module = list->texts + from[i].module;
		t->name = list->texts + from[i].name;
		t->last = glob_last_part(t->name, &t->last_whole);
	}
	return 0;
}

int list_load(struct list *list, const struct sb_mailbox *mailbox)
{
	uint64_t n = mailbox->n_targets, off = mailbox->targets_off;
	int rc;

	memset(list, 0, sizeof(*list));
	if (n > TARGETS_MAX || off & 3 || off > mailbox->size ||
	    n * sizeof(struct sb_mailbox_target) > mailbox->size - off)
		return agent_fail(SB_AGENT_DAMAGED, "the list of targets is not valid");
	list->n = n;
	list->version = mailbox->list;
	list->targets = calloc(n + 1, sizeof(*list->targets));
	list->texts = malloc(mailbox->size + 1);
	if (!list->targets || !list->texts) {
		list_free(list);
		return agent_fail(SB_AGENT_PYTHON, "no memory");
	}
	list->texts[mailbox->size] = '\0';
	rc = targets_load(list, mailbox);
	if (rc) {
		list_free(list);
		return agent_fail(rc, "a target is not valid");
	}
	return 0;
}

/* ---- matching ---- */

static const char *subject_text(struct subject *s, int held, enum py_name name)
{
	const char *text;

	s->held[held] = py_attr(s->code, name);
	text = py_text(s->held[held]);
	return text ? text : "";
}

static const char *subject_qualname(struct subject *s)
{
	const char *text;

	if (py.hex >= 0x030b0000)
		return subject_text(s, 2, PY_CO_QUALNAME);
	s->held[2] = names_find(s->code, s->name, s->generator);
	text = py_text(s->held[2]);
	return text ? text : s->name;
}

static void subject_close(struct subject *s)
{
	for (int i = 0; i < 4; i++)
		Py_DecRef(s->held[i]);
}

/* A child that multiprocessing has spawned imports its parent's script under a special name. */
static bool is_script(const char *module)
{
	return !strcmp(module, "__main__") || !strcmp(module, "__mp_main__");
}

static const char *subject_module(struct subject *s)
{
	if (!s->module)
		s->module = py_module_name(s->globals, &s->held[3]);
	return s->module;
}

static bool module_matches(const struct target *t, struct subject *s)
{
	if (!(t->flags & SB_TARGET_FILE))
		return glob_match(t->module, subject_module(s)) ||
		       (is_script(s->module) && glob_match(t->module, "__main__"));
	if (!s->code) /* a module as such: its functions may come from any file */
		return true;
	if (!s->file)
		s->file = subject_text(s, 0, PY_CO_FILENAME);
	return glob_match(t->module, s->file);
}

/* Cheap, and sufficient for nearly all: on 3.10 a qualified name is expensive. */
static bool last_part_fits(const struct target *t, const char *name)
{
	size_t len = strlen(name), need = strlen(t->last);

	if (t->last_whole)
		return !strcmp(name, t->last);
	return len >= need && !memcmp(name + len - need, t->last, need);
}

static bool name_matches(const struct target *t, struct subject *s)
{
	if (!s->qualname) {
		if (!s->name)
			s->name = subject_text(s, 1, PY_CO_NAME);
		if (!last_part_fits(t, s->name))
			return false;
		s->qualname = subject_qualname(s);
	}
	return glob_match(t->name, s->qualname);
}

static bool matches_add(struct matches *m, const struct target *t)
{
	bool resume = t->flags & SB_TARGET_RESUME;

	for (size_t i = 0; i < m->n; i++) {
		if (m->cells[i].index != t->cell)
			continue;
		m->cells[i].resume |= resume;
		return true;
	}
	if (m->n + 1 >= m->room) {
		size_t room = m->room ? m->room * 2 : 2;
		struct watch_cell *cells = mem_new(room * sizeof(*cells));

		if (!cells)
			return false;
		if (m->n)
			memcpy(cells, m->cells, m->n * sizeof(*cells));
		mem_free(m->cells);
		m->cells = cells;
		m->room = room;
	}
	m->cells[m->n++] = (struct watch_cell){ .index = t->cell,
						.resume = resume,
						.by_each = t->flags & SB_TARGET_EACH };
	m->cells[m->n].index = CELL_NONE;
	return true;
}

static void match(const struct list *list, struct subject *s, struct matches *m)
{
	*m = (struct matches){ 0 };
	for (size_t i = 0; i < list->n; i++) {
		const struct target *t = &list->targets[i];

		if (m->n && t->flags & SB_TARGET_REST)
			continue;
		if (!module_matches(t, s) || !name_matches(t, s))
			continue;
		list->targets[i].found = true;
		m->early |= t->flags & (SB_TARGET_RESUME | SB_TARGET_SPANS);
		matches_add(m, t);
	}
}

/* ---- notes ---- */

static struct {
	uint64_t *keys;	 /* open addressing, 0 is free */
	uint64_t **each; /* of each key: the address of its counter */
	size_t mask, used;
	bool full; /* some did not fit: no later one will */
} noted;

void judge_forget(void)
{
	mem_free(noted.keys);
	mem_free(noted.each);
	memset(&noted, 0, sizeof(noted));
}

static uint64_t hash(uint64_t h, const char *text)
{
	do
		h = (h ^ (unsigned char)*text) * 0x100000001b3ull;
	while (*text++);
	return h;
}

static bool noted_open(void)
{
	if (noted.keys)
		return true;
	noted.keys = mem_new(NOTED_MAX * 2 * sizeof(*noted.keys));
	noted.each = mem_new(NOTED_MAX * 2 * sizeof(*noted.each));
	noted.mask = NOTED_MAX * 2 - 1;
	if (!noted.keys || !noted.each)
		judge_forget();
	return noted.keys;
}

/*
 * Notes a function once, and returns the address of its counter. Functions that do not fit are left
 * out.
 */
static uint64_t *note_once(const struct watch *w, uint32_t cell)
{
	uint64_t key = hash(hash(0xcbf29ce484222325ull ^ cell, w->module), w->qualname) | 1;
	size_t i;

	if (!noted_open())
		return NULL;
	for (i = key >> 20 & noted.mask; noted.keys[i]; i = (i + 1) & noted.mask)
		if (noted.keys[i] == key)
			return noted.each[i];
	noted.full |= noted.used == NOTED_MAX;
	if (noted.used == NOTED_MAX)
		return NULL;
	noted.keys[i] = key;
	noted.used++;
	noted.each[i] = page_note(&agent.page, cell, w->line, w->module, w->qualname, w->file);
	noted.full |= !noted.each[i];
	return noted.each[i];
}

static void note(const struct watch *w, struct watch_cell *cells, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t *each = note_once(w, cells[i].index);

		__atomic_store_n(&cells[i].note, each, __ATOMIC_RELAXED);
		if (cells[i].by_each)
			__atomic_store_n(&cells[i].each, each, __ATOMIC_RELAXED);
	}
}

/* ---- judging ---- */

static bool any_resume(const struct watch *w)
{
	bool resume = false;

	for (uint32_t i = 0; i < w->n; i++)
		resume |= w->cells[i].resume;
	return resume;
}

static bool watch_texts(struct watch *w, const struct subject *s)
{
	size_t module = strlen(s->module) + 1, name = strlen(s->qualname) + 1,
	       file = strlen(s->file) + 1;

	w->texts = mem_new(module + name + file);
	if (!w->texts)
		return false;
	w->module = memcpy(w->texts, s->module, module);
	w->qualname = memcpy(w->texts + module, s->qualname, name);
	w->file = memcpy(w->texts + module + name, s->file, file);
	return true;
}

/* A watch for the matches; it takes over the cells. */
static struct watch *watch_new(struct subject *s, struct matches *m)
{
	struct watch *w = mem_new(sizeof(*w));

	if (!w) {
		mem_free(m->cells);
		return NULL;
	}
	subject_module(s);
	if (!s->file)
		s->file = subject_text(s, 0, PY_CO_FILENAME);
	w->code = s->code;
	w->cells = m->cells;
	w->n = (uint32_t)m->n;
	w->resume = any_resume(w);
	w->line = (uint32_t)py_attr_long(s->code, PY_CO_FIRSTLINENO, 0);
	w->ref = py_ref_new(s->code);
	if (w->ref && watch_texts(w, s)) {
		note(w, w->cells, w->n); /* before a call can find it */
		if (!table_put(s->code, w))
			return w;
	}
	PyErr_Clear();
	Py_DecRef(w->ref);
	mem_free(w->cells);
	mem_free(w->texts);
	mem_free(w);
	return NULL;
}

struct watch *judge(PyObject *code, PyObject *globals, const char *qualname, PyObject *generator)
{
	struct subject s = {
		.code = code, .globals = globals, .qualname = qualname, .generator = generator
	};
	struct watch *w = NULL;
	struct matches m;

	match(&agent.list, &s, &m);
	if (m.n)
		w = watch_new(&s, &m);
	else
		mem_free(m.cells);
	subject_close(&s);
	return w;
}

static void judge_one_again(struct watch *w)
{
	struct subject s = {
		.code = w->code, .module = w->module, .file = w->file, .qualname = w->qualname
	};
	struct matches m;

	match(&agent.list, &s, &m);
	note(w, m.cells, m.n);
	cells_retire(w->cells);
	__atomic_store_n(&w->cells, m.n ? m.cells : &no_cells, __ATOMIC_RELEASE);
	w->n = (uint32_t)m.n;
	if (w->resume != any_resume(w)) {
		w->resume = any_resume(w);
		w->changed = true;
	}
}

int judge_again(void)
{
	struct watch *w;

	while ((w = table_step())) {
		judge_one_again(w);
		if (slice_over())
			return SB_AGENT_AGAIN;
	}
	return 0;
}

/* ---- existing functions ---- */

struct lister {
	struct walk walk;
	const struct list *list;
	enum existing how;
};

static bool list_wanted(struct walk *walk, PyObject *globals, PyObject *code)
{
	const struct lister *l = (const struct lister *)walk;
	struct subject s = { .code = code, .globals = globals };
	bool wanted = false;

	for (size_t i = 0; i < l->list->n && (!wanted || !code); i++) {
		struct target *t = &l->list->targets[i];

		if (!module_matches(t, &s))
			continue;
		wanted = true;
		t->likely |= !code;
	}
	subject_close(&s);
	return wanted;
}

static void note_subject(struct subject *s, struct matches *m)
{
	struct watch w = { .module = subject_module(s) };

	w.file = s->file ? s->file : subject_text(s, 0, PY_CO_FILENAME);
	w.qualname = s->qualname;
	w.line = (uint32_t)py_attr_long(s->code, PY_CO_FIRSTLINENO, 0);
	note(&w, m->cells, m->n);
}

static void list_found(struct walk *walk, PyObject *code, PyObject *globals, const char *qualname)
{
	const struct lister *l = (const struct lister *)walk;
	struct subject s = { .code = code, .globals = globals, .qualname = qualname };
	struct matches m;

	match(l->list, &s, &m);
	if (m.n)
		note_subject(&s, &m);
	mem_free(m.cells);
	subject_close(&s);
}

static bool goes_by_file(const struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->targets[i].flags & SB_TARGET_FILE)
			return true;
	return false;
}

int judge_list(struct list *list)
{
	struct lister l = { .walk = { .by_file = goes_by_file(list),
				      .wanted = list_wanted,
				      .found = list_found },
			    .list = list };

	return walk_piece(&l.walk);
}

static void existing_found(struct walk *walk, PyObject *code, PyObject *globals,
			   const char *qualname)
{
	const struct lister *l = (const struct lister *)walk;
	struct subject s = { .code = code, .globals = globals, .qualname = qualname };
	const struct entry *e = table_find(code);
	struct matches m;

	if (e && entry_valid(e))
		return;
	match(l->list, &s, &m);
	if (m.n && (l->how != EXISTING_NOTED || m.early)) {
		watch_new(&s, &m);
	} else {
		if (m.n)
			note_subject(&s, &m);
		mem_free(m.cells);
	}
	subject_close(&s);
}

static void existing_function(struct walk *walk, PyObject *function, PyObject *code)
{
	const struct entry *e = table_find(code);

	(void)walk;
	if (e && e->watch && entry_valid(e))
		agent.backend->function(function, e->watch);
}

/*
 * A look at all objects of the collector stops the program for as long as that takes: it is done
 * only where something would be missed. Where a target's module exists and names have led to none
 * of its functions, classes may. A function that they do not lead to either is found at its first
 * call.
 */
static enum walk_more existing_more(struct walk *walk)
{
	const struct lister *l = (const struct lister *)walk;

	if (l->how == EXISTING_SEARCHED)
		return WALK_ALL;
	for (size_t i = 0; i < l->list->n; i++) {
		const struct target *t = &l->list->targets[i];

		if ((t->likely && !t->found) ||
		    (walk->function && py.hex >= 0x030b0000 &&
		     last_part_fits(t, "__getitem__"))) /* see frame.c */
			return WALK_CLASSES;
	}
	return WALK_NO_MORE;
}

/* Further notes do not fit, and nothing else is wanted. */
static bool existing_enough(const struct walk *walk)
{
	const struct lister *l = (const struct lister *)walk;

	if (!noted.full || l->how != EXISTING_NOTED)
		return false;
	for (size_t i = 0; i < l->list->n; i++)
		if (!l->list->targets[i].found ||
		    l->list->targets[i].flags & (SB_TARGET_RESUME | SB_TARGET_SPANS))
			return false;
	return true;
}

int judge_existing(enum existing how)
{
	struct lister l = { .walk = { .by_file = goes_by_file(&agent.list),
				      .wanted = list_wanted,
				      .more = existing_more,
				      .enough = existing_enough,
				      .found = existing_found },
			    .list = &agent.list,
			    .how = how };

	if (agent.backend->function)
		l.walk.function = existing_function;
	return walk_piece(&l.walk);
}
