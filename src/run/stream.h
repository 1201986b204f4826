/* SPDX-License-Identifier: MIT */
#ifndef SB_STREAM_H
#define SB_STREAM_H

#include "events.h"
#include "src/session/session.h"

/* What the tracer writes to --events (events.h). All zero: nothing, and all calls are harmless. */
struct stream {
	struct events *to;
	struct stream_shown *known; /* by target: the state that was written last */
	size_t n_known;
};

/* fd becomes the stream's; negative: there is none. SB_ESYS. */
int stream_open(struct stream *s, int fd, struct sb_err *err);
/* *of receives what was not written; what is missing is a warning. */
void stream_close(struct stream *s, struct result_stream *of);

/* A change of state, by the functions of control.h. ctx: the stream. */
void stream_event(void *ctx, const char *what, const struct session_target *t);
/* Changes without a request: a window opens or closes, a library brings a function. */
void stream_states(struct stream *s, struct session_core *session);

/* From here on each wait is a line, if the evidence records pauses. */
void stream_waits(struct stream *s, struct evidence *e);
/* A line with the counters so far. e: NULL: there are none. */
void stream_counters(struct stream *s, struct evidence *e);
/* The last reading, as a line and into *out. e: NULL: there are none. */
void stream_end(struct stream *s, struct evidence *e, struct result_evidence *out);

#endif
