/* SPDX-License-Identifier: MIT */
#ifndef SB_SYMBOL_H
#define SB_SYMBOL_H

#include "image.h"

/*
 * Names to addresses within one image; the reader (reader.h) searches. Both symbol tables are
 * searched (.symtab, .dynsym), and for stripped files .gnu_debugdata and the separate debug file
 * found by build-id.
 *
 * Pattern: a plain name, `name@VERSION` or `name@@VERSION`, a C++ or Rust demangled name with or
 * without its parameter list, `SYMBOL+0xOFF`, `0xADDR`; tried exactly first, then as a glob over
 * mangled and demangled names (`*` `?` `[...]`; `[` is literal where the name has it, as operator[]
 * does). SYMBOL_LITERAL: never a glob. SYMBOL_VERSIONS: a name or glob, and all its versions as
 * symbol_is_version() has them; no other form is read.
 *
 * Aliases at one address are one match; its name is the one in the pattern, else the shortest
 * global one. Without a version the default version wins over hidden ones (memcpy@@GLIBC_2.14 over
 * memcpy@GLIBC_2.2.5), as the static linker would choose.
 */
enum symbol_flags { SYMBOL_LITERAL = 1, SYMBOL_VERSIONS = 2 };

struct symbol {
	uint64_t vaddr;
	uint64_t size;	 /* 0 where the table has none */
	uint32_t offset; /* bytes past the symbol's start (SYMBOL+0xOFF), else 0 */
	bool ifunc;	 /* vaddr is the resolver's, not the function's */
	char *name;	 /* as in the table, with @VERSION only if the pattern has it */
};

struct symbol_list {
	struct symbol *sym;
	size_t count;
	struct image *img; /* a counted reference */
};

/*
 * Every function that the pattern names, sorted by address, at least one.
 * Errors: SB_ENOSYMBOL (hint: near names), SB_ENOTFUNC (only data symbols match),
 * SB_EAMBIGUOUS (one exact name, several local functions at different addresses; the hint
 * lists them as FILE-less addresses that can be typed as 0xADDR), SB_ESPEC.
 */
int symbol_find(struct image *img, const char *pattern, unsigned int flags, struct symbol_list *out,
		struct sb_err *err);
void symbol_list_free(struct symbol_list *list);

/* True if the image only imports this exact name (undefined in .dynsym). */
bool symbol_is_import(struct image *img, const char *name);

/* True if the image defines this exact name as a function in .dynsym or .symtab. */
bool symbol_is_defined(struct image *img, const char *name);

/* Near names of n images for an error's hint: "did you mean 'a', 'b'?", or "". */
void symbol_suggest(struct image *const *img, size_t n, const char *name, char *buf, size_t size);

/*
 * `FILE:LINE` through DWARF: where the line begins, in each function that has it and each inline
 * copy; each is one match.
 */
int symbol_find_line(struct image *img, const char *file, unsigned int line,
		     struct symbol_list *out, struct sb_err *err);

/*
 * Functions of that name (exact, a glob, mangled or not) and where the compiler inlined them, from
 * DWARF; the name of each copy is that of the function around it. SB_ENOSYMBOL: neither, or there
 * is no DWARF. symbol_count_inlined(): the number of copies that an exact name has.
 */
int symbol_find_everywhere(struct image *img, const char *name, unsigned int flags,
			   struct symbol_list *list, struct sb_err *err);
size_t symbol_count_inlined(struct image *img, const char *name);
void symbol_hint_inlined(size_t n, struct sb_err *err); /* writes the remedy for n copies */

/*
 * The arguments of the C or C++ function at vaddr, of that symbol's name, from DWARF: words as
 * arg= takes them behind its '=', "fd:1:i32 buf:2:ptr", for those in integer registers. Where some
 * are left out, a newline and the reason for the first one follow. To be freed, and to be checked
 * as what a user typed: the file decides it. SB_ENOSYMBOL: not known; `what` ends "...: ".
 */
int symbol_arguments(struct image *img, uint64_t vaddr, const char *name, char **text,
		     struct sb_err *err);

/* The name of the function that begins at start, else its address; to be freed. */
char *symbol_holder(struct image *img, uint64_t start);

/* The name to show for a code address: "name" or "name+0xOFF"; false if unknown. Longer ones are
 * cut, and so is one that fills a buffer of this size. */
enum { SYMBOL_NAME_MOST = 16384 };
bool symbol_name_at(struct image *img, uint64_t vaddr, char *buf, size_t size);

/* The data object of the file's own tables around vaddr, as "name" or "name+0xOFF"; to be freed.
 * NULL: none. Reads all symbols. */
char *symbol_object(struct image *img, uint64_t vaddr);

/*
 * Is a name one of the versions of a function (a name or a glob)? Its own name, and that with
 * suffixes as CUDA's libraries append them: _v2, _ptsz and _ptds (the calling thread's default
 * stream), _64 (of wider integers), in any order.
 */
bool symbol_is_version(const char *function, const char *name);
size_t symbol_version_stem(const char *name); /* its length without such suffixes */

/* A symbol for display: demangled where it is mangled, "+0xOFF" kept. To be freed. */
char *symbol_shown(const char *symbol);

/* Shell-style match without locale: `*` (any run, `/` included), `?`, `[a-z]`, `[!a-z]`, `\`. */
bool glob_match(const char *pattern, const char *text);
bool glob_is_pattern(const char *text); /* has an unescaped * ? or [ */

#endif
