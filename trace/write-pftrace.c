/* SPDX-License-Identifier: MIT */
/*
 * Perfetto's TrackEvents. A slice is a packet that begins it and one that ends it, which may stand
 * anywhere in the file: importers sort by time. Times are ns since the trace began, in a clock of
 * the packets' sequence (5 to 6 bytes instead of 7 or 8), which a snapshot ties to CLOCK_MONOTONIC;
 * a clock with increments would be smaller still, but cannot step back, and each call begins before
 * the calls that come before it in the file.
 *
 * All packets are of one sequence in one file, which begins with its state: so no packet asks for
 * that (SEQ_NEEDS_INCREMENTAL_STATE, two bytes in each), which is for buffers that lose their
 * oldest packets.
 */
#include "write-priv.h"

#include <stdio.h>
#include <stdlib.h>
#include "proto.h"
#include "src/base/must.h"

enum { SMALL = 256 /* a message without names */ };

/* A packet of the sequence around `body`, which may be larger than the buffer. */
static void put_packet(struct trace_writer *w, const char *body, size_t n)
{
	char head[PB_VARINT_MAX + 8], *at = head, tail[8], *end = tail;

	end = pb_number(end, PACKET_SEQUENCE, TRACE_SEQUENCE);
	at = pb_varint(at, TRACE_PACKET << 3 | PB_BYTES);
	at = pb_varint(at, n + (size_t)(end - tail));
	trace_out_put(&w->out, head, (size_t)(at - head));
	trace_out_put(&w->out, body, n);
	trace_out_put(&w->out, tail, (size_t)(end - tail));
}

/* A packet that holds one message. */
static void put_message(struct trace_writer *w, uint32_t field, const char *message, size_t n)
{
	char *body = must(malloc(n + SMALL)), *end = pb_bytes(body, field, message, n);

	put_packet(w, body, (size_t)(end - body));
	free(body);
}

static char *put_interned(char *at, uint32_t kind, uint32_t iid, const char *text)
{
	char entry[SMALL], *end = pb_text(pb_number(entry, INTERNED_IID, iid), INTERNED_TEXT, text);

	return pb_bytes(at, kind, entry, (size_t)(end - entry));
}

static char *put_clock(char *at, uint64_t id, uint64_t ns)
{
	char clock[SMALL], *end = pb_number(clock, CLOCK_FIELD_ID, id);

	end = pb_number(end, CLOCK_FIELD_TIME, ns);
	return pb_bytes(at, SNAPSHOT_CLOCK, clock, (size_t)(end - clock));
}

static void put_state(struct trace_writer *w)
{
	char packet[4 * SMALL], message[2 * SMALL], *at, *end;

	end = pb_number(message, DEFAULTS_CLOCK, CLOCK_OURS);
	at = pb_bytes(packet, PACKET_DEFAULTS, message, (size_t)(end - message));
	end = put_interned(message, INTERNED_CATEGORY, CATEGORY_NATIVE, "native");
	end = put_interned(end, INTERNED_CATEGORY, CATEGORY_PYTHON, "python");
	end = put_interned(end, INTERNED_CATEGORY, CATEGORY_DELAY, "delay");
	end = put_interned(end, INTERNED_CATEGORY, CATEGORY_KERNEL, "kernel");
	end = put_interned(end, INTERNED_CATEGORY, CATEGORY_DEVICE, "device");
	end = put_interned(end, INTERNED_ANNOTATION, ANNOTATION_START, "start_ns");
	end = put_interned(end, INTERNED_ANNOTATION, ANNOTATION_DUR, "dur_ns");
	at = pb_bytes(at, PACKET_INTERNED, message, (size_t)(end - message));
	at = pb_number(at, PACKET_FLAGS, FLAGS_STATE_CLEARED);
	at = pb_number(at, PACKET_FIRST, 1);
	put_packet(w, packet, (size_t)(at - packet));
	end = put_clock(message, CLOCK_OURS, 0);
	end = put_clock(end, CLOCK_MONO, w->begin_ns);
	end = put_clock(end, CLOCK_REAL, w->begin_unix_ns);
	end = pb_number(end, SNAPSHOT_PRIMARY, CLOCK_MONO);
	put_message(w, PACKET_CLOCK_SNAPSHOT, message, (size_t)(end - message));
}

/* ---- an instant with arguments, on the track of the trace ---- */

struct annotated {
	char *event, *at;
};

static struct annotated instant(const char *name, size_t room)
{
	struct annotated a = { .event = must(malloc(room + SMALL)) };

