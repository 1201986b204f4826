/* SPDX-License-Identifier: MIT */
#ifndef SB_EVENT_TEXT_H
#define SB_EVENT_TEXT_H

#include <stdint.h>
#include "evidence/evidence.h"
#include "src/result/result.h"
#include "src/session/session.h"

/* The lines of --events, without their newline. now_ns: CLOCK_MONOTONIC. The caller frees. */

/* A change of state. t: the target that it concerns; NULL: none. */
char *event_text(const char *what, const struct session_target *t, uint64_t now_ns);

/* A reading of the evidence. stream: of the last one; NULL: there will be others. */
char *event_evidence_text(const struct evidence *e, const struct evidence_reading *r,
			  const struct result_stream *stream, uint64_t now_ns);

/* A wait. ahead_ns: of CLOCK_REALTIME. */
enum { EVENT_WAIT_SIZE = 640 };
void event_wait_text(const struct evidence_pause *pause, int64_t ahead_ns,
		     char text[EVENT_WAIT_SIZE]);

#endif
