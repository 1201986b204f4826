/* SPDX-License-Identifier: MIT */
#ifndef SB_IMAGE_PRIV_H
#define SB_IMAGE_PRIV_H

#include <time.h>
#include "budget.h"
#include "debugfile.h"
#include "ehframe.h"
#include "gotab.h"
#include "image.h"
#include "mapping.h"
#include "names.h"
#include "symtab.h"

/* Shared by the files of this folder that work on an image; other folders use image.h only. */

struct image_load {
	uint64_t vaddr, offset, filesz, memsz;
	uint32_t flags;
};

/* A function of the index; start counts from the first text segment's vaddr. */
struct image_func {
	uint32_t start, size; /* size 0: unknown */
	uint32_t sym;	      /* number in its table << 2 | table */
};

enum image_table { TABLE_DYNSYM, TABLE_SYMTAB, TABLE_EXTRA, TABLE_COUNT };

struct image {
	struct image *next;
	unsigned int refs;
	uint64_t dev, ino;
	uid_t uid; /* the file's owner */
	struct timespec mtime;
	uint32_t map_dev; /* as /proc/PID/maps shows the file; map_ino 0: not looked up yet */
	uint64_t map_ino;
	int fd; /* the parsed file, open as long as the image; -1: no descriptor was left */

	char *name;
	char *root; /* "/proc/PID/root" of the process it was found in, or "" */
	struct budget budget;
	const char
		*flaw; /* see image_flaw(); NULL: none except a torn mapping and a spent budget */
	struct mapping map;
	struct view view; /* of map */
	struct image_load *load;
	uint32_t load_count;
	uint64_t loaded, executed; /* bytes */
	const char *soname, *interp;
	bool textrel, go;
	char build_id[2 * 64 + 1];
	struct view_range dynamic; /* PT_DYNAMIC's entries */

	struct symtab tab[TABLE_COUNT];
	struct names names[TABLE_COUNT]; /* built after many exact names have been searched */
	unsigned int exact_asked;
	int debug_fd; /* the separate debug file; -1: there is none, or not looked for yet */
	bool debug_tried;
	struct debugfile debug; /* owns the bytes of TABLE_EXTRA */
	bool extra_tried;
	struct gotab gotab; /* Go's; TABLE_EXTRA is made from it where there is no other source */
	bool gotab_tried;
	struct ehframe eh;
	struct unwind_kept *kept_rules; /* of unwind.c, to be freed; NULL: none yet */

	struct inline_copy { /* a range of a copy of an inlined function, of those found so far */
		uint64_t entry, begin, end;
		bool several; /* it begins at several places, or at an unknown one */
	} * inlined;	      /* sorted by entry */
	size_t n_inlined;

	struct image_func *func; /* sorted; built at the first query */
	size_t func_count;
	uint64_t func_base;
	bool func_built;
};

/* Opens a file by a descriptor, which stays the caller's; see image_get(). */
int image_get_open(int fd, const char *name, const char *root, struct image **out,
		   struct sb_err *err);
/* Forgets all images, without a change to them: in a child with its own descriptors. */
void images_abandon(void);
/* image-debug.c: the separate debug file, opened at the first call; -1: there is none. */
int image_debug_fd(struct image *img);

/* Flaws that the reader finds, too. */
extern const char image_flaw_packed[], image_flaw_debug[];

/* True if vaddr lies in an executable segment's file-backed part. */
bool image_in_text(const struct image *img, uint64_t vaddr);

/* The value of a tag of PT_DYNAMIC; false if it is not there. */
bool image_dynamic(const struct image *img, int64_t tag, uint64_t *value);

/* The table, loaded if need be (TABLE_EXTRA); NULL where the image has none. */
const struct symtab *image_table(struct image *img, enum image_table which);

/* Go's own table, read if need be; empty where the image has none that is supported. */
struct gotab *image_gotab(struct image *img);

/* True if sym defines code: a function in an executable segment. labels: untyped ones too. */
bool image_is_function(const struct image *img, const Elf64_Sym *sym, bool labels);

/* Number of the index entry around vaddr, or -1. */
ptrdiff_t image_func_around(struct image *img, uint64_t vaddr);

/* The function's end: its size, or the next function's start, the segment's end at most. */
uint64_t image_func_end(struct image *img, size_t i);
/* Builds the index if need be: every query of func.c does. */
void image_index(struct image *img);
void image_func_free(struct image *img);

/*
 * Where the index comes from if not from this process: fills func and, for Go, gotab, or gives the
 * image a flaw; func_base is set. False: this process builds it.
 */
typedef bool image_index_fn(struct image *img);
void image_index_from(image_index_fn *from);

/* Fills soname, interp, build_id, go, textrel, .dynsym from headers that were checked. */
int image_describe(struct image *img, struct sb_err *err);

#endif
