/* SPDX-License-Identifier: MIT */
#ifndef SB_WITNESS_H
#define SB_WITNESS_H

#include "evidence/evidence.h"
#include "src/result/result.h"
#include "src/session/session.h"

/* Evidence of the processes that a session concerns: those named with their descendants, or the
 * command that was launched. pauses: as in struct evidence_config. They are watched from
 * witness_begin() on. evidence_close() ends it. */
struct evidence *witness_open(const struct session_config *cfg, bool pauses);
void witness_begin(struct evidence *e, const struct session_config *cfg);
/* Adds the processes that are named, with their descendants. */
void witness_add(struct evidence *e, const struct session_config *cfg);

/* The memory of the processes, before they are attached to: see evidence_memory_begin(). A command
 * that is launched has none yet. e may be NULL. And after the detach, into what witness_tell() has
 * made. */
void witness_measure(struct evidence *e, const struct session_config *cfg);
void witness_measured(const struct evidence *e, struct result_evidence *out);

/* For a loop: /proc forgets a thread when it ends, so it is looked at now and then. *due: when; 0
 * at first. */
void witness_look(struct evidence *e, uint64_t *due);

/* What was seen until the reading. out: all zero. */
void witness_tell(const struct evidence *e, const struct evidence_reading *r,
		  struct result_evidence *out);

#endif
