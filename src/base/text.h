/* SPDX-License-Identifier: MIT */
#ifndef SB_TEXT_H
#define SB_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Names come from outside: file names, symbols, command lines, thread names. They may hold any
 * byte. These functions turn them into text that is safe to show, and never split a character. They
 * have no side effects. text_dup() and text_show() return memory that the caller frees; they abort
 * when memory runs out.
 *
 * Shown as escapes: control characters (C0, DEL, C1) as \n \t \x1b; bytes that are not UTF-8 as
 * \xff; characters that reorder or hide their neighbours (bidirectional marks, zero-width blanks)
 * as \u202e.
 */

/* A buffer of this size holds any result of text_quote(). */
#define TEXT_QUOTE_SIZE 128

/* Length (1 to 4) of the valid UTF-8 character at s, and its code point. 0: invalid, or the end. */
size_t text_utf8(const char *s, uint32_t *point);

/* A copy of s that is safe to show; NULL gives "-". */
char *text_show(const char *s);

/* As text_show() into buf. A text that is too long is cut between characters and ends in "...". */
char *text_quote(const char *s, char *buf, size_t size);

/* Columns of a terminal that s takes (s is a result of text_show()). */
size_t text_width(const char *s);

/* The number of bytes of s that fit into so many columns. */
size_t text_clip(const char *s, size_t columns);

/* s in so many columns: "..." replaces the middle of a text that is too long. The caller frees. */
char *text_middle(const char *s, size_t columns);

/*
 * The role of a process by its title. Ranks and workers of one kind have numbers in their titles
 * ("TP0", "worker-12/16"): with '#' for each number they have one role.
 */
void text_role(const char *title, char *buf, size_t size);

char *text_dup(const char *s); /* NULL stays NULL */

#endif
