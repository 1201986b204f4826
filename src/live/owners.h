/* SPDX-License-Identifier: MIT */
#ifndef SB_OWNERS_H
#define SB_OWNERS_H

#include "evidence/evidence.h"

/*
 * Whose the futexes are: of an address in the data of a mapped file its symbol; of any address the
 * functions that wait there, the first on the way up that does not belong to the machinery of
 * waiting (the C and C++ libraries, the runtime's locks). Both from the files of the processes;
 * the stacks were copied by the kernel (evidence_stack()). No process is stopped or read.
 */
struct owners;

enum { OWNERS_CALLERS = 4 };

struct owners *owners_open(void);
void owners_close(struct owners *o); /* NULL is harmless */

/* Looks at the addresses with the longest waits so far. The names are those of the programs that
 * run now: call it often. */
void owners_look(struct owners *o, const struct evidence *e, const struct evidence_reading *r);

/* Of the number of an address; NULL: not known. */
const char *owners_symbol(const struct owners *o, size_t number);
/* Number i of the functions that were seen to wait, in the order in which they were. */
const char *owners_caller(const struct owners *o, size_t number, size_t i);

#endif
