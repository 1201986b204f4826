/* SPDX-License-Identifier: MIT */
#include "device-leave.h"

#include <stddef.h>
#include <time.h>
#include "inject/clock.h"
#include "inject/device-abi.h"

static uint64_t device_at(const struct mailbox *room)
{
	return room->addr + SB_DEVICE_OFF;
}

static void set(const struct mailbox *room, size_t field, uint32_t value)
{
	memory_write(&room->space->mem, device_at(room) + field, &value, sizeof(value), NULL);
}

static bool look(const struct mailbox *room, struct sb_device *d)
{
	return memory_peek(&room->space->mem, device_at(room), d, sizeof(*d)) == sizeof(*d);
}

void device_room_stop(const struct mailbox *room)
{
	set(room, offsetof(struct sb_device, stop), 1);
}

/*
 * The agent answers `taken` by `left`. One that has seen nothing of sbinject for too long does not:
 * its state is SB_DEVICE_GONE then.
 */
enum device_room_end device_room_end(const struct mailbox *room, bool started, bool read)
{
	struct sb_device d;

	if (mailbox_entered(room))
		return DEVICE_ROOM_USED;
	if (!look(room, &d) || d.state == SB_DEVICE_GONE)
		return DEVICE_ROOM_GONE;
	if (d.magic != SB_DEVICE_MAGIC)
		return started ? DEVICE_ROOM_GONE : DEVICE_ROOM_OURS;
	if (!started || d.left)
		return DEVICE_ROOM_OURS;
	if (d.seen || (!read && d.final))
		set(room, offsetof(struct sb_device, taken), 1);
	return DEVICE_ROOM_USED;
}

/* ---- what a dead session has left ---- */

/* The agent has not ended. It unmaps the room when it does, unless it has left just now. */
static void leave_to_agent(struct space *space, const struct mailbox *room)
{
	struct sb_device d;

	set(room, offsetof(struct sb_device, taken), 0);
	if (!look(room, &d) || d.magic != SB_DEVICE_MAGIC || !d.left)
		space->room_size = 0;
}

static int stays(struct space *space, pid_t pid, struct sb_err *err)
{
	space->agent_stays = true;
	err_set(err, SB_ETARGET,
		"process %d: the thread that loads the device agent waits in the dynamic linker, "
		"so the agent's memory stays",
		pid);
	err_hint(err, "it blocks no attach; sbinject recover -p %d removes it later", pid);
	return -SB_ETARGET;
}

static int end_of(struct space *space, const struct mailbox *room, enum device_room_end end,
		  pid_t pid, struct sb_err *err)
{
	if (end == DEVICE_ROOM_GONE)
		space->room_size = 0;
	else if (end == DEVICE_ROOM_USED && mailbox_entered(room))
		return stays(space, pid, err);
	else if (end == DEVICE_ROOM_USED)
		leave_to_agent(space, room);
	return 0;
}

/*
 * Whether the agent was started is known once no thread is in the room: the turn is over, and none
 * enters it any more.
 */
static enum device_room_end look_again(const struct mailbox *room)
{
	if (mailbox_entered(room))
		return DEVICE_ROOM_USED;
	return device_room_end(room, mailbox_applied(room), false);
}

int device_room_evict(struct space *space, struct tree *tree, pid_t pid, uint64_t patience_ns,
		      bool (*ends)(void *), void *ctx, struct sb_err *err)
{
	struct mailbox *room = mailbox_load_room(space, tree, pid);
	uint64_t until = clock_ns() + patience_ns;
	enum device_room_end end;
	int ret = 0;

	if (!room)
		return 0;
	device_room_stop(room);
	while ((end = look_again(room)) == DEVICE_ROOM_USED && clock_ns() < until &&
	       tree_proc(tree, pid) && !(ends && ends(ctx))) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		tree_dispatch(tree);
	}
	if (tree_proc(tree, pid))
		ret = end_of(space, room, end, pid, err);
	mailbox_free(room);
	return ret;
}
