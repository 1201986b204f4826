/* SPDX-License-Identifier: MIT */
/*
 * What write-pftrace.c wrote, read back. Each packet is taken apart in a table of its fields; a
 * field that is there again replaces the first, as in all protocol buffers. Packets of others are
 * skipped.
 */
#include "read-priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "callstack.h"
#include "proto.h"
#include "src/base/json.h"
#include "src/base/must.h"

enum { IIDS_MAX = 2 << 20, FIELDS_MAX = 64, VALUE_NAMES = 256 };
enum { TEXTS_MAX = 1 << 18, TEXT_BYTES_MAX = 64 << 20 };

/* A field's value: a number, or bytes. */
struct field {
	uint32_t number;
	bool is_bytes;
	uint64_t n; /* the number */
	const char *bytes;
	size_t len;
};

struct message {
	const char *at, *end;
};

struct interned {
	uint32_t function; /* of the reader; 0: unknown */
	bool delay;
};

/* The slice that began last: its end follows. */
struct begun {
	bool any;
	uint64_t ns, track, iid;
};

struct pf {
	struct reader *r;
	struct interned *name; /* by iid */
	size_t n_names;
	struct track {
		uint32_t thread; /* of the reader */
	} * track;		 /* by id */
	size_t n_tracks;
	struct begun begun;
	char value_name[VALUE_NAMES][VALUE_NAME_SIZE]; /* by iid, from ANNOTATION_VALUES on */
	char **text;				       /* frames of stacks, by iid */
	size_t n_texts, text_bytes;
	uint64_t begin_ns, begin_unix_ns;
};

/* ---- the wire ---- */

