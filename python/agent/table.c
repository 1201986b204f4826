/* SPDX-License-Identifier: MIT */
/*
 * Open addressing by the address of the code object. An entry whose code was freed stays until its
 * address is judged anew or the table grows: its weak reference shows that it is void.
 *
 * To copy a hundred thousand entries at once would hold the GIL for 10 ms and more. So a table that
 * is half full grows bit by bit, at each new entry: the living are counted, then copied into the
 * next table. Until that one takes its place the old one has all entries, and what changes there
 * changes in the copy, too.
 *
 * Other threads may read while it is changed here: an entry's code is stored last, its watch at
 * once, and what they may still read is retired.
 */
#include "agent.h"

#include <string.h>

#include "memory.h"
#include "table.h"
#include "turn.h"

struct watch_cell no_cells = { .index = CELL_NONE };

uintptr_t table;
static size_t used;
static struct watch *watches;
static struct watch *cursor; /* the next one of table_step() */
static size_t looked_at;     /* entries that table_forget() or table_empty() is done with */

static struct {
	bool open;
	uintptr_t next; /* 0: the living are counted */
	size_t at;	/* entries before it have been counted, or copied */
	size_t live, used;
} growth;

enum { TABLE_LEAST = 256, GROWTH_STEP = 32, LOOKS = 256 };

/* Except for its reference. */
static void watch_free(struct watch *w)
{
	cells_retire(w->cells);
	retire(w->texts);
	retire(w);
}

struct watch *table_watches(void)
{
	return watches;
}

struct entry *table_find(PyObject *code)
{
	return table_lookup(code);
}

void table_rewind(void)
{
	cursor = watches;
	looked_at = 0;
}

struct watch *table_step(void)
{
	struct watch *w = cursor;

	if (w)
		cursor = w->next;
	return w;
}

static void unlink_watch(struct watch *w)
{
	if (cursor == w)
		cursor = w->next;
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
}

static void link_watch(struct watch *w)
{
	w->next = watches;
	w->link = &watches;
	if (watches)
		watches->link = &w->next;
	watches = w;
}

static struct entry *slot_for(uintptr_t t, const PyObject *code)
{
	struct entry *entries = table_entries(t);
	size_t i = table_start(t, code);

	while (entries[i].code && entries[i].code != code)
		i = (i + 1) & table_mask(t);
	return &entries[i];
}

static void void_copy(const PyObject *code)
{
	struct entry *copy = growth.next ? slot_for(growth.next, code) : NULL;

	if (!copy || !copy->code)
		return;
	copy->ref = NULL;
	copy->watch = NULL;
}

/*
 * Frees an entry's content; the caller overwrites or drops the entry itself. The reference last:
 * its release may take a lock of the interpreter, and another thread may fork meanwhile, whose
 * child continues with the entry as it is then.
 */
static void entry_empty(struct entry *e)
{
	struct watch *w = e->watch;
	PyObject *ref = e->ref;

	void_copy(e->code);
	e->ref = NULL;
	if (w) {
		unlink_watch(w);
		__atomic_store_n(&e->watch, NULL, __ATOMIC_RELEASE);
		watch_free(w);
	}
	Py_DecRef(ref);
}

static size_t table_size(void)
{
	return table ? table_mask(table) + 1 : 0;
}

/* 0: no memory. */
static uintptr_t table_new(size_t size)
{
	uintptr_t at = (uintptr_t)mem_new(size * sizeof(struct entry));

	return at ? at | (64 - (unsigned)__builtin_ctzll(size)) : 0;
}

/* ---- growth ---- */

static void growth_drop(void)
{
	uintptr_t next = growth.next;

	memset(&growth, 0, sizeof(growth));
	mem_free(table_entries(next)); /* which no other thread has seen */
}

/*
 * In the middle of a command the references are not followed, which takes long: the entries that it
 * adds are alive.
 */
static bool is_kept(const struct entry *e)
{
	return e->code && e->ref && (agent.at_work || entry_valid(e));
}

static void copy(struct entry *e)
{
	struct entry *to = slot_for(growth.next, e->code);

	growth.used += !to->code;
	*to = *e;
}

static void grow_by(struct entry *e)
{
	bool kept = is_kept(e);

	growth.at++;
	if (!growth.next)
		growth.live += kept;
	else if (kept)
		copy(e);
	else if (e->code)
		entry_empty(e);
}

/*
 * The next table has room for twice the living entries, and for those that are added until it takes
 * this one's place: at most one for GROWTH_STEP entries that are counted or copied.
 */
static void growth_counted(void)
{
	size_t size = TABLE_LEAST, added = table_size() * 4 / GROWTH_STEP;

	while (size < growth.live * 4 || size < (growth.live + added) * 2)
		size *= 2;
	growth.next = table_new(size);
	growth.at = 0;
	if (!growth.next)
		growth_drop();
}

static void growth_done(void)
{
	struct entry *old = table_entries(table);

	__atomic_store_n(&table, growth.next, __ATOMIC_RELEASE);
	used = growth.used;
	looked_at = 0;
	memset(&growth, 0, sizeof(growth));
	retire(old);
}

static void grow(void)
{
	size_t size = table_size();

	growth.open = true;
	for (int i = 0; i < GROWTH_STEP && growth.at < size; i++)
		grow_by(&table_entries(table)[growth.at]);
	if (growth.at < size)
		return;
	if (growth.next)
		growth_done();
	else
		growth_counted();
}

/* False: no memory. */
static bool has_room(void)
{
	if (!table)
		__atomic_store_n(&table, table_new(TABLE_LEAST), __ATOMIC_RELEASE);
	else if (growth.open || used * 2 >= table_size())
		grow();
	return table && used < table_size() / 8 * 7;
}

int table_put(PyObject *code, struct watch *watch)
{
	struct entry *e;
	PyObject *ref = watch ? watch->ref : NULL;

	if (!has_room())
		return SB_AGENT_PYTHON;
	if (!watch) {
		ref = py_ref_new(code);
		if (!ref) {
			PyErr_Clear();
			return SB_AGENT_PYTHON;
		}
	}
	e = slot_for(table, code);
	if (e->code)
		entry_empty(e);
	else
		used++;
	e->ref = ref;
	__atomic_store_n(&e->watch, watch, __ATOMIC_RELEASE);
	__atomic_store_n(&e->code, code, __ATOMIC_RELEASE);
	if (growth.next)
		copy(e);
	if (watch)
		link_watch(watch);
	return 0;
}

void table_drop(struct watch *watch)
{
	struct entry *e = table_find(watch->code);

	if (e && e->watch == watch)
		entry_empty(e); /* void from now on: judged anew at the next call */
}

/* Empties entries from where the last piece ended; all: also those with a watch. */
static int empty(bool all, bool in_pieces)
{
	size_t size = table_size();

	while (looked_at < size) {
		struct entry *e = &table_entries(table)[looked_at++];

		if (e->code && (all || !e->watch))
			entry_empty(e);
		if (in_pieces && looked_at % LOOKS == 0 && slice_over())
			return SB_AGENT_AGAIN;
	}
	return 0;
}

int table_forget(void)
{
	return empty(false, true);
}

int table_empty(void)
{
	return empty(true, true);
}

void table_clear(void)
{
	struct entry *entries = table_entries(table);

	empty(true, false);
	growth_drop();
	__atomic_store_n(&table, 0, __ATOMIC_RELEASE);
	retire(entries);
	used = 0;
}

void cells_retire(struct watch_cell *cells)
{
	if (cells != &no_cells)
		retire(cells);
}
