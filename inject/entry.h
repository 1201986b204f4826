/* SPDX-License-Identifier: MIT */
#ifndef SB_ENTRY_H
#define SB_ENTRY_H

#include <stddef.h>
#include <stdint.h>
#include "page-abi.h"

/*
 * Code that runs in the target, in a page right before its room (page-abi.h): it carries out
 * what the room asks for, on a thread where that is allowed. It is copied there as it is, so
 * it refers to nothing outside itself; everything it needs stands in the room.
 *
 * Two ways in:
 *
 *	entry_pending	a pending call of the interpreter: the GIL is held, Python may run
 *	entry_lent	a thread that sbinject has borrowed and let go: does room->lent_op,
 *			writes lent_status, then waits to be recalled, so that sbinject can give
 *			the thread back what the stop had interrupted; at lent_until it leaves by
 *			itself, and says so
 *
 * A command runs once, whoever comes first: `busy` is its lock, done == asked says it is done.
 * `queued` counts pending calls that the interpreter still holds: until they have run the code
 * must stay.
 */
enum entry_op {
	ENTRY_QUEUE = 1, /* Py_AddPendingCall(entry_pending, room) */
	ENTRY_ENSURE,	 /* take the GIL, carry out, give it back */
	ENTRY_HERE,	 /* carry out, if this thread holds the GIL */
	ENTRY_QUEUE_ANY, /* a pending call for whichever thread comes first; from 3.12 on */
};

enum entry_status {
	ENTRY_OK = 1,
	ENTRY_HOLDS_GIL, /* ENSURE: the thread holds it already: it may be in the middle of things
			  */
	ENTRY_NO_STATE,	 /* ENSURE: no thread of the interpreter's */
	ENTRY_NOT_READY, /* the interpreter is not initialized, or ends */
	ENTRY_FULL,	 /* QUEUE: the interpreter's queue is full */
	ENTRY_ELSEWHERE, /* ENSURE: the thread sleeps in a subinterpreter, from 3.12 on */
};

/* room->parked: this, and above it whose turn it is. A thread that was lent by an sbinject that is
 * dead may still be there; its turn is over when the next is lent. */
enum entry_parked {
	ENTRY_AT_WORK,
	ENTRY_PARKED, /* waits; registers may be changed */
	ENTRY_LEFT,   /* on its way back by itself: hands off */
};

enum { ENTRY_TURN_SHIFT = 8, ENTRY_TURNS = 0xfff };

/* Order of room->function. */
enum entry_function {
	ENTRY_DLOPEN,
	ENTRY_DLSYM,
	ENTRY_DLCLOSE,
	ENTRY_DLERROR,
	ENTRY_ADD_PENDING,
	ENTRY_MAKE_PENDING,
	ENTRY_THIS_STATE,
	ENTRY_CURRENT_STATE,
	ENTRY_IS_INITIALIZED,
	ENTRY_ENSURE_GIL,
	ENTRY_RELEASE_GIL,
	ENTRY_ADD_ANY, /* _PyEval_AddPendingCall as of 3.12, or 0 */
	ENTRY_MAIN_INTERPRETER,
	ENTRY_PENDING, /* where entry_pending is */
	ENTRY_FUNCTIONS
};

/* The code, and where in it the ways in are. */
extern const char __start_sb_entry[], __stop_sb_entry[];
int entry_pending(void *room);
void entry_lent(uintptr_t arg); /* the room, and in its low bits the turn */

#endif
