/* SPDX-License-Identifier: MIT */
#ifndef SB_ROOM_THREAD_H
#define SB_ROOM_THREAD_H

#include "room.h"
#include "src/base/maps-look.h"

/*
 * Which thread of a mailbox's process may make which remote call; shared by room-step.c and
 * room-thread.c.
 */

/*
 * The thread sleeps in a call that a program sleeps in deliberately, and its stack has enough space
 * to load a library: it may carry out a command.
 */
bool room_thread_fit(const struct room *room, pid_t tid, struct maps_look *look);
pid_t room_any_fit(const struct room *room, struct tree *tree);

/* Marks a thread as unsuitable for a remote call, for now. */
void room_thread_unfit(struct room *room, pid_t tid);

bool room_thread_waits(pid_t tid); /* in any system call */
bool room_stack_at(struct maps_look *look, uint64_t sp);

/*
 * Interpreters with an `eval` (room_setup): whether the thread, stopped at pc, certainly holds none
 * of the interpreter's locks that queueing a call takes.
 */
bool room_thread_holds_none(const struct room *room, pid_t tid, uint64_t pc);

#endif
