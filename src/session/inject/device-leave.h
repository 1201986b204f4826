/* SPDX-License-Identifier: MIT */
#ifndef SB_SESSION_DEVICE_LEAVE_H
#define SB_SESSION_DEVICE_LEAVE_H

#include "inject/mailbox.h"

/*
 * The end of a device agent's room (inject/device-abi.h): which side unmaps it, and when. By the
 * session that made it, or by one that found it after a crash.
 */
enum device_room_end {
	DEVICE_ROOM_USED, /* the agent, or a thread that was lent, is in it: look again */
	DEVICE_ROOM_OURS, /* nothing is in it: unmap it */
	DEVICE_ROOM_GONE, /* it is unmapped, or the agent is about to do so */
};

/* Makes the agent end: its records are disabled, and what it has is flushed. */
void device_room_stop(const struct mailbox *room);

/*
 * started: sbinject has started the agent's thread. read: this session reads the agent's events and
 * sets `seen`; otherwise they are lost.
 */
enum device_room_end device_room_end(const struct mailbox *room, bool started, bool read);

/*
 * Of a room that a dead session has left: stops the agent. Dispatches events, for at most
 * patience_ns or until ends(ctx) (NULL: never) is true. What is not in use afterwards is left to
 * space_restore(), and what the agent unmaps by itself is not. SB_ETARGET: a thread is in it, so
 * all that it uses stays: space->agent_stays.
 */
int device_room_evict(struct space *space, struct tree *tree, pid_t pid, uint64_t patience_ns,
		      bool (*ends)(void *), void *ctx, struct sb_err *err);

#endif
