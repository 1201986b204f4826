/* SPDX-License-Identifier: MIT */
#ifndef SB_WITNESS_H
#define SB_WITNESS_H

#include "evidence/evidence.h"
#include "src/session/session.h"

/* Evidence of the processes that a session concerns: those named with their descendants, or the
 * command that was launched. evidence_close() ends it. */
struct evidence *witness_open(const struct session_config *cfg);

#endif
