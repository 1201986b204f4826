/* SPDX-License-Identifier: MIT */
#ifndef SB_READER_WIRE_H
#define SB_READER_WIRE_H

#include "image-priv.h"
#include "symbol.h"
#include "unwind-rules.h"

/*
 * Between a process and its reader: a question, with one or two descriptors; the file's name and
 * the searched one; an answer; its records. The answer comes from a process that a hostile file may
 * have taken over: every number is checked.
 */
enum reader_op {
	READER_FIND,
	READER_LINE,
	READER_EVERYWHERE,
	READER_COUNT,
	READER_NEAR,	  /* names only: their addresses mean nothing */
	READER_NAME,	  /* of an address: one symbol or none */
	READER_OBJECT,	  /* the same of data: a name only */
	READER_ARGUMENTS, /* of the function at an address: one symbol, whose name they are */
	READER_RULES,	  /* no symbols: the unwinder's rules for an address */
	READER_INDEX,	  /* no symbols: the index of functions, and Go's table */
};

/* Several times what the largest programs have. */
#define READER_SYMBOLS (2u << 20)
#define READER_BYTES   (512u << 20)
#define READER_LONGEST (1u << 20)

struct reader_ask {
	uint32_t op, flags, line, wants_err;
	uint32_t name_len, text_len;
	uint64_t vaddr; /* READER_NAME, READER_OBJECT, READER_ARGUMENTS,
			 * READER_RULES */
};

enum reader_flaw { READER_SLOW = 1, READER_TORN = 2, READER_PACKED = 4, READER_DEBUG = 8 };

struct reader_reply {
	int32_t ret;
	uint32_t flaws;
	uint32_t n_sym, n_inlined; /* all copies that the image knows */
	uint32_t n_func, n_go;
	uint64_t bytes;	 /* of the records: symbols, copies, functions, Go's, names */
	uint64_t number; /* READER_COUNT; READER_RULES: 1 if there are some */
	struct unwind_rules rules;
	struct sb_err err;
};

struct reader_sym {
	uint64_t vaddr, size;
	uint32_t offset, name_len;
	uint8_t ifunc, pad[7];
};

/* Of the index: image_func without the number of its symbol. */
struct reader_func {
	uint32_t start, size;
	uint32_t table; /* TABLE_EXTRA: only a debug file names it; else TABLE_DYNSYM */
};

struct reader_go {
	uint64_t start;
	uint32_t assembly, pad;
};

/*
 * reader-take.c: the answer's records, which belong to `bytes`. False: it cannot be true, or there
 * is no memory. list: NULL where no symbols are awaited.
 */
bool reader_is_plausible(const struct reader_reply *reply);
bool reader_take(struct image *img, enum reader_op op, const struct reader_reply *reply,
		 const char *bytes, struct symbol_list *list);

/* Serves questions until the other end is closed. */
void reader_serve(int fd);

#endif
