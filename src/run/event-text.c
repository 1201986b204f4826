/* SPDX-License-Identifier: MIT */
#include "event-text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "src/base/json.h"
#include "src/result/evidence.h"

static json_t *object(const char *what, uint64_t now_ns)
{
	struct timespec ts;
	json_t *o = json_must(json_object());

	clock_gettime(CLOCK_REALTIME, &ts);
	json_put(o, "event", json_string(what));
	json_put(o, "realtime_s", json_real((double)ts.tv_sec + (double)ts.tv_nsec / 1e9));
	json_put(o, "monotonic_s", json_real((double)now_ns / 1e9));
	return o;
}

static char *text_of(json_t *o)
{
	char *text = json_document(o, false);

	json_decref(o);
	return text;
}

static void put_target(json_t *o, const struct session_target *t)
{
	json_put(o, "target", json_name(t->spec->text));
	json_put(o, "every", json_integer((json_int_t)t->every));
	if (t->spec->pid)
		json_put(o, "pid", json_integer(t->spec->pid));
}

char *event_text(const char *what, const struct session_target *t, uint64_t now_ns)
{
	json_t *o = object(what, now_ns);

	if (t && t->spec)
		put_target(o, t);
	if (t)
		json_put(o, "delay_ns", json_integer((json_int_t)t->delay_ns));
	return text_of(o);
}

char *event_evidence_text(const struct evidence *e, const struct evidence_reading *r,
			  const struct result_stream *stream, uint64_t now_ns)
{
	json_t *o = object("evidence", now_ns);
	bool unknown[EVIDENCE_COUNTERS], recorded = stream && stream->asked;

	for (int i = 0; i < EVIDENCE_COUNTERS; i++)
		unknown[i] = evidence_unknown(e, i);
	json_put(o, "source", json_string(evidence_limit(e) ? "proc" : "bpf"));
	json_put(o, "sample", json_integer(evidence_sample(e)));
	json_put(o, "threads", json_integer((json_int_t)r->n_threads));
	json_put(o, "counters", evidence_values_json(&r->sum, unknown));
	json_put(o, "waits", recorded ? json_integer((json_int_t)stream->waits) : json_null());
	json_put(o, "waits_lost", recorded ? json_integer((json_int_t)stream->lost) : json_null());
	json_put(o, "agrees", recorded ? json_boolean(stream->agrees) : json_null());
	return text_of(o);
}

/* ---- a wait: not by a JSON value, since there may be many ---- */

/* A name of plain characters, as nearly all are, stands in JSON as it is. */
static bool is_plain(const char *name)
{
	for (; *name; name++)
		if (*name < ' ' || *name > '~' || *name == '"' || *name == '\\')
			return false;
	return true;
}

/* As json_name() has it, in quotes. A thread's name has at most 15 bytes, each of 6 at most. */
static void quote(const char *name, char *buf, size_t size)
{
	json_t *list;
	char *text;

	if (is_plain(name)) {
		snprintf(buf, size, "\"%s\"", name);
		return;
	}
	list = json_must(json_array());
	json_add(list, json_name(name));
	text = json_document(list, false);
	snprintf(buf, size, "%.*s", (int)strlen(text) - 2, text + 1); /* without [ and ] */
	json_decref(list);
	free(text);
}

void event_wait_text(const struct evidence_pause *pause, int64_t ahead_ns,
		     char text[EVENT_WAIT_SIZE])
{
	uint64_t real = pause->t_ns + (uint64_t)ahead_ns, s = 1000000000;
	char name[6 * 16 + 3], futex[32] = "null", waker[16] = "null";

	quote(pause->name, name, sizeof(name));
	if (pause->futex)
		snprintf(futex, sizeof(futex), "\"0x%" PRIx64 "\"", pause->futex);
	if (pause->waker)
		snprintf(waker, sizeof(waker), "%d", pause->waker);
	snprintf(text, EVENT_WAIT_SIZE,
		 "{\"event\":\"wait\",\"realtime_s\":%" PRIu64 ".%09" PRIu64
		 ",\"monotonic_s\":%" PRIu64 ".%09" PRIu64
		 ",\"pid\":%d,\"tid\":%d,\"name\":%s,\"cpu\":%u,\"reason\":\"%s\",\"wait_ns\":"
		 "%" PRIu64 ",\"run_queue_ns\":%" PRIu64
		 ",\"futex\":%s,\"woken_by\":%s,\"whole\":%s}",
		 real / s, real % s, pause->t_ns / s, pause->t_ns % s, pause->pid, pause->tid, name,
		 pause->cpu, evidence_reason(pause->reason), pause->wait_ns, pause->queue_ns, futex,
		 waker, pause->cut ? "false" : "true");
}