	a.at = pb_number(a.event, EVENT_TYPE, TYPE_INSTANT);
	a.at = pb_number(a.at, EVENT_TRACK, TRACK_OF_TRACE);
	a.at = pb_text(a.at, EVENT_NAME, name);
	return a;
}

static void note(struct annotated *a, const char *name, uint64_t number)
{
	char note[SMALL], *end = pb_text(note, ANNOTATION_NAME, name);

	end = pb_number(end, ANNOTATION_NUMBER, number);
	a->at = pb_bytes(a->at, EVENT_ANNOTATION, note, (size_t)(end - note));
}

static void note_text(struct annotated *a, const char *name, const char *text)
{
	char *safe = trace_utf8(text), *note = must(malloc(strlen(safe) + SMALL)), *end;

	end = pb_text(pb_text(note, ANNOTATION_NAME, name), ANNOTATION_TEXT, safe);
	a->at = pb_bytes(a->at, EVENT_ANNOTATION, note, (size_t)(end - note));
	free(note);
	free(safe);
}

static void put_instant(struct trace_writer *w, struct annotated *a, uint64_t ns)
{
	size_t n = (size_t)(a->at - a->event);
	char *body = must(malloc(n + SMALL)), *at = pb_number(body, PACKET_TIMESTAMP, ns);

	at = pb_bytes(at, PACKET_TRACK_EVENT, a->event, n);
	put_packet(w, body, (size_t)(at - body));
	free(body);
	free(a->event);
}

static void pf_begin(struct trace_writer *w)
{
	struct annotated about = instant("trace begins", 8 * TRACE_NAME_MAX);
	char track[SMALL], *end;

	put_state(w);
	end = pb_text(pb_number(track, TRACK_UUID, TRACK_OF_TRACE), TRACK_NAME, "sbinject");
	put_message(w, PACKET_TRACK, track, (size_t)(end - track));
	note_text(&about, "version", w->version);
	note_text(&about, "command", w->command);
	put_instant(w, &about, 0);
}

static void pf_end(struct trace_writer *w, const struct trace_end *end)
{
	struct annotated a = instant("trace ends", 4 * SMALL);

	note(&a, "spans", end->spans);
	note(&a, "lost", end->lost);
	note(&a, "filtered", end->filtered);
	put_instant(w, &a, since_begin(w, end->end_ns));
}

/* ---- tracks ---- */

static void pf_process(struct trace_writer *w, const struct trace_process *process)
{
	char *name = trace_utf8(process->name), *track, *inner, *at, *end;
	size_t room = strlen(name) + SMALL;

	track = must(malloc(2 * room));
	inner = track + room;
	end = pb_number(inner, PROCESS_PID, (uint32_t)process->pid);
	if (process->name)
		end = pb_text(end, PROCESS_NAME, name);
	at = pb_number(track, TRACK_UUID, TRACK_OF_PROCESS | (uint32_t)process->pid);
	at = pb_bytes(at, TRACK_PROCESS, inner, (size_t)(end - inner));
	put_message(w, PACKET_TRACK, track, (size_t)(at - track));
	free(track);
	free(name);
}

/* A thread whose number is unknown is a track of its process: as thread 0 it would be the kernel's.
 * So is one apart: viewers would put its calls and those of the thread into one stack. */
static void pf_thread(struct trace_writer *w, uint32_t id, const struct trace_thread *thread)
{
	char *name = trace_utf8(thread->name), *track = must(malloc(2 * strlen(name) + 2 * SMALL));
	char *inner = track + strlen(name) + SMALL, *at = pb_number(track, TRACK_UUID, id), *end;
	char apart[40];

	at = pb_number(at, TRACK_PARENT, TRACK_OF_PROCESS | (uint32_t)thread->pid);
	if (thread->tid && !thread->apart) {
		end = pb_number(inner, THREAD_PID, (uint32_t)thread->pid);
		end = pb_number(end, THREAD_TID, (uint32_t)thread->tid);
		if (thread->name)
			end = pb_text(end, THREAD_NAME, name);
		at = pb_bytes(at, TRACK_THREAD, inner, (size_t)(end - inner));
	} else if (thread->apart) {
		snprintf(apart, sizeof(apart), "thread %d, in the kernel", thread->tid);
		at = pb_text(at, TRACK_NAME, apart);
	} else if (thread->name) {
		at = pb_text(at, TRACK_NAME, name);
	}
	put_message(w, PACKET_TRACK, track, (size_t)(at - track));
	free(track);
	w->thread[id].name = name;
}

