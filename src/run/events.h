/* SPDX-License-Identifier: MIT */
#ifndef SB_EVENTS_H
#define SB_EVENTS_H

#include <stdint.h>
#include "evidence/evidence.h"
#include "src/base/err.h"
#include "src/result/result.h"

/*
 * --events: lines of JSON, each with "event", "realtime_s" and "monotonic_s", in the order of their
 * times: changes of the session's state, and with --evidence each wait of a watched thread.
 *
 * A thread of the tracer takes the waits and writes all lines. Where their reader is slow it takes
 * no more: then the rings of the kernel are full, and the kernel counts what it leaves out. No one
 * waits for the reader, but for a moment at the end. Lines are written whole or not at all, as long
 * as the tracer lives.
 */
struct events;

/* The file, or the standard output for "-", to append to; a write to a pipe or terminal does not
 * block. -1 with errno. */
int events_place(const char *path);

/* The descriptor becomes the events', also where NULL is returned: there is no thread. */
struct events *events_open(int fd);
/* Writes what is left, for a reader that is slow: until nothing could be written for a second, ten
 * seconds in all. Returns the number of lines that were not written, at any time. */
uint64_t events_close(struct events *ev);
/* 0, or why nothing can be written any more: the first time that it is asked for. */
int events_error(struct events *ev);

/* A line, without its newline. t_ns: CLOCK_MONOTONIC, of its "monotonic_s". */
void events_line(struct events *ev, uint64_t t_ns, const char *text);

/* From here on each wait that the evidence records is a line. */
void events_waits(struct events *ev, struct evidence *e);
/*
 * The last reading, and the waits until then: *out has what the stream holds, and whether that and
 * the reading agree. The evidence is not used any more.
 */
void events_waits_end(struct events *ev, struct evidence_reading *r, struct result_stream *out);

/* Does what was recorded and what was not add up to what was counted? *differs: the reason by which
 * it does not. */
bool events_agree(const struct evidence_values *sum, const struct evidence_pauses *recorded,
		  const struct evidence_pauses *unrecorded, enum evidence_counter *differs);

#endif
