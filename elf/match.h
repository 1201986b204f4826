/* SPDX-License-Identifier: MIT */
#ifndef SB_MATCH_H
#define SB_MATCH_H

#include "image-priv.h"

/* The matches of a name or pattern in the tables of one image, before anything is copied. */
struct match {
	uint64_t vaddr, size;
	const char *name;    /* in the table; valid as long as the image */
	uint32_t name_len;   /* without @VERSION */
	const char *version; /* in the table, up to its NUL; "" none */
	bool hidden, local, ifunc;
};

struct match_list {
	struct match *match;
	size_t count, cap;
	bool saw_data; /* the exact name is defined, but is no function */
	bool failed;   /* memory */
};

/* The version to match; all zero: the one that the static linker would choose. */
struct match_version {
	const char *name; /* NULL: none given */
	bool only_default;
};

/*
 * Functions (and untyped labels in code) of exactly this name. .dynsym first; the other tables only
 * where it has none, since users of the file mean the symbol in .dynsym. Stops after the table
 * `last` (TABLE_EXTRA may have to open a debug file).
 */
void match_exact(struct image *img, const char *name, const struct match_version *version,
		 enum image_table last, struct match_list *list);

/* Functions whose demangled name this is, with or without parameters. */
void match_demangled(struct image *img, const char *name, struct match_list *list);

/* Functions that the glob matches, mangled or demangled. `[` may be an ordinary character. */
void match_glob(struct image *img, const char *pattern, const struct match_version *version,
		struct match_list *list);

/* Functions that are versions of this name or glob: symbol_is_version(). */
void match_versions(struct image *img, const char *function, struct match_list *list);

/* The version that the image imports this exact name with ("" none); NULL: it does not. */
const char *match_import(struct image *img, const char *name);

/* Sorts by address and keeps one match per address: the shortest global name. */
void match_sort(struct match_list *list);
void match_list_free(struct match_list *list);

#endif