static uint64_t track_of_lane(uint32_t id, unsigned int lane)
{
	return (uint64_t)lane << TRACK_LANE_SHIFT | id;
}

static void declare_lane(struct trace_writer *w, uint32_t id, unsigned int lane)
{
	char track[SMALL], *at = pb_number(track, TRACK_UUID, track_of_lane(id, lane));

	at = pb_number(at, TRACK_PARENT, id);
	at = pb_text(at, TRACK_NAME, "calls that cross others");
	put_message(w, PACKET_TRACK, track, (size_t)(at - track));
	w->thread[id].lanes_known = lane;
}

/* ---- functions and spans ---- */

static void pf_function(struct trace_writer *w, uint32_t id, const struct trace_function *function)
{
	struct writer_function *f = &w->function[id];
	char *name = trace_utf8(function->name);

	f->piece[TRACE_CALL] = name;
	f->piece[TRACE_DELAY] = must(malloc(strlen(name) + sizeof(TRACE_DELAY_NAME)));
	stpcpy(stpcpy(f->piece[TRACE_DELAY], TRACE_DELAY_NAME), name);
	f->module = function->module ? trace_utf8(function->module) : NULL;
}

static uint32_t intern(struct trace_writer *w, uint32_t id, enum trace_kind kind)
{
	static const uint32_t flags[TRACE_CODES] = {
		[TRACE_PYTHON] = OUR_PYTHON,
		[TRACE_KERNEL] = OUR_KERNEL,
		[TRACE_DEVICE] = OUR_DEVICE,
	};
	struct writer_function *f = &w->function[id];
	size_t room = f->len[kind] + (f->module ? strlen(f->module) : 0) + SMALL;
	char *entry = must(malloc(2 * room)), *message = entry + room, *end;

	f->iid[kind] = ++w->iids;
	end = pb_number(entry, INTERNED_IID, f->iid[kind]);
	end = pb_bytes(end, INTERNED_TEXT, f->piece[kind], f->len[kind]);
	if (f->module)
		end = pb_text(end, OUR_MODULE, f->module);
	end = pb_number(end, OUR_FLAGS, flags[f->code] | (kind == TRACE_DELAY ? OUR_DELAY : 0));
	end = pb_number(end, OUR_FUNCTION, id);
	end = pb_bytes(message, INTERNED_NAME, entry, (size_t)(end - entry));
	put_message(w, PACKET_INTERNED, message, (size_t)(end - message));
	free(entry);
	return f->iid[kind];
}

/* A packet of an event that is smaller than 128 bytes, so that lengths are one byte. */
static char *open_event(char *at, uint64_t ns, char **packet, char **event)
{
	*at++ = TRACE_PACKET << 3 | PB_BYTES;
	*packet = at++;
	at = pb_number(at, PACKET_TIMESTAMP, ns);
	at = pb_number(at, PACKET_SEQUENCE, TRACE_SEQUENCE);
	*at++ = PACKET_TRACK_EVENT << 3 | PB_BYTES;
	*event = at++;
	return at;
}

static char *close_event(char *at, char *packet, char *event)
{
	*packet = (char)(at - packet - 1);
	*event = (char)(at - event - 1);
	return at;
}

static char *put_true(char *at, uint32_t iid, uint64_t ns)
{
	char note[2 * PB_VARINT_MAX + 2], *end = pb_number(note, ANNOTATION_IID, iid);

	end = pb_number(end, ANNOTATION_NUMBER, ns);
	return pb_bytes(at, EVENT_ANNOTATION, note, (size_t)(end - note));
}

/* ---- values ---- */

enum {
	VALUE_NAMES = 256, /* interned; a linear search is short */
	ANNOTATION_MOST = VALUE_NAME_SIZE + 2 * PB_VARINT_MAX + 8,
};

/* The number of a value's name; 0: too many are interned. */
static uint32_t value_iid(struct trace_writer *w, const char *name)
{
	char message[SMALL], *end;
	uint32_t i = 0;

	while (i < w->value_names && strcmp(w->value_name[i], name) != 0)
		i++;
	if (i == VALUE_NAMES)
		return 0;
	if (i < w->value_names)
		return ANNOTATION_VALUES + i;
	w->value_name = must_realloc(w->value_name, (i + 1) * sizeof(*w->value_name));
	stpcpy(w->value_name[w->value_names++], name);
	end = put_interned(message, INTERNED_ANNOTATION, ANNOTATION_VALUES + i, name);
	put_message(w, PACKET_INTERNED, message, (size_t)(end - message));
	return ANNOTATION_VALUES + i;
}

