/* SPDX-License-Identifier: MIT */
/*
 * Open addressing by the address of the code object. An entry whose code was freed stays until its
 * address is judged anew or the table grows: its weak reference shows that it is void.
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

/*
 * Frees an entry's content; the caller overwrites or drops the entry itself. The reference last:
 * its release may take a lock of the interpreter, and another thread may fork meanwhile, whose
 * child continues with the entry as it is then.
 */
static void entry_empty(struct entry *e)
{
	struct watch *w = e->watch;
	PyObject *ref = e->ref;

	e->ref = NULL;
	if (w) {
		unlink_watch(w);
		__atomic_store_n(&e->watch, NULL, __ATOMIC_RELEASE);
		watch_free(w);
	}
	Py_DecRef(ref);
}

static struct entry *slot_for(uintptr_t t, PyObject *code)
{
	struct entry *entries = table_entries(t);
	size_t i = table_start(t, code);

	while (entries[i].code && entries[i].code != code)
		i = (i + 1) & table_mask(t);
	return &entries[i];
}

static size_t table_size(void)
{
	return table ? table_mask(table) + 1 : 0;
}

/* 0: no memory. */
static uintptr_t table_new(size_t size)
{
	uintptr_t at = (uintptr_t)mem_new_full(size * sizeof(struct entry));

	return at ? at | (64 - (unsigned)__builtin_ctzll(size)) : 0;
}

/*
 * A table of twice the living entries, or as large as before when many have died. In the middle of
 * a command the entries are not checked, which takes long: those that it adds are alive.
 */
static int rebuild(void)
{
	bool look = !agent.at_work;
	struct entry *old = table_entries(table);
	size_t live = 0, size = 256, old_size = table_size(), kept = 0;
	uintptr_t new;

	for (size_t i = 0; i < old_size; i++)
		live += old[i].code && (!look || entry_valid(&old[i]));
	while (size < live * 4)
		size *= 2;
	new = table_new(size);
	if (!new)
		return SB_AGENT_PYTHON;
	for (size_t i = 0; i < old_size; i++) {
		struct entry *e = &old[i];

		if (!e->code)
			continue;
		if (look && !entry_valid(e)) {
			entry_empty(e);
			continue;
		}
		*slot_for(new, e->code) = *e;
		kept++;
	}
	__atomic_store_n(&table, new, __ATOMIC_RELEASE);
	used = kept;
	retire(old);
	return 0;
}

int table_put(PyObject *code, struct watch *watch)
{
	struct entry *e;
	PyObject *ref = watch ? watch->ref : NULL;

	if (used * 2 >= table_size()) {
		int rc = rebuild();

		if (rc)
			return rc;
	}
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

void table_forget(void)
{
	struct entry *entries = table_entries(table);

	for (size_t i = 0, n = table_size(); i < n; i++)
		if (entries[i].code && !entries[i].watch)
			entry_empty(&entries[i]);
}

void table_clear(void)
{
	struct entry *entries = table_entries(table);

	for (size_t i = 0, n = table_size(); i < n; i++)
		if (entries[i].code)
			entry_empty(&entries[i]);
	__atomic_store_n(&table, 0, __ATOMIC_RELEASE);
	retire(entries);
	used = 0;
}

void cells_retire(struct watch_cell *cells)
{
	if (cells != &no_cells)
		retire(cells);
}
