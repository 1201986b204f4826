/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_TABLE_H
#define SB_AGENT_TABLE_H

#include "agent.h"

/* The table as the hot paths see it. */
struct table {
	struct entry *entries;
	size_t mask, used;
	unsigned shift;
};

extern struct table table;

static inline size_t table_start(const struct table *t, const PyObject *code)
{
	return (uint64_t)(uintptr_t)code * 0x9e3779b97f4a7c15ull >> t->shift;
}

/* By address, there must be entries. */
static inline struct entry *table_lookup(const PyObject *code)
{
	for (size_t i = table_start(&table, code);; i = (i + 1) & table.mask) {
		struct entry *e = &table.entries[i];

		if (e->code == code)
			return e;
		if (!e->code)
			return NULL;
	}
}

#endif