static bool get_varint(struct message *m, uint64_t *n)
{
	unsigned int shift = 0;

	for (*n = 0; m->at < m->end && shift < 70; shift += 7) {
		unsigned char byte = (unsigned char)*m->at++;

		*n |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* The next field. False: the end, or no field (at != end). */
static bool next_field(struct message *m, struct field *f)
{
	struct message at = *m;
	uint64_t tag;

	if (at.at == at.end || !get_varint(&at, &tag) || tag >> 3 > UINT32_MAX)
		return false;
	*f = (struct field){ .number = (uint32_t)(tag >> 3) };
	switch (tag & 7) {
	case PB_VARINT:
		if (!get_varint(&at, &f->n))
			return false;
		break;
	case PB_BYTES:
		if (!get_varint(&at, &f->n) || f->n > (uint64_t)(at.end - at.at))
			return false;
		f->is_bytes = true;
		f->bytes = at.at;
		f->len = (size_t)f->n;
		at.at += f->len;
		break;
	case PB_FIXED64:
	case PB_FIXED32:
		f->len = (tag & 7) == PB_FIXED64 ? 8 : 4;
		if (f->len > (size_t)(at.end - at.at))
			return false;
		at.at += f->len;
		break;
	default:
		return false;
	}
	*m = at;
	return true;
}

static struct message inside(const struct field *f)
{
	return (struct message){ f->bytes, f->bytes + f->len };
}

/* The field of that number and kind, the last one; false: there is none. */
static bool find(struct message m, uint32_t number, bool is_bytes, struct field *found)
{
	struct field f;
	bool any = false;

	while (next_field(&m, &f))
		if (f.number == number && f.is_bytes == is_bytes) {
			*found = f;
			any = true;
		}
	return any;
}

static uint64_t number_of(struct message m, uint32_t number, uint64_t otherwise)
{
	struct field f;

	return find(m, number, false, &f) ? f.n : otherwise;
}

/* A name's bytes, or NULL. The caller frees. */
static char *text_of(struct message m, uint32_t number)
{
	char *text, *bytes;
	struct field f;

	if (!find(m, number, true, &f))
		return NULL;
	text = must(strndup(f.bytes, f.len));
	bytes = json_bytes(text);
	free(text);
	return bytes;
}

/* ---- what is declared ---- */

static int grow(void **array, size_t *n, size_t size, uint64_t i, size_t most)
{
	size_t want = *n ? *n : 64;

	if (i < *n)
		return 0;
	if (i >= most)
		return -1;
	while (want <= i)
		want *= 2;
	*array = must_realloc(*array, want * size);
	memset((char *)*array + *n * size, 0, (want - *n) * size);
	*n = want;
	return 0;
}

static int take_name(struct pf *pf, struct message m)
{
	uint64_t iid = number_of(m, INTERNED_IID, 0), flags = number_of(m, OUR_FLAGS, 0);
	char *name = text_of(m, INTERNED_TEXT), *module = text_of(m, OUR_MODULE), *bare = name;
	enum trace_code code = flags & OUR_PYTHON ? TRACE_PYTHON :
			       flags & OUR_KERNEL ? TRACE_KERNEL :
			       flags & OUR_DEVICE ? TRACE_DEVICE :
						    TRACE_NATIVE;
	size_t prefix = strlen(TRACE_DELAY_NAME);
	int ret = 0;

	if (name && flags & OUR_DELAY && !strncmp(name, TRACE_DELAY_NAME, prefix))
		bare += prefix;
	if (!name || !iid ||
	    grow((void **)&pf->name, &pf->n_names, sizeof(*pf->name), iid, IIDS_MAX) < 0) {
		pf->r->reading->skipped++;
	} else {
		pf->name[iid].delay = flags & OUR_DELAY;
		ret = decl_function(pf->r, code, bare, module, &pf->name[iid].function);
	}
	free(name);
	free(module);
	return ret;
}

static void take_value_name(struct pf *pf, struct message m)
{
	uint64_t iid = number_of(m, INTERNED_IID, 0);
	char *name = text_of(m, INTERNED_TEXT);

	if (name && iid >= ANNOTATION_VALUES && iid - ANNOTATION_VALUES < VALUE_NAMES &&
	    value_name_ok(name, strlen(name)))
		stpcpy(pf->value_name[iid - ANNOTATION_VALUES], name);
	free(name);
}

static void take_text(struct pf *pf, struct message m)
{
	uint64_t iid = number_of(m, INTERNED_IID, 0);
	char *text = text_of(m, INTERNED_TEXT);
	size_t n = text ? strlen(text) + 1 : 0;

	if (!text || !iid || pf->text_bytes + n > TEXT_BYTES_MAX ||
	    grow((void **)&pf->text, &pf->n_texts, sizeof(*pf->text), iid, TEXTS_MAX + 1) < 0 ||
	    pf->text[iid]) {
		pf->r->reading->skipped += !text || !iid;
		free(text);
		return;
	}
	pf->text_bytes += n;
	pf->text[iid] = text;
}

static int take_interned(struct pf *pf, struct message m)
{
	struct field f;
	int ret = 0;

	while (ret == 0 && next_field(&m, &f)) {
		if (f.is_bytes && f.number == INTERNED_NAME)
			ret = take_name(pf, inside(&f));
		else if (f.is_bytes && f.number == INTERNED_ANNOTATION)
			take_value_name(pf, inside(&f));
		else if (f.is_bytes && f.number == INTERNED_STRING)
			take_text(pf, inside(&f));
	}
	return ret;
}

static void take_clocks(struct pf *pf, struct message m)
{
	struct field f;

	while (next_field(&m, &f)) {
		uint64_t id, ns;

		if (!f.is_bytes || f.number != SNAPSHOT_CLOCK)
			continue;
		id = number_of(inside(&f), CLOCK_FIELD_ID, 0);
		ns = number_of(inside(&f), CLOCK_FIELD_TIME, 0);
		if (id == CLOCK_MONO)
			pf->begin_ns = ns;
		if (id == CLOCK_REAL)
			pf->begin_unix_ns = ns;
	}
}

static int take_process(struct pf *pf, struct message m)
{
	uint64_t pid = number_of(m, PROCESS_PID, 0);
	char *name;
	int ret;

	if (pid > INT32_MAX) {
		pf->r->reading->skipped++;
		return 0;
	}
	name = text_of(m, PROCESS_NAME);
	ret = decl_process(pf->r, (int32_t)pid, name, true);
	free(name);
	return ret;
}

static int take_thread(struct pf *pf, uint64_t uuid, struct message track)
{
	uint64_t pid = number_of(track, TRACK_PARENT, 0) ^ TRACK_OF_PROCESS, tid = 0;
	struct field f;
	char *name;
	int ret;

	if (find(track, TRACK_THREAD, true, &f))
		tid = number_of(inside(&f), THREAD_TID, 0);
	if (!uuid || pid > INT32_MAX || tid > INT32_MAX ||
	    grow((void **)&pf->track, &pf->n_tracks, sizeof(*pf->track), uuid, 1 << 22) < 0) {
		pf->r->reading->skipped++;
		return 0;
	}
	name = find(track, TRACK_THREAD, true, &f) ? text_of(inside(&f), THREAD_NAME) :
						     text_of(track, TRACK_NAME);
	ret = decl_thread(pf->r, (int32_t)pid, uuid, (int32_t)tid, name, true,
			  &pf->track[uuid].thread);
	free(name);
	return ret;
}

static int take_track(struct pf *pf, struct message m)
{
	uint64_t uuid = number_of(m, TRACK_UUID, 0);
	struct field f;

	if (find(m, TRACK_PROCESS, true, &f))
		return take_process(pf, inside(&f));
	if (uuid >> TRACK_LANE_SHIFT || uuid & TRACK_OF_TRACE) /* a lane, or the trace itself */
		return 0;
	return take_thread(pf, uuid, m);
}

/* ---- events ---- */

struct notes {
	uint64_t spans, lost, filtered;
	char *version, *command;
};

static void take_note(struct message m, struct notes *notes)
{
	char *name = text_of(m, ANNOTATION_NAME);
	uint64_t n = number_of(m, ANNOTATION_NUMBER, 0);

	if (!name)
		return;
	if (!strcmp(name, "spans"))
		notes->spans = n;
	else if (!strcmp(name, "lost"))
		notes->lost = n;
	else if (!strcmp(name, "filtered"))
		notes->filtered = n;
	else if (!strcmp(name, "version") && !notes->version)
		notes->version = text_of(m, ANNOTATION_TEXT);
	else if (!strcmp(name, "command") && !notes->command)
		notes->command = text_of(m, ANNOTATION_TEXT);
	free(name);
}

static int take_instant(struct pf *pf, uint64_t ns, struct message event)
{
	struct notes notes = { 0 };
	struct message m = event;
	char *name = text_of(event, EVENT_NAME);
	struct field f;
	int ret = 0;

	while (next_field(&m, &f))
		if (f.is_bytes && f.number == EVENT_ANNOTATION)
			take_note(inside(&f), &notes);
	if (name && !strcmp(name, "trace begins")) {
		pf->r->reading->ours = true;
		ret = decl_about(pf->r, &(struct trace_about){ notes.version, notes.command,
							       pf->begin_ns, pf->begin_unix_ns });
	} else if (name && !strcmp(name, "trace ends")) {
		ret = decl_end(pf->r, &(struct trace_end){ notes.spans, notes.lost, notes.filtered,
							   pf->r->begin_ns + ns });
	}
	free(notes.version);
	free(notes.command);
	free(name);
	return ret;
}

/* False: the annotation holds no value that write-pftrace.c writes. */
static bool value_of(struct message m, struct trace_value *v)
{
	static const struct {
		bool is_value;
		enum value_type type;
	} fields[] = {
		[ANNOTATION_BOOL] = { true, VALUE_BOOL },
		[ANNOTATION_NUMBER] = { true, VALUE_U64 },
		[ANNOTATION_SIGNED] = { true, VALUE_I64 },
		[ANNOTATION_POINTER] = { true, VALUE_PTR },
	};
	struct field f;

	*v = (struct trace_value){ 0 };
	if (find(m, ANNOTATION_TEXT, true, &f)) {
		v->known = f.len != strlen(TRACE_UNKNOWN) ||
			   memcmp(f.bytes, TRACE_UNKNOWN, f.len) != 0;
		v->type = v->known ? VALUE_STR : VALUE_I64;
		return true;
	}
	while (next_field(&m, &f)) {
		if (f.is_bytes || f.number >= sizeof(fields) / sizeof(*fields) ||
		    !fields[f.number].is_value)
			continue;
		v->type = fields[f.number].type;
		v->value = value_extend(v->type, f.n);
		v->known = true;
	}
	return v->known;
}

static void take_frames(const struct pf *pf, struct message m, struct callstack *to)
{
	struct field f;

	while (next_field(&m, &f)) {
		uint64_t iid;
		char *text;

		if (!f.is_bytes || f.number != ANNOTATION_ARRAY)
			continue;
		iid = number_of(inside(&f), ANNOTATION_STRING_IID, 0);
		text = text_of(inside(&f), ANNOTATION_TEXT);
		if (!text && iid < pf->n_texts && pf->text[iid])
			text = must_strdup(pf->text[iid]);
		callstack_add(to, text);
	}
}

static void take_value(const struct pf *pf, struct message m, struct trace_value *room,
		       struct trace_span *span, struct callstack *stack)
{
	uint64_t iid = number_of(m, ANNOTATION_IID, 0) - ANNOTATION_VALUES;
	char *name = text_of(m, ANNOTATION_NAME);
	struct trace_value v;

	if (name && !strcmp(name, TRACE_KERNEL_NAME)) {
		free((char *)span->kernel);
		span->kernel = text_of(m, ANNOTATION_TEXT);
	} else if (name && !strcmp(name, TRACE_STACK)) {
		take_frames(pf, m, stack);
	} else if (name && !strcmp(name, TRACE_STACK_END)) {
		callstack_end(stack, text_of(m, ANNOTATION_TEXT));
	} else if (value_of(m, &v) && (name || iid < VALUE_NAMES)) {
		uint32_t had = span->n_values;
		char *text = v.type == VALUE_STR ? text_of(m, ANNOTATION_TEXT) : NULL;

		v.text = text;
		decl_value(span, room, name ? name : pf->value_name[iid], &v);
		if (span->n_values == had)
			free(text);
	}
	free(name);
}

static void take_annotation(const struct pf *pf, struct message m, struct trace_span *span,
			    struct trace_value *value, struct callstack *stack)
{
	uint64_t iid = number_of(m, ANNOTATION_IID, 0);

	if (iid == ANNOTATION_START)
		span->start_ns = number_of(m, ANNOTATION_NUMBER, 0);
	else if (iid == ANNOTATION_DUR)
		span->dur_ns = number_of(m, ANNOTATION_NUMBER, 0);
	else
		take_value(pf, m, value, span, stack);
}

static int take_end(struct pf *pf, uint64_t ns, uint64_t track, struct message event)
{
	struct begun begun = pf->begun;
	uint32_t id = (uint32_t)track;
	struct trace_value value[VALUE_MAX];
	struct callstack stack = { 0 };
	struct trace_span span = { .start_ns = begun.ns, .dur_ns = ns - begun.ns };
	struct field f;
	int ret;

	pf->begun.any = false;
	if (!begun.any || begun.track != track || ns < begun.ns || id >= pf->n_tracks ||
	    !pf->track[id].thread || begun.iid >= pf->n_names || !pf->name[begun.iid].function) {
		pf->r->reading->skipped++;
		return 0;
	}
	while (next_field(&event, &f))
		if (f.is_bytes && f.number == EVENT_ANNOTATION)
			take_annotation(pf, inside(&f), &span, value, &stack);
	span.stack = callstack_get(&stack);
	span.start_ns += pf->r->begin_ns;
	span.thread = pf->track[id].thread;
	span.function = pf->name[begun.iid].function;
	span.kind = pf->name[begun.iid].delay ? TRACE_DELAY : TRACE_CALL;
	ret = decl_span(pf->r, &span);
	callstack_clear(&stack);
	for (uint32_t i = 0; i < span.n_values; i++)
		free((char *)value[i].text);
	free((char *)span.kernel);
	return ret;
}

static int take_event(struct pf *pf, uint64_t ns, struct message event)
{
	uint64_t type = 0, track = 0, iid = 0;
	struct message m = event;
	struct field f;

	while (next_field(&m, &f)) {
		if (f.number == EVENT_TYPE)
			type = f.n;
		else if (f.number == EVENT_TRACK)
			track = f.n;
		else if (f.number == EVENT_NAME_IID)
			iid = f.n;
	}
	if (type == TYPE_END)
		return take_end(pf, ns, track, event);
	if (type == TYPE_INSTANT && track == TRACK_OF_TRACE)
		return take_instant(pf, ns, event);
	if (type == TYPE_BEGIN) {
		pf->r->reading->open += pf->begun.any;
		pf->begun = (struct begun){ true, ns, track, iid };
	}
	return 0;
}

/* ---- packets ---- */

static int take_packet(struct pf *pf, struct message packet, bool *sound)
{
	struct message m = packet, event = { NULL, NULL };
	uint64_t ns = 0;
	struct field f;
	int ret = 0;

	while (ret == 0 && next_field(&m, &f)) {
		if (!f.is_bytes && f.number == PACKET_TIMESTAMP)
			ns = f.n;
		else if (!f.is_bytes)
			continue;
		else if (f.number == PACKET_TRACK_EVENT)
			event = inside(&f);
		else if (f.number == PACKET_INTERNED)
			ret = take_interned(pf, inside(&f));
		else if (f.number == PACKET_TRACK)
			ret = take_track(pf, inside(&f));
		else if (f.number == PACKET_CLOCK_SNAPSHOT && !pf->r->about_given)
			take_clocks(pf, inside(&f));
	}
	*sound = ret < 0 || m.at == m.end;
	return ret == 0 && event.at && *sound ? take_event(pf, ns, event) : ret;
}

enum next { PACKET, WHOLE, PARTLY, BROKEN };

/* The next packet, whole in the window. */
static enum next next_packet(struct input *in, struct message *packet, size_t *size)
{
	do {
		struct message m = { in->buf + in->at, in->buf + in->n };
		uint64_t tag, len;

		if (m.at == m.end)
			continue;
		if (!get_varint(&m, &tag) || !get_varint(&m, &len)) {
			if (in->n - in->at > 2 * PB_VARINT_MAX)
				return BROKEN;
			continue;
		}
		if (tag != (TRACE_PACKET << 3 | PB_BYTES) || len > INPUT_MAX / 2)
			return BROKEN;
		if (len <= (uint64_t)(m.end - m.at)) {
			*packet = (struct message){ m.at, m.at + len };
			*size = (size_t)(m.at + len - (in->buf + in->at));
			return PACKET;
		}
	} while (input_more(in));
	return in->at == in->n ? WHOLE : PARTLY;
}

static void damaged(struct reader *r, const char *why)
{
	snprintf(r->reading->damage, sizeof(r->reading->damage), "%s", why);
}

int read_pftrace(struct reader *r)
{
	struct pf pf = { .r = r };
	enum next next = WHOLE;
	bool sound = true;
	int ret = 0;

	while (ret == 0 && sound) {
		struct message packet;
		size_t size = 0;

		next = next_packet(&r->in, &packet, &size);
		if (next != PACKET)
			break;
		ret = take_packet(&pf, packet, &sound);
		if (sound)
			r->in.at += size;
	}
	if (next == BROKEN)
		damaged(r, "no packet of a trace begins there");
	else if (!sound)
		damaged(r, "a packet is malformed");
	r->reading->open += pf.begun.any;
	r->reading->cut |= next == PARTLY;
	for (size_t i = 0; i < pf.n_texts; i++)
		free(pf.text[i]);
	free(pf.text);
	free(pf.name);
	free(pf.track);
	return ret;
}
