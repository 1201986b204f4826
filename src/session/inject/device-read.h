/* SPDX-License-Identifier: MIT */
#ifndef SB_DEVICE_READ_H
#define SB_DEVICE_READ_H

#include "trace.h"
#include "inject/device-abi.h"
#include "inject/memory.h"

/*
 * Reads what device agents write in their rooms (inject/device-abi.h), and shows them that sbinject
 * is there, in a thread of its own: neither waits for the session's thread nor for the pipe. What
 * is in a room is data from outside: a ring that is not as an agent leaves it is read no more.
 *
 * The session's thread calls these functions.
 */
struct device_reader;
struct device_room;

/* NULL: no thread could be started. */
struct device_reader *device_reader_open(struct tracing *tracing);
void device_reader_close(struct device_reader *reader); /* no room is left; NULL is harmless */

/* A room whose struct sb_device is at that address; mem is owned from here on. */
struct device_room *device_room_open(struct device_reader *reader, pid_t pid,
				     const struct memory *mem, uint64_t at);

/* The agent's part as it was last read. False: nothing of it can be read (any more). */
bool device_room_look(struct device_reader *reader, struct device_room *r, struct sb_device *now);

/* What was made of a room, or of several. */
struct device_sums {
	uint64_t processes;
	uint64_t records, written, dropped, unknown, cupti_dropped; /* as struct sb_device */
	uint64_t spans;	     /* sent on: as many as were written, if all were read */
	uint64_t clock_ns;   /* the largest error of their times */
	uint64_t late_ns;    /* the longest time of a process before its records began */
	bool damaged;	     /* a ring was not as an agent leaves it */
	const char *cut_why; /* why records may be missing, the first reason; NULL: none are */
};

/*
 * Reads the rest, adds up and frees. since_ns: from when on the process was to be recorded, as
 * device_now_ns(). False: the agent had not begun, and nothing is added.
 */
bool device_room_close(struct device_reader *reader, struct device_room *r, uint64_t since_ns,
		       struct device_sums *sums);

uint64_t device_now_ns(void); /* CLOCK_MONOTONIC */

#endif
