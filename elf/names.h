/* SPDX-License-Identifier: MIT */
#ifndef SB_NAMES_H
#define SB_NAMES_H

#include "symtab.h"

/*
 * The defined symbols of one table by name, for many exact queries: a pass over the table
 * (symtab.h) is faster for one name, not for a thousand. 8 bytes per symbol.
 *
 * A symbol is found by its name up to an '@'. Symbols with the same hash are found as well: the
 * caller compares.
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

/*
 * Calls fn for symbols that may have this name, in the order of the table, until it returns false.
 */
void names_each(const struct names *names, const struct symtab *tab, const char *name,
		symtab_fn *fn, void *ctx);

#endif
