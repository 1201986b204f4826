/* SPDX-License-Identifier: MIT */
#ifndef SB_AGENT_TABLE_H
#define SB_AGENT_TABLE_H

#include "agent.h"

/*
 * The table as the hot paths see it: the address of its entries, with the shift that turns a hash
 * into an index in its low bits. One word, so that it changes at once. 0: no entries.
 */
#define TABLE_ALIGN ((uintptr_t)64)

extern uintptr_t table;

static inline struct entry *table_entries(uintptr_t t)
{
	return (struct entry *)(t & ~(TABLE_ALIGN - 1));
}

static inline size_t table_mask(uintptr_t t)
{
	return ~(size_t)0 >> (t & (TABLE_ALIGN - 1));
}

static inline size_t table_start(uintptr_t t, const PyObject *code)
{
	return (uint64_t)(uintptr_t)code * 0x9e3779b97f4a7c15ull >> (t & (TABLE_ALIGN - 1));
}

/* By address. */
static inline struct entry *table_lookup(const PyObject *code)
{
	uintptr_t t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);

	if (!t)
		return NULL;
	for (size_t i = table_start(t, code);; i = (i + 1) & table_mask(t)) {
		struct entry *e = &table_entries(t)[i];
		const PyObject *at = __atomic_load_n(&e->code, __ATOMIC_ACQUIRE);

		if (at == code)
			return e;
		if (!at)
			return NULL;
	}
}

static inline struct watch *table_watch(const PyObject *code)
{
	const struct entry *e = table_lookup(code);

	return e ? __atomic_load_n(&e->watch, __ATOMIC_ACQUIRE) : NULL;
}

#endif
