/* SPDX-License-Identifier: MIT */
#include "stream.h"

#include <stdlib.h>
#include <string.h>
#include "event-text.h"
#include "evidence/now.h"
#include "src/base/log.h"
#include "src/base/must.h"
#include "witness.h"

struct stream_shown {
	bool hooked, open;
};

int stream_open(struct stream *s, int fd, struct sb_err *err)
{
	if (fd < 0)
		return 0;
	s->to = events_open(fd);
	return s->to ? 0 : err_sys(err, SB_ESYS, "no thread for --events");
}

static void warn_error(struct stream *s)
{
	int error = events_error(s->to);

	if (error)
		log_warn("--events: %s: the rest is not written", strerror(error));
}

void stream_close(struct stream *s, struct result_stream *of)
{
	if (!s->to)
		return;
	of->unwritten = events_close(s->to);
	s->to = NULL;
	free(s->known);
	s->known = NULL;
	if (of->unwritten)
		log_warn("--events: %llu lines were not written: their reader is too slow, or gone",
			 (unsigned long long)of->unwritten);
	if (of->lost)
		log_warn("--events: %llu waits are missing: there was no room for them",
			 (unsigned long long)of->lost);
	if (of->asked && !of->agrees)
		log_warn("--events: the waits and the counters do not agree (%s): do not rely on "
			 "them",
			 of->differs);
}

/* ---- changes of state ---- */

/* To be joined with the recordings of others, so it has both clocks. */
void stream_event(void *ctx, const char *what, const struct session_target *t)
{
	const struct stream *s = ctx;
	uint64_t now = evidence_now_ns();
	char *text;

	if (!s->to)
		return;
	text = event_text(what, t, now);
	events_line(s->to, now, text);
	free(text);
}

static void know(struct stream *s, size_t n)
{
	if (n <= s->n_known)
		return;
	s->known = must(reallocarray(s->known, n, sizeof(*s->known)));
	memset(s->known + s->n_known, 0, (n - s->n_known) * sizeof(*s->known));
	s->n_known = n;
}

void stream_states(struct stream *s, struct session_core *session)
{
	size_t n = s->to ? session_targets(session) : 0;

	know(s, n);
	for (size_t i = 0; i < n; i++) {
		struct session_target now;

		session_state(session, i, &now);
		if (!now.pending && !s->known[i].hooked)
			stream_event(s, "hooked", &now);
		if (now.open != s->known[i].open)
			stream_event(s, now.open ? "open" : "close", &now);
		s->known[i].hooked = !now.pending;
		s->known[i].open = now.open;
	}
	if (s->to)
		warn_error(s);
}

/* ---- the evidence ---- */

void stream_waits(struct stream *s, struct evidence *e)
{
	if (s->to && evidence_tells(e))
		events_waits(s->to, e);
}

static void put_reading(const struct stream *s, const struct evidence *e,
			const struct evidence_reading *r, const struct result_stream *of)
{
	uint64_t now = evidence_now_ns();
	char *text;

	if (!s->to)
		return;
	text = event_evidence_text(e, r, of, now);
	events_line(s->to, now, text);
	free(text);
}

void stream_counters(struct stream *s, struct evidence *e)
{
	struct evidence_reading r;

	if (!s->to || !e)
		return;
	evidence_take(e, &r);
	put_reading(s, e, &r, NULL);
	evidence_reading_free(&r);
}

void stream_end(struct stream *s, struct evidence *e, struct result_evidence *out)
{
	struct evidence_reading r;

	if (!e)
		return;
	if (s->to && evidence_tells(e))
		events_waits_end(s->to, &r, &out->stream);
	else
		evidence_take(e, &r);
	witness_tell(e, &r, out);
	put_reading(s, e, &r, &out->stream);
	evidence_reading_free(&r);
}
