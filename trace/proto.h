/* SPDX-License-Identifier: MIT */
#ifndef SB_TRACE_PROTO_H
#define SB_TRACE_PROTO_H

#include <stdint.h>
#include <string.h>

/*
 * Protocol buffers, as much as traces need of them, and the numbers of Perfetto's fields (its
 * protos/perfetto/trace/: trace_packet.proto and what it imports), shared by writer and reader.
 */
enum { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5, PB_VARINT_MAX = 10 };

static inline char *pb_varint(char *at, uint64_t n)
{
	for (; n > 0x7f; n >>= 7)
		*at++ = (char)(n | 0x80);
	*at++ = (char)n;
	return at;
}

static inline char *pb_number(char *at, uint32_t field, uint64_t n)
{
	return pb_varint(pb_varint(at, field << 3 | PB_VARINT), n);
}

/* The bytes, and in front of them their length. */
static inline char *pb_bytes(char *at, uint32_t field, const void *bytes, size_t n)
{
	at = pb_varint(pb_varint(at, field << 3 | PB_BYTES), n);
	memcpy(at, bytes, n);
	return at + n;
}

static inline char *pb_text(char *at, uint32_t field, const char *text)
{
	return pb_bytes(at, field, text, strlen(text));
}

enum {
	TRACE_PACKET = 1,

	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_FIRST = 87,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK = 60,
	FLAGS_STATE_CLEARED = 1,

	SNAPSHOT_CLOCK = 1,
	SNAPSHOT_PRIMARY = 2,
	CLOCK_FIELD_ID = 1,
	CLOCK_FIELD_TIME = 2,
	CLOCK_REAL = 1,
	CLOCK_MONO = 3,
	CLOCK_OURS = 64, /* of the sequence: ns since the trace began */

	DEFAULTS_CLOCK = 58,

	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,

	INTERNED_CATEGORY = 1,
	INTERNED_NAME = 2,
	INTERNED_ANNOTATION = 3,
	INTERNED_STRING = 29, /* of annotations */
	INTERNED_IID = 1,
	INTERNED_TEXT = 2,

	EVENT_CATEGORY = 3,
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK = 11,
	EVENT_NAME = 23,
	TYPE_BEGIN = 1,
	TYPE_END = 2,
	TYPE_INSTANT = 3,

	ANNOTATION_IID = 1,
	ANNOTATION_BOOL = 2,
	ANNOTATION_NUMBER = 3,
	ANNOTATION_SIGNED = 4,
	ANNOTATION_TEXT = 6,
	ANNOTATION_POINTER = 7,
	ANNOTATION_NAME = 10,
	ANNOTATION_ARRAY = 12,
	ANNOTATION_STRING_IID = 17,

	/*
	 * Fields that Perfetto's messages do not have, and its readers skip: of an interned name,
	 * what is needed to read the function back.
	 */
	OUR_MODULE = 1000,
	OUR_FLAGS = 1001,
	OUR_FUNCTION = 1002,
	OUR_PYTHON = 1, /* flags */
	OUR_DELAY = 2,
	OUR_KERNEL = 4,
	OUR_DEVICE = 8,
};

/* Interned numbers: categories, and the names of annotations. */
enum { CATEGORY_NATIVE = 1, CATEGORY_PYTHON, CATEGORY_DELAY, CATEGORY_KERNEL, CATEGORY_DEVICE };
enum { ANNOTATION_START = 1, ANNOTATION_DUR, ANNOTATION_VALUES };
#define TRACE_UNKNOWN "unknown"

/* Tracks: a thread is its id; a process and the trace itself have a bit. Above are further lanes of
 * a thread. */
#define TRACK_OF_PROCESS ((uint64_t)1 << 40)
#define TRACK_OF_TRACE	 ((uint64_t)1 << 41)
#define TRACK_LANE_SHIFT 48
#define TRACE_SEQUENCE	 1
#define TRACE_DELAY_NAME "delay: "

#endif