static char *put_value(char *at, uint32_t iid, const struct trace_value *v)
{
	char note[ANNOTATION_MOST], *end = note;
	uint32_t field = v->type == VALUE_PTR  ? ANNOTATION_POINTER :
			 v->type == VALUE_BOOL ? ANNOTATION_BOOL :
			 value_signed(v->type) ? ANNOTATION_SIGNED :
						 ANNOTATION_NUMBER;

	end = iid ? pb_number(end, ANNOTATION_IID, iid) : pb_text(end, ANNOTATION_NAME, v->name);
	end = v->known ? pb_number(end, field, v->value) :
			 pb_text(end, ANNOTATION_TEXT, TRACE_UNKNOWN);
	return pb_bytes(at, EVENT_ANNOTATION, note, (size_t)(end - note));
}

static char *put_end(char *at, const struct place *place, uint64_t track, uint64_t start,
		     uint64_t dur)
{
	at = pb_number(at, EVENT_TYPE, TYPE_END);
	at = pb_number(at, EVENT_TRACK, track);
	if (place->start != start)
		at = put_true(at, ANNOTATION_START, start);
	return place->moved ? put_true(at, ANNOTATION_DUR, dur) : at;
}

static char *put_kernel(char *at, const char *kernel)
{
	char *note = must(malloc(strlen(kernel) + SMALL));
	char *end = pb_text(note, ANNOTATION_NAME, TRACE_KERNEL_NAME);

	end = pb_text(end, ANNOTATION_TEXT, kernel);
	at = pb_bytes(at, EVENT_ANNOTATION, note, (size_t)(end - note));
	free(note);
	return at;
}

/* ---- stacks ---- */

enum { TEXTS_MAX = 1 << 18 };

static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return hash ? hash : 1;
}

/* The number of an interned text; 0: too many are. */
static uint32_t text_iid(struct trace_writer *w, const char *text)
{
	uint32_t known = idmap_get(&w->texts, hash_of(text));
	char *entry, *message, *end;

	if (known)
		return strcmp(w->text[known - 1], text) == 0 ? known : 0;
	if (w->n_texts == TEXTS_MAX)
		return 0;
	if (!(w->n_texts & (w->n_texts - 1)))
		w->text = must_realloc(w->text,
				       (w->n_texts ? 2 * w->n_texts : 1) * sizeof(*w->text));
	w->text[w->n_texts++] = must_strdup(text);
	idmap_put(&w->texts, hash_of(text), w->n_texts);
	entry = must(malloc(2 * (strlen(text) + SMALL)));
	message = entry + strlen(text) + SMALL;
	end = pb_text(pb_number(entry, INTERNED_IID, w->n_texts), INTERNED_TEXT, text);
	end = pb_bytes(message, INTERNED_STRING, entry, (size_t)(end - entry));
	put_message(w, PACKET_INTERNED, message, (size_t)(end - message));
	free(entry);
	return w->n_texts;
}

/* An entry of the array of frames. */
static char *put_frame(struct trace_writer *w, char *at, const char *frame)
{
	char *safe = trace_utf8(frame), *entry = must(malloc(strlen(safe) + SMALL)), *end;
	uint32_t iid = text_iid(w, safe);

	end = iid ? pb_number(entry, ANNOTATION_STRING_IID, iid) :
		    pb_text(entry, ANNOTATION_TEXT, safe);
	at = pb_bytes(at, ANNOTATION_ARRAY, entry, (size_t)(end - entry));
	free(entry);
	free(safe);
	return at;
}

/* Bytes that put_stack() writes at most: each byte of a text becomes at most three. */
static size_t stack_room(const struct trace_stack *stack)
{
	size_t room = 4 * SMALL + 3 * (stack->end ? strlen(stack->end) : 0);

	for (uint32_t i = 0; i < stack->n; i++)
		room += 3 * strlen(stack->frame[i]) + SMALL;
	return room;
}

static char *put_stack(struct trace_writer *w, char *at, const struct trace_stack *stack)
{
	char *note = must(malloc(stack_room(stack))),
	     *end = pb_text(note, ANNOTATION_NAME, TRACE_STACK);

	for (uint32_t i = 0; i < stack->n; i++)
		end = put_frame(w, end, stack->frame[i]);
	at = pb_bytes(at, EVENT_ANNOTATION, note, (size_t)(end - note));
	if (stack->end) {
		char *safe = trace_utf8(stack->end);

		end = pb_text(pb_text(note, ANNOTATION_NAME, TRACE_STACK_END), ANNOTATION_TEXT,
			      safe);
		at = pb_bytes(at, EVENT_ANNOTATION, note, (size_t)(end - note));
		free(safe);
	}
	free(note);
	return at;
}

