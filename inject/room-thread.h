/* SPDX-License-Identifier: MIT */
#ifndef SB_ROOM_THREAD_H
#define SB_ROOM_THREAD_H

#include "room.h"
#include "src/base/maps.h"

/* Which thread of a room's process may be lent for what; between room-step.c and room-thread.c. */

/*
 * It sleeps in a call that a program sleeps in of its own will, and its stack has room to load a
 * library on: it may carry a command out.
 */
bool room_thread_fit(const struct room *room, pid_t tid);
pid_t room_any_fit(const struct room *room, struct tree *tree);

/* One that turned out not to be the one to borrow, for now. */
void room_thread_unfit(struct room *room, pid_t tid);

bool room_thread_waits(pid_t tid); /* in a system call, whichever it is */
bool room_stack_at(const struct maps *maps, uint64_t sp);

/*
 * Interpreters with an `eval` (room_setup): whether the thread, stopped at pc, surely holds none of
 * the locks of the interpreter's that queueing a call takes.
 */
bool room_thread_holds_none(const struct room *room, pid_t tid, uint64_t pc);

#endif
