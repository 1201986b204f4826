/* SPDX-License-Identifier: MIT */
#ifndef SB_READER_H
#define SB_READER_H

#include <stdbool.h>

/*
 * The reader: a process without privileges that searches files of targets for names (symbols,
 * DWARF, demangling, packed symbols), with limits on memory and time. It gets the descriptor of the
 * file that this process has parsed, and answers symbol_find(), symbol_find_line(),
 * symbol_find_everywhere() and symbol_count_inlined(). A file that ends it, or on which it works
 * too long, is refused with a reason (image_flaw()), and the next search starts another one.
 *
 * reader_start(): starts it now, while this process has nothing to lose yet; else the first search
 * does. It ends with this process.
 */
void reader_start(void);
/* From now on this process searches itself: for the reader, and for tests of the search. */
void reader_local(void);

#endif
