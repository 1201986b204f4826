/* SPDX-License-Identifier: MIT */
#ifndef SB_TEXT_H
#define SB_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Names come from outside: file names, symbols, command lines, thread names. They may hold any
 * byte. This room turns them into text that is safe to show, and never cuts a character in two.
 * Pure; text_dup() and text_show() return memory for the caller to free and abort without it.
 *
 * Shown as escapes: control characters (C0, DEL, C1) \n \t \x1b, bytes that are no UTF-8 \xff,
 * and what reorders or hides its neighbours (bidirectional marks, zero-width blanks) \u202e.
 */

/* A buffer of this size holds any text_quote(). */
#define TEXT_QUOTE_SIZE 128

/* Length (1 to 4) of the valid UTF-8 character at s and its code point; 0: none, or the end. */
size_t text_utf8(const char *s, uint32_t *point);

/* s made safe to show; NULL is shown as "-". */
char *text_show(const char *s);

/* As text_show() into buf, cut at a character's border with "..." when it is too long. */
char *text_quote(const char *s, char *buf, size_t size);

/* Columns of a terminal that s takes (s as text_show() made it). */
size_t text_width(const char *s);

/* How many bytes of s fit into so many columns. */
size_t text_clip(const char *s, size_t columns);

/* s in so many columns: what is too long loses its middle to "..."; the caller frees. */
char *text_middle(const char *s, size_t columns);

char *text_dup(const char *s); /* NULL stays NULL */

#endif
