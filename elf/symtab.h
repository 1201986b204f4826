/* SPDX-License-Identifier: MIT */
#ifndef SB_SYMTAB_H
#define SB_SYMTAB_H

#include "budget.h"
#include "view.h"

/*
 * One symbol table, and the two steps in which it is searched:
 *
 * 1. strset_*: the string table is searched as one block of bytes (memmem) for a text that a name
 *    must be or contain; the result is the set of st_name values that qualify. Offsets into the
 *    middle of a string count too, since linkers merge "bar" into the tail of "foobar".
 * 2. symtab_scan(): one sequential pass over the st_name fields against that set. No string compare
 *    and no random access happens for the symbols that do not qualify.
 */
struct symtab {
	struct view_range syms; /* whole entries only */
	uint32_t count;
	struct view_range str;	  /* ends with a NUL, so every offset inside is a string */
	struct view_range versym; /* of .dynsym; bytes NULL: none */
	struct view_range verdef, verneed;
	struct view_range verstr; /* names of the versions */
	bool dynamic;
	struct budget *budget; /* of the image; NULL: none */
	bool mapped;	       /* clean file pages, which may be released at any time */
};

/* Cuts the tables to complete entries; false (and a table of count 0) where nothing is left. */
bool symtab_init(struct symtab *tab, struct view_range syms, struct view_range str);

/* From section i of a view and the string table that it links to. */
bool symtab_from_section(struct symtab *tab, const struct view *v, const Elf64_Shdr *sh);

void symtab_get(const struct symtab *tab, uint32_t i, Elf64_Sym *sym);
const char *symtab_name(const struct symtab *tab, const Elf64_Sym *sym);

/* The version of symbol i: its name or "" (none); *hidden: not the default version. */
const char *symtab_version(const struct symtab *tab, uint32_t i, bool *hidden);

/* Releases the table's pages to the kernel. */
void symtab_forget(const struct symtab *tab);

struct strset {
	struct strset_span {
		uint32_t lo, hi; /* both inclusive */
	} * span;
	size_t count, cap;
	uint64_t *blocks; /* a bit for each 64 bytes of the string table */
	size_t block_words;
	bool failed; /* memory */
};

/* st_name values of exactly this name, and of NAME@VERSION. */
int strset_exact(struct strset *set, const struct symtab *tab, const char *name);

/* st_name values of names that contain the text (not empty). */
int strset_containing(struct strset *set, const struct symtab *tab, const char *text);
void strset_free(struct strset *set);
bool strset_has(const struct strset *set, uint32_t off);

/* False from the callback ends the scan. */
typedef bool symtab_fn(void *ctx, const struct symtab *tab, uint32_t i, const Elf64_Sym *sym);

/* Calls fn for each symbol with a name of the set; for every symbol where set is NULL. */
void symtab_scan(const struct symtab *tab, const struct strset *set, symtab_fn *fn, void *ctx);

#endif
