/* SPDX-License-Identifier: MIT */
#ifndef SB_SPEC_PRIV_H
#define SB_SPEC_PRIV_H

#include "spec.h"

/* What spec.c (one target, its keys) offers to words.c (the words of a line). */

extern const char spec_form_hint[];

enum { SPEC_NO_KEY = 31 };

/* The row of the table of keys that the word begins with, or SPEC_NO_KEY; reads its value. */
size_t spec_key_find(const char *word);
bool spec_key_repeats(size_t key); /* several times a target */
int spec_key_read(struct spec *spec, size_t key, const char *word, struct sb_err *err);

/* Parses a TARGET into *spec, which has its defaults. */
int spec_target_parse(struct spec *spec, const char *word, struct sb_err *err);
void spec_clear(struct spec *spec); /* frees what it owns */

/* Moves all targets of `more`, which is empty then, to the end of `list`. */
void spec_list_join(struct spec_list *list, struct spec_list *more);

/* Records the failure of one word: `what 'word' why`; of a wrong key, with all keys as the hint. */
int spec_refuse(struct sb_err *err, const char *what, const char *word, const char *why,
		const char *hint);
int spec_refuse_key(struct sb_err *err, const char *word, const char *why);
/* As spec_refuse_key() for arg=, ret and sum=; why NULL: 0. */
int spec_refuse_value(struct sb_err *err, const char *word, const char *why);
int spec_refuse_memory(struct sb_err *err);

#endif
