/* SPDX-License-Identifier: MIT */
#ifndef SB_PRESET_H
#define SB_PRESET_H

#include <stdbool.h>
#include <stddef.h>
#include "src/base/err.h"

/*
 * Presets: words that stand for lists of targets. A preset is a file NAME.preset, a row a line:
 *
 *	KIND FUNCTION-GLOB MODULE-GLOB [KEY=VALUE]...
 *
 * separated by blanks; '#' starts a comment. A row is one target, whose function means all of its
 * versions (symbol_is_version() of elf/symbol.h). Of two rows that match one function the first has
 * it. sbinject-presets(5) has it all.
 *
 *	WORD := NAME		all rows
 *	      | NAME ":" KIND	the rows of a kind
 *	      | NAME ":" FUNCTION	the row of a function, or that of this very FUNCTION-GLOB
 *
 * The target of a row is written NAME:FUNCTION-GLOB, which is such a word, too.
 */
enum preset_kind {
	PRESET_LAUNCH,
	PRESET_MEMCPY,
	PRESET_MEMSET,
	PRESET_ALLOC,
	PRESET_FREE,
	PRESET_SYNC,
	PRESET_GRAPH,
	PRESET_EVENT,
	PRESET_MODULE,
	PRESET_LOCK,	/* takes a lock: waits for it */
	PRESET_RDLOCK,	/* ... to share it */
	PRESET_TRYLOCK, /* ... or gives up */
	PRESET_TRYRDLOCK,
	PRESET_UNLOCK,
	PRESET_CONDWAIT, /* releases a lock, waits, and takes it again */
	PRESET_LOCKINIT, /* makes or destroys a lock */
	PRESET_OTHER,
	PRESET_KINDS
};

struct preset_row {
	const struct preset *preset;
	enum preset_kind kind;
	char *function, *module; /* globs */
	char **key;		 /* words: KEY=VALUE */
	size_t n_keys;
	unsigned int line;
};

struct preset {
	char *name, *path;
	struct preset_row *row;
	size_t n_rows;
};

/* Is a word this, and only letters, digits, '-' and '_'? Only such names are searched for. */
bool preset_is_name(const char *text, size_t len);

const char *preset_kind_name(enum preset_kind kind); /* "launch" */

/* Parses the text of a file. On success the caller frees *out. SB_ESPEC: "PATH:LINE: ...". */
int preset_parse(const char *text, size_t len, const char *name, const char *path,
		 struct preset **out, struct sb_err *err);
void preset_free(struct preset *preset);

/*
 * Reads a preset of that name (preset_is_name()) from the user's directory, else from the one
 * beside the program; later calls give the same. Borrowed for good. 0 and NULL: there is none.
 * SB_EFILE: the file is not to be trusted, or cannot be read. SB_ESPEC: a line of it is wrong.
 */
int preset_get(const char *name, size_t len, const struct preset **out, struct sb_err *err);

/* The names of all presets, for a hint: "cuda, cudart, nccl"; "" without any. */
void preset_names(char *buf, size_t size);

/*
 * The rows that a word means, by what stands behind its ':' (NULL: nothing): those i with
 * preset_takes(). A word that means none is SB_ESPEC, with near names. `what` is borrowed.
 */
struct preset_choice {
	const struct preset *preset;
	const char *what; /* NULL: all rows */
	size_t stem;	  /* length of `what` without the suffixes of a version */
	int kind;	  /* -1: none */
	size_t row;	  /* the only row; SIZE_MAX: those of the kind, or all */
	bool narrower;	  /* `what` is one function of that row's pattern */
};

int preset_choose(const struct preset *preset, const char *what, struct preset_choice *choice,
		  struct sb_err *err);
bool preset_takes(const struct preset_choice *choice, size_t row);

#endif
