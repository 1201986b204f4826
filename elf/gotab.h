/* SPDX-License-Identifier: MIT */
#ifndef SB_GOTAB_H
#define SB_GOTAB_H

#include "symtab.h"

/*
 * Go's own table of functions (pclntab), which stripping leaves in the file, since the runtime
 * itself looks up there where a stack's frames belong to. Of Go 1.18 and later; every offset in it
 * is data from outside.
 *
 * Life: gotab_read() once, gotab_free() with the image. The names stay in the file.
 */
struct gotab_func {
	uint64_t start;
	uint32_t name; /* in the names */
	bool assembly;
};

struct gotab {
	struct gotab_func *func; /* sorted by start */
	size_t count;
	struct view_range names;
	Elf64_Sym *syms; /* made by gotab_symbols() */
};

/*
 * table: the section. text: the address of .text, which stands for the table's own word where that
 * is filled in at load time only; it is taken if entry, the program's, is a function's start then.
 * False, and an empty table, where it is none, or of a Go that is not known.
 */
bool gotab_read(struct gotab *t, struct view_range table, uint64_t text, uint64_t entry,
		struct budget *budget);

/* The function that begins at vaddr, or NULL. */
const struct gotab_func *gotab_at(const struct gotab *t, uint64_t vaddr);

/* As a symbol table, of functions that end where the next one begins, less the traps in between.
 * bytes: of the text at an address, with how many follow. */
typedef const uint8_t *gotab_bytes_fn(const void *ctx, uint64_t vaddr, size_t *avail);
bool gotab_symbols(struct gotab *t, struct symtab *tab, gotab_bytes_fn *bytes, const void *ctx);

void gotab_free(struct gotab *t);

#endif
