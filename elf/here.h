/* SPDX-License-Identifier: MIT */
#ifndef SB_HERE_H
#define SB_HERE_H

#include "suggest.h"
#include "symbol.h"
#include "unwind-rules.h"

/*
 * The searches of symbol.h themselves, in this process: for the reader (reader.h). Without `here`
 * the same functions ask the reader.
 */
int here_find(struct image *img, const char *pattern, unsigned int flags, struct symbol_list *out,
	      struct sb_err *err);
int here_find_line(struct image *img, const char *file, unsigned int line, struct symbol_list *out,
		   struct sb_err *err);
int here_find_everywhere(struct image *img, const char *name, unsigned int flags,
			 struct symbol_list *list, struct sb_err *err);
size_t here_count_inlined(struct image *img, const char *name);
/* One symbol, with symbol_arguments()' text as its name. */
int here_arguments(struct image *img, uint64_t vaddr, const char *name, struct symbol_list *out,
		   struct sb_err *err);
/* Offers the near names of one image. */
void here_suggest(struct image *img, struct suggester *near);
bool here_name_at(struct image *img, uint64_t vaddr, char *buf, size_t size);
/* As unwind_rules(). */
bool here_rules(struct image *img, uint64_t vaddr, struct unwind_rules *out);
/* As symbol_object(). */
char *here_object(struct image *img, uint64_t vaddr);
char *here_holder(struct image *img, uint64_t start);

#endif
