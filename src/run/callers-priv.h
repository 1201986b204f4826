/* SPDX-License-Identifier: MIT */
#ifndef SB_CALLERS_PRIV_H
#define SB_CALLERS_PRIV_H

#include "callers.h"
#include "elf/unwind.h"
#include "python-stack.h"
#include "src/base/maps.h"

/* Inside of callers.h: callers.c walks stacks, callers-names.c knows what is at an address. */
enum { NAMES_MOST = 1 << 18 };

/* A file, which may be mapped by many processes. */
struct file {
	uint32_t dev;
	uint64_t inode;
	struct image *img; /* NULL: it cannot be read */
};

struct space {
	pid_t pid;
	struct maps maps; /* of code */
	uint32_t *file;	  /* of each entry, its number plus 1; 0: no file */
};

/* The name of a place in a file, by the hash of both. */
struct name {
	uint32_t file;
	bool called;
	uint64_t vaddr;
	char *text; /* NULL: free */
};

struct callers {
	struct file *file;
	size_t n_files;
	struct space *space;
	size_t n_spaces;
	struct name *name; /* NAMES_MOST of them */
	size_t n_names;
	bool pending;
	struct trace_stack_head head;
	uint64_t *word;
	size_t n_words, room;
	/* What callers_take() returns. */
	struct trace_stack stack;
	const char *frame[TRACE_FRAMES_MAX];
	char place[24]; /* of a frame in no file, the last one */
	char end[512];
	struct python_stack python;
};

/* Where a frame is. */
struct at {
	const struct map_entry *map;
	uint32_t file; /* 0: in none */
	struct image *img;
	uint64_t bias;
};

/* Its maps; NULL: they never came. */
struct space *callers_space(struct callers *c, pid_t pid);
void callers_find(const struct callers *c, const struct space *s, const struct unwind_regs *regs,
		  struct at *at);

/* The name of a place in code; called: it is where a call returns to. Valid until names are
 * forgotten. */
const char *callers_name(struct callers *c, uint32_t file, const char *path, uint64_t vaddr,
			 bool called);
void callers_forget_names(struct callers *c);
void callers_bound_names(struct callers *c); /* forgets them where they are too many */

#endif
