/* SPDX-License-Identifier: MIT */
#ifndef SB_ENTRY_H
#define SB_ENTRY_H

#include <stddef.h>
#include <stdint.h>
#include "page-abi.h"

/*
 * Code that runs in the target, in a page directly before the mailbox (page-abi.h). It carries out
 * the command in the mailbox, on a thread where that is allowed. It is copied there as it is, so it
 * refers to nothing outside itself; everything it needs is in the mailbox.
 *
 * Two entry points:
 *
 *	entry_pending	a pending call of the interpreter: the GIL is held, Python may run
 *	entry_async	a remote call that the thread runs by itself (remote_async()): carries
 *			out mailbox->async_op, writes async_status, then waits for
 *remote_async_end(), with which sbinject restores what the stop had interrupted; at async_until it
 *leaves by itself, and marks that
 *
 * A command runs once, on the first thread that reaches it: `busy` is its lock, and done == asked
 * means that it is done. `queued` counts the pending calls that the interpreter still holds: the
 * code must stay until they have run.
 */
enum entry_op {
	ENTRY_QUEUE = 1, /* Py_AddPendingCall(entry_pending, mailbox) */
	ENTRY_ENSURE,	 /* take the GIL, carry out, give it back */
	ENTRY_HERE,	 /* carry out, if this thread holds the GIL */
	ENTRY_QUEUE_ANY, /* a pending call for whichever thread is first; since 3.12 */
	ENTRY_PLAIN,	 /* carry out, without an interpreter */
};

enum entry_status {
	ENTRY_OK = 1,
	ENTRY_HOLDS_GIL, /* ENSURE: the thread already holds the GIL: it may be in the middle of an
			  * operation */
	ENTRY_NO_STATE,	 /* ENSURE: not a thread of the interpreter */
	ENTRY_NOT_READY, /* the interpreter is not initialized, or is finalizing */
	ENTRY_FULL,	 /* QUEUE: the interpreter's queue is full */
	ENTRY_ELSEWHERE, /* ENSURE: the thread sleeps in a subinterpreter; since 3.12 */
};

/*
 * mailbox->parked: one of these values, and above it the number of the current turn. A thread in a
 * remote call of a dead sbinject may still be there; its turn ends when the next one begins.
 */
enum entry_parked {
	ENTRY_AT_WORK,
	ENTRY_PARKED, /* it waits; its registers may be changed */
	ENTRY_LEFT,   /* it is on its way back by itself: do not change its registers */
};

enum { ENTRY_TURN_SHIFT = 8, ENTRY_TURNS = 0xfff };

/* Indices of mailbox->function. */
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

/* The code, and the offsets of its entry points. */
extern const char __start_sb_entry[], __stop_sb_entry[];
int entry_pending(void *mailbox);
void entry_async(uintptr_t arg); /* the mailbox, and in its low bits the turn */

#endif
