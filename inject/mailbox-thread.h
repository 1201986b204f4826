/* SPDX-License-Identifier: MIT */
#ifndef SB_MAILBOX_THREAD_H
#define SB_MAILBOX_THREAD_H

#include "mailbox.h"
#include "src/base/maps-look.h"

/*
 * Which thread of a mailbox's process may make which remote call; shared by mailbox-step.c and
 * mailbox-thread.c.
 */

/*
 * The thread sleeps in a call that a program sleeps in deliberately, and its stack has enough space
 * to load a library: it may carry out a command.
 */
bool mailbox_thread_fit(const struct mailbox *mailbox, pid_t tid, struct maps_look *look);
pid_t mailbox_any_fit(const struct mailbox *mailbox, struct tree *tree);

/* Marks a thread as unsuitable for a remote call, for now. */
void mailbox_thread_unfit(struct mailbox *mailbox, pid_t tid);

bool mailbox_thread_waits(pid_t tid); /* in any system call */
bool mailbox_stack_at(struct maps_look *look, uint64_t sp);

/*
 * Interpreters with an `eval` (mailbox_setup): whether the thread, stopped at pc, certainly holds
 * none of the interpreter's locks that queueing a call takes.
 */
bool mailbox_thread_holds_none(const struct mailbox *mailbox, pid_t tid, uint64_t pc);

#endif
