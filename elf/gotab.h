/* SPDX-License-Identifier: MIT */
#ifndef SB_GOTAB_H
#define SB_GOTAB_H

#include "symtab.h"

/*
 * Go's own table of functions (pclntab), which stripping leaves in the file, since the runtime
 * itself uses it to find the functions of a stack's frames. Go 1.18 and later; every offset in it
 * is data from outside.
 *
 * Life cycle: gotab_read() once, gotab_free() with the image. The names stay in the file.
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
 * table: the section. text: the address of .text, used instead of the table's own word where that
 * is filled in only at load time; then entry, the program's, must be a function's start. False, and
 * an empty table, where it is not a table, or of an unsupported Go.
 */
bool gotab_read(struct gotab *t, struct view_range table, uint64_t text, uint64_t entry,
		struct budget *budget);

/* The function that begins at vaddr, or NULL. */
const struct gotab_func *gotab_at(const struct gotab *t, uint64_t vaddr);

/*
 * The table as a symbol table. Functions end where the next one begins, without the traps in
 * between. bytes: returns the text at an address and the number of bytes that follow.
 */
typedef const uint8_t *gotab_bytes_fn(const void *ctx, uint64_t vaddr, size_t *avail);
bool gotab_symbols(struct gotab *t, struct symtab *tab, gotab_bytes_fn *bytes, const void *ctx);

void gotab_free(struct gotab *t);

#endif
