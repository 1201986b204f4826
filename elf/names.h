/* SPDX-License-Identifier: MIT */
#ifndef SB_NAMES_H
#define SB_NAMES_H

#include "symtab.h"

/*
 * The defined symbols of one table by name, for many exact questions: one name is found faster by a
 * pass over the table (symtab.h), a thousand are not. 8 bytes a symbol.
 *
 * A symbol is found by its name up to an '@'; what has the same hash is found as well: the caller
 * compares.
 */
struct names {
	struct names_entry {
		uint32_t hash, sym;
	} * entry; /* sorted; NULL: not built, or no memory */
	size_t count;
};

/* False, and nothing built, without memory. */
bool names_build(struct names *names, const struct symtab *tab);
void names_free(struct names *names);

/* Calls fn for what may have this name, in the order of the table, until it returns false. */
void names_each(const struct names *names, const struct symtab *tab, const char *name,
		symtab_fn *fn, void *ctx);

#endif
