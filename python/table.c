/* SPDX-License-Identifier: MIT */
/*
 * Open addressing by the address of the code object. An entry whose code was freed stays until
 * its address is judged anew or the table grows: its weak reference says that it is void.
 */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

#include "table.h"

struct table table;
static struct watch *watches;

static void watch_free(struct watch *w)
{
	Py_DecRef(w->ref);
	free(w->cells);
	free(w->texts);
	free(w);
}

struct watch *table_watches(void)
{
	return watches;
}

struct entry *table_find(PyObject *code)
{
	return table.entries ? table_lookup(code) : NULL;
}

static void unlink_watch(struct watch *w)
{
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

/* Frees an entry's content; the entry itself is to be overwritten or dropped. */
static void entry_empty(struct entry *e)
{
	if (e->watch) {
		unlink_watch(e->watch);
		watch_free(e->watch);
		e->watch = NULL;
	} else {
		Py_DecRef(e->ref);
	}
	e->ref = NULL;
}

static struct entry *slot_for(struct table *t, PyObject *code)
{
	size_t i = table_start(t, code);

	while (t->entries[i].code && t->entries[i].code != code)
		i = (i + 1) & t->mask;
	return &t->entries[i];
}

/* A table of twice the living entries, or as large as before when many have died. */
static int rebuild(void)
{
	struct table old = table, new = { 0 };
	size_t live = 0, size = 256;

	for (size_t i = 0; old.entries && i <= old.mask; i++)
		live += old.entries[i].code && entry_valid(&old.entries[i]);
	while (size < live * 4)
		size *= 2;
	new.entries = calloc(size, sizeof(*new.entries));
	if (!new.entries)
		return SB_AGENT_PYTHON;
	new.mask = size - 1;
	new.shift = 64 - (unsigned)__builtin_ctzll(size);
	for (size_t i = 0; old.entries && i <= old.mask; i++) {
		struct entry *e = &old.entries[i];

		if (!e->code)
			continue;
		if (!entry_valid(e)) {
			entry_empty(e);
			continue;
		}
		*slot_for(&new, e->code) = *e;
		new.used++;
	}
	table = new;
	free(old.entries);
	return 0;
}

int table_put(PyObject *code, struct watch *watch)
{
	struct entry *e;
	PyObject *ref = watch ? watch->ref : NULL;

	if (!table.entries || table.used * 2 > table.mask) {
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
	e = slot_for(&table, code);
	if (e->code)
		entry_empty(e);
	else
		table.used++;
	*e = (struct entry){ .code = code, .ref = ref, .watch = watch };
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
	for (size_t i = 0; table.entries && i <= table.mask; i++)
		if (table.entries[i].code && !table.entries[i].watch)
			entry_empty(&table.entries[i]);
}

void table_clear(void)
{
	for (size_t i = 0; table.entries && i <= table.mask; i++)
		if (table.entries[i].code)
			entry_empty(&table.entries[i]);
	free(table.entries);
	memset(&table, 0, sizeof(table));
}

uint32_t table_count(void)
{
	uint32_t n = 0;

	for (const struct watch *w = watches; w; w = w->next)
		n += py_ref_alive(w->ref, w->code);
	return n;
}