/* A text that is known. */
static char *put_text_value(char *at, uint32_t iid, const struct trace_value *v)
{
	char *text = trace_utf8(v->text), *note = must(malloc(strlen(text) + ANNOTATION_MOST)),
	     *end;

	end = iid ? pb_number(note, ANNOTATION_IID, iid) : pb_text(note, ANNOTATION_NAME, v->name);
	end = pb_text(end, ANNOTATION_TEXT, text);
	at = pb_bytes(at, EVENT_ANNOTATION, note, (size_t)(end - note));
	free(note);
	free(text);
	return at;
}

static bool is_text(const struct trace_value *v)
{
	return v->known && v->type == VALUE_STR;
}

/* Bytes for the texts of its values, at most: what is no UTF-8 becomes three bytes each. */
static size_t texts_room(const struct trace_span *span)
{
	size_t room = 0;

	for (uint32_t i = 0; i < span->n_values; i++)
		if (is_text(&span->value[i]))
			room += 3 * strlen(span->value[i].text) + ANNOTATION_MOST;
	return room;
}

/* The end of a span with values: they are arguments of the slice wherever they stand. */
static void put_valued_end(struct trace_writer *w, const struct trace_span *span,
			   const struct place *place, uint64_t track, uint64_t start)
{
	char *kernel = span->kernel ? trace_utf8(span->kernel) : NULL;
	size_t room = 2 * SMALL + VALUE_MAX * ANNOTATION_MOST + texts_room(span) +
		      (kernel ? strlen(kernel) : 0) + (span->stack ? stack_room(span->stack) : 0);
	char *body = must(malloc(2 * room)), *event = body + room, *at, *end;

	end = put_end(event, place, track, start, span->dur_ns);
	for (uint32_t i = 0; i < span->n_values; i++)
		end = (is_text(&span->value[i]) ? put_text_value : put_value)(
			end, value_iid(w, span->value[i].name), &span->value[i]);
	if (kernel)
		end = put_kernel(end, kernel);
	if (span->stack)
		end = put_stack(w, end, span->stack);
	at = pb_number(body, PACKET_TIMESTAMP, place->end);
	at = pb_bytes(at, PACKET_TRACK_EVENT, event, (size_t)(end - event));
	put_packet(w, body, (size_t)(at - body));
	free(body);
	free(kernel);
}

static void pf_span(struct trace_writer *w, const struct trace_span *span)
{
	static const uint32_t categories[TRACE_CODES] = { CATEGORY_NATIVE, CATEGORY_PYTHON,
							  CATEGORY_KERNEL, CATEGORY_DEVICE };
	struct writer_thread *t = &w->thread[span->thread];
	struct writer_function *f = &w->function[span->function];
	uint32_t category = categories[f->code];
	uint32_t iid = f->iid[span->kind];
	uint64_t start = since_begin(w, span->start_ns), track;
	char *at, *packet, *event;
	struct place place;

	if (!iid)
		iid = intern(w, span->function, span->kind);
	place_span(&t->lanes, start, span_end(start, span->dur_ns), &place);
	track = track_of_lane(span->thread, place.lane);
	if (place.lane > t->lanes_known)
		declare_lane(w, span->thread, place.lane);
	at = open_event(trace_out_room(&w->out, SMALL), place.start, &packet, &event);
	at = pb_number(at, EVENT_CATEGORY, span->kind == TRACE_DELAY ? CATEGORY_DELAY : category);
	at = pb_number(at, EVENT_TYPE, TYPE_BEGIN);
	at = pb_number(at, EVENT_NAME_IID, iid);
	at = pb_number(at, EVENT_TRACK, track);
	at = close_event(at, packet, event);
	if (span->n_values || span->kernel || span->stack) {
		trace_out_took(&w->out, at);
		put_valued_end(w, span, &place, track, start);
		return;
	}
	at = open_event(at, place.end, &packet, &event);
	at = put_end(at, &place, track, start, span->dur_ns);
	trace_out_took(&w->out, close_event(at, packet, event));
}

const struct trace_encoder trace_pftrace = {
	.begin = pf_begin,
	.process = pf_process,
	.thread = pf_thread,
	.function = pf_function,
	.span = pf_span,
	.end = pf_end,
};
