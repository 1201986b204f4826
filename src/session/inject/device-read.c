/* SPDX-License-Identifier: MIT */
#include "device-read.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "src/base/must.h"
#include "src/session/trace-pipe.h"
#include "trace/idmap.h"

enum {
	LOOK_MS = 10,
	SAMPLES = 4096, /* of the clock, the newest: for some minutes */
	BATCH = 256,
	RING_MOST = 64 << 20,
	WAITS_MOST = 64 << 20, /* bytes for the pipe: further events wait in their ring */
	NAMES_MOST = 1 << 16,
	TRACKS_MOST = 4096,
};

struct sample {
	uint64_t device_ns, ns;
};

struct track {
	uint32_t device, context, stream, id;
};

struct named_function {
	char *name;
	uint8_t kind;
	uint32_t id;
};

struct device_room {
	pid_t pid;
	struct memory mem;
	uint64_t at;
	struct sb_device last;
	bool readable;
	uint64_t tail;
	struct sample *sample;
	size_t n_samples;
	uint64_t drift_ns, width_ns; /* the largest between two samples; of a sample's edges */
	struct track *track;
	size_t n_tracks;
	struct named_function *function;
	size_t n_functions;
	struct idmap by_name; /* hash of a name: index + 1 in function; the next hash if taken */
	struct trace_valued batch[BATCH];
	size_t n_batch;
	uint64_t spans;
	bool damaged, seen;
	bool stalled;	   /* it was not shown for long that sbinject is there */
	uint64_t shown_ns; /* ... last */
	uint8_t *bytes;	   /* of the ring, as copied */
	size_t room_for;
	struct device_room *next;
};

struct device_reader {
	pthread_mutex_t lock; /* of all below */
	pthread_t thread;
	struct tracing *tracing;
	struct device_room *rooms;
	bool end;
};

/* ---- the clock ---- */

static void add_sample(struct device_room *r, const struct sb_device_event *e)
{
	struct sample s = { e->start, e->end };
	const struct sample *before = r->n_samples ? &r->sample[r->n_samples - 1] : NULL;

	if (before && (s.ns <= before->ns || s.device_ns <= before->device_ns))
		return;
	if (!r->sample)
		r->sample = must_calloc(SAMPLES, sizeof(*r->sample));
	if (before) {
		int64_t d = (int64_t)((s.device_ns - before->device_ns) - (s.ns - before->ns));
		uint64_t drift = (uint64_t)(d < 0 ? -d : d);

		r->drift_ns = drift > r->drift_ns ? drift : r->drift_ns;
	}
	r->width_ns = e->bytes > r->width_ns ? e->bytes : r->width_ns;
	if (r->n_samples == SAMPLES) {
		memmove(r->sample, r->sample + SAMPLES / 2, sizeof(s) * (SAMPLES / 2));
		r->n_samples = SAMPLES / 2;
	}
	r->sample[r->n_samples++] = s;
}

/* By the straight line through the two samples around it, or from the nearest one on. */
static uint64_t time_of(const struct device_room *r, uint64_t device_ns)
{
	const struct sample *s = r->sample;
	size_t i = r->n_samples;

	while (i > 1 && s[i - 1].device_ns > device_ns)
		i--;
	if (i < r->n_samples && s[i - 1].device_ns <= device_ns) {
		double part = (double)(device_ns - s[i - 1].device_ns) /
			      (double)(s[i].device_ns - s[i - 1].device_ns);

		return s[i - 1].ns + (uint64_t)(part * (double)(s[i].ns - s[i - 1].ns));
	}
	return s[i - 1].ns + (device_ns - s[i - 1].device_ns);
}

/* ---- tracks and functions ---- */

static uint32_t track_of(struct device_reader *reader, struct device_room *r,
			 const struct sb_device_event *e)
{
	char name[64];

	for (size_t i = r->n_tracks; i-- > 0;)
		if (r->track[i].device == e->device && r->track[i].stream == e->stream &&
		    r->track[i].context == e->context)
			return r->track[i].id;
	if (r->n_tracks == TRACKS_MOST)
		return 0;
	snprintf(name, sizeof(name), "device %" PRIu32 ", stream %" PRIu32, e->device, e->stream);
	for (size_t i = 0; i < r->n_tracks; i++)
		if (r->track[i].device == e->device && r->track[i].stream == e->stream) {
			snprintf(name, sizeof(name),
				 "device %" PRIu32 ", context %" PRIu32 ", stream %" PRIu32,
				 e->device, e->context, e->stream);
			break;
		}
	r->track = must_realloc(r->track, (r->n_tracks + 1) * sizeof(*r->track));
	r->track[r->n_tracks] =
		(struct track){ e->device, e->context, e->stream,
				tracing_device_track(reader->tracing, r->pid, name) };
	return r->track[r->n_tracks++].id;
}

static const char *const kind_name[] = {
	[SB_DEVICE_KERNEL] = TRACE_DEVICE_KERNEL,
	[SB_DEVICE_COPY] = TRACE_DEVICE_COPY,
	[SB_DEVICE_MEMSET] = TRACE_DEVICE_MEMSET,
};

static const char *const copy_name[] = {
	"copy",
	"copy host to device",
	"copy device to host",
	"copy host to array",
	"copy array to host",
	"copy array to array",
	"copy array to device",
	"copy device to array",
	"copy device to device",
	"copy host to host",
	"copy device to another device",
};

static const char *name_of(const struct sb_device_event *e, const char *kernel)
{
	if (e->kind == SB_DEVICE_KERNEL)
		return *kernel ? kernel : "(kernel without a name)";
	if (e->kind == SB_DEVICE_MEMSET)
		return "memset";
	return copy_name[e->copy < sizeof(copy_name) / sizeof(*copy_name) ? e->copy : 0];
}

static uint32_t hash_of(const char *name, uint8_t kind)
{
	uint32_t h = 2166136261u ^ kind;

	while (*name)
		h = (h ^ (uint8_t)*name++) * 16777619u;
	return h ? h : 1;
}

static uint32_t function_of(struct device_reader *reader, struct device_room *r,
			    const struct sb_device_event *e, const char *kernel)
{
	const char *name = name_of(e, kernel);
	uint32_t hash = hash_of(name, e->kind), at;
	struct named_function *f;

	while ((at = idmap_get(&r->by_name, hash))) {
		f = &r->function[at - 1];
		if (f->kind == e->kind && !strcmp(f->name, name))
			return f->id;
		hash = hash + 1 ? hash + 1 : 1;
	}
	if (r->n_functions == NAMES_MOST)
		return 0;
	r->function = must_realloc(r->function, (r->n_functions + 1) * sizeof(*r->function));
	f = &r->function[r->n_functions++];
	*f = (struct named_function){ must_strdup(name), e->kind,
				      tracing_device_function(reader->tracing, name,
							      kind_name[e->kind]) };
	idmap_put(&r->by_name, hash, (uint32_t)r->n_functions);
	return f->id;
}

/* ---- spans ---- */

/* The values of each kind, in their order in a span. */
static const struct trace_values sets[] = {
	[SB_DEVICE_KERNEL] = { TRACE_VALUES_DEVICE,
			       11,
			       { { TRACE_DEVICE_NUMBER, VALUE_U32 },
				 { "context", VALUE_U32 },
				 { "stream", VALUE_U32 },
				 { "correlation", VALUE_U32 },
				 { "grid_x", VALUE_U32 },
				 { "grid_y", VALUE_U32 },
				 { "grid_z", VALUE_U32 },
				 { "block_x", VALUE_U32 },
				 { "block_y", VALUE_U32 },
				 { "block_z", VALUE_U32 },
				 { "shared", VALUE_U32 } } },
	[SB_DEVICE_COPY] = { TRACE_VALUES_DEVICE + 1,
			     5,
			     { { TRACE_DEVICE_NUMBER, VALUE_U32 },
			       { "context", VALUE_U32 },
			       { "stream", VALUE_U32 },
			       { "correlation", VALUE_U32 },
			       { TRACE_DEVICE_BYTES, VALUE_U64 } } },
	[SB_DEVICE_MEMSET] = { TRACE_VALUES_DEVICE + 2,
			       6,
			       { { TRACE_DEVICE_NUMBER, VALUE_U32 },
				 { "context", VALUE_U32 },
				 { "stream", VALUE_U32 },
				 { "correlation", VALUE_U32 },
				 { TRACE_DEVICE_BYTES, VALUE_U64 },
				 { "value", VALUE_U32 } } },
};

static void put_batch(struct device_reader *reader, struct device_room *r)
{
	if (r->n_batch)
		tracing_device_work(reader->tracing, r->batch, r->n_batch);
	r->spans += r->n_batch;
	r->n_batch = 0;
}

static void fill_values(struct trace_valued *to, const struct sb_device_event *e)
{
	uint64_t *v = to->value;

	*v++ = e->device;
	*v++ = e->context;
	*v++ = e->stream;
	*v++ = e->correlation;
	if (e->kind != SB_DEVICE_KERNEL) {
		*v++ = e->bytes;
		*v++ = e->value;
		return;
	}
	for (int i = 0; i < 3; i++)
		*v++ = e->grid[i];
	for (int i = 0; i < 3; i++)
		*v++ = e->block[i];
	*v = e->shared;
}

/* False: there is no number left for its track or function. */
static bool add_span(struct device_reader *reader, struct device_room *r,
		     const struct sb_device_event *e, const char *kernel)
{
	struct trace_valued *to = &r->batch[r->n_batch];
	uint64_t start = time_of(r, e->start);

	*to = (struct trace_valued){ .set = sets[e->kind].set };
	to->plain = (struct trace_plain){ .start_ns = start,
					  .dur_ns = e->end - e->start,
					  .thread = track_of(reader, r, e),
					  .function = function_of(reader, r, e, kernel),
					  .kind = TRACE_CALL };
	if (!to->plain.thread || !to->plain.function)
		return false;
	fill_values(to, e);
	if (++r->n_batch == BATCH)
		put_batch(reader, r);
	return true;
}

/* ---- the ring ---- */

static bool event_at(const struct device_room *r, size_t at, size_t n, struct sb_device_event *e,
		     char name[SB_DEVICE_NAME + 1])
{
	if (n - at < sizeof(*e))
		return false;
	memcpy(e, r->bytes + at, sizeof(*e));
	if (e->size % 8 || e->size < sizeof(*e) || e->size > n - at ||
	    e->name > e->size - sizeof(*e) || e->name > SB_DEVICE_NAME ||
	    e->kind < SB_DEVICE_CLOCK_SAMPLE || e->kind > SB_DEVICE_MEMSET ||
	    (e->kind != SB_DEVICE_CLOCK_SAMPLE && e->end < e->start))
		return false;
	memcpy(name, r->bytes + at + sizeof(*e), e->name);
	name[e->name] = '\0';
	return true;
}

static void take_events(struct device_reader *reader, struct device_room *r, size_t n)
{
	char name[SB_DEVICE_NAME + 1];
	struct sb_device_event e;

	for (size_t at = 0; at < n && !r->damaged; at += e.size) {
		r->damaged = !event_at(r, at, n, &e, name);
		if (r->damaged)
			break;
		if (e.kind == SB_DEVICE_CLOCK_SAMPLE)
			add_sample(r, &e);
		else
			r->damaged = !r->n_samples || !add_span(reader, r, &e, name);
	}
	put_batch(reader, r);
}

static bool copy_ring(struct device_room *r, size_t n)
{
	uint64_t size = r->last.ring_size, place = r->tail & (size - 1);
	size_t first = n < size - place ? n : (size_t)(size - place);

	if (n > r->room_for) {
		r->bytes = must_realloc(r->bytes, n);
		r->room_for = n;
	}
	return memory_peek(&r->mem, r->last.ring + place, r->bytes, first) == first &&
	       memory_peek(&r->mem, r->last.ring, r->bytes + first, n - first) == n - first;
}

static bool look(struct device_room *r)
{
	struct sb_device d;
	uint64_t size = r->last.ring_size, ring = r->last.ring;
	bool first = !r->last.magic;

	if (memory_peek(&r->mem, r->at, &d, sizeof(d)) != sizeof(d) || d.magic != SB_DEVICE_MAGIC)
		return false;
	/* What sbinject wrote there itself. */
	if (!first && (d.ring_size != size || d.ring != ring))
		r->damaged = true;
	else
		r->last = d;
	return !r->damaged;
}

/* True: there was something. */
static bool read_room(struct device_reader *reader, struct device_room *r)
{
	uint64_t n;

	if (r->damaged)
		return false;
	r->readable = look(r);
	if (!r->readable)
		return false;
	n = r->last.head - r->tail;
	if (n > r->last.ring_size || r->last.ring_size > RING_MOST || n % 8) {
		r->damaged = true;
		return false;
	}
	if (!n && r->last.final && !r->seen) {
		uint32_t seen = r->seen = 1;

		memory_write(&r->mem, r->at + offsetof(struct sb_device, seen), &seen, sizeof(seen),
			     NULL);
	}
	if (!n || tracing_waits(reader->tracing) > WAITS_MOST || !copy_ring(r, (size_t)n))
		return false;
	take_events(reader, r, (size_t)n);
	r->tail += n;
	memory_write(&r->mem, r->at + offsetof(struct sb_device, tail), &r->tail, sizeof(r->tail),
		     NULL);
	return true;
}

uint64_t device_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void show_life(struct device_room *r)
{
	uint64_t now = device_now_ns();

	r->stalled |= r->shown_ns && now - r->shown_ns > SB_DEVICE_ALIVE_NS / 2;
	r->shown_ns = now;
	if (r->readable)
		memory_write(&r->mem, r->at + offsetof(struct sb_device, alive_ns), &now,
			     sizeof(now), NULL);
}

static void *run(void *arg)
{
	struct device_reader *reader = arg;
	bool end = false;

	while (!end) {
		pthread_mutex_lock(&reader->lock);
		end = reader->end;
		for (struct device_room *r = reader->rooms; r; r = r->next) {
			read_room(reader, r);
			show_life(r);
		}
		pthread_mutex_unlock(&reader->lock);
		if (!end)
			poll(NULL, 0, LOOK_MS);
	}
	return NULL;
}

/* ---- the session's thread ---- */

struct device_reader *device_reader_open(struct tracing *tracing)
{
	struct device_reader *reader = must_calloc(1, sizeof(*reader));
	sigset_t all, old;
	int ret;

	reader->tracing = tracing;
	pthread_mutex_init(&reader->lock, NULL);
	for (int kind = SB_DEVICE_KERNEL; kind <= SB_DEVICE_MEMSET; kind++)
		tracing_device_values(tracing, &sets[kind]);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&reader->thread, NULL, run, reader);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!ret)
		return reader;
	pthread_mutex_destroy(&reader->lock);
	free(reader);
	return NULL;
}

void device_reader_close(struct device_reader *reader)
{
	if (!reader)
		return;
	pthread_mutex_lock(&reader->lock);
	reader->end = true;
	pthread_mutex_unlock(&reader->lock);
	pthread_join(reader->thread, NULL);
	pthread_mutex_destroy(&reader->lock);
	free(reader);
}

struct device_room *device_room_open(struct device_reader *reader, pid_t pid,
				     const struct memory *mem, uint64_t at)
{
	struct device_room *r = must_calloc(1, sizeof(*r));

	r->pid = pid;
	r->mem = *mem;
	r->at = at;
	pthread_mutex_lock(&reader->lock);
	r->readable = look(r);
	show_life(r);
	r->next = reader->rooms;
	reader->rooms = r;
	pthread_mutex_unlock(&reader->lock);
	return r;
}

bool device_room_look(struct device_reader *reader, struct device_room *r, struct sb_device *now)
{
	bool readable;

	pthread_mutex_lock(&reader->lock);
	*now = r->last;
	readable = r->readable;
	pthread_mutex_unlock(&reader->lock);
	return readable;
}

/* Why records may be missing; NULL: none are. */
static const char *cut_why(const struct device_room *r)
{
	const struct sb_device *d = &r->last;

	if (r->damaged)
		return "what the process has written of them is damaged";
	if (d->state == SB_DEVICE_GONE)
		return "sbinject was stopped for some seconds, and the part of it in the process "
		       "ended by itself";
	if (!d->final && r->stalled) /* what it has set `state` to is in memory that may be gone */
		return "the process ended without exit(), CUPTI did not answer, or sbinject was "
		       "stopped for some seconds: the last ones may be missing";
	if (!d->final)
		return "the process ended without exit(), or CUPTI did not answer: the last ones "
		       "may be missing";
	if (d->end == SB_DEVICE_LOST)
		return "another profiler began in the process meanwhile, and has the later ones";
	if (r->tail != d->head || r->spans != d->written)
		return "not all that was written was read";
	return NULL;
}

static bool add_sums(const struct device_room *r, uint64_t since_ns, struct device_sums *sums)
{
	uint64_t error = r->drift_ns + (r->width_ns + 1) / 2;
	const char *why = cut_why(r);

	if (!r->last.begin_ns)
		return false;
	sums->processes++;
	sums->records += r->last.records;
	sums->written += r->last.written;
	sums->dropped += r->last.dropped;
	sums->unknown += r->last.unknown;
	sums->cupti_dropped += r->last.cupti_dropped;
	sums->spans += r->spans;
	sums->clock_ns = error > sums->clock_ns ? error : sums->clock_ns;
	if (r->last.begin_ns > since_ns && r->last.begin_ns - since_ns > sums->late_ns)
		sums->late_ns = r->last.begin_ns - since_ns;
	sums->damaged |= r->damaged;
	if (why && !sums->cut_why)
		sums->cut_why = why;
	return true;
}

bool device_room_close(struct device_reader *reader, struct device_room *r, uint64_t since_ns,
		       struct device_sums *sums)
{
	bool begun;

	pthread_mutex_lock(&reader->lock);
	while (read_room(reader, r))
		;
	for (struct device_room **at = &reader->rooms; *at; at = &(*at)->next)
		if (*at == r) {
			*at = r->next;
			break;
		}
	pthread_mutex_unlock(&reader->lock);
	begun = add_sums(r, since_ns, sums);
	memory_close(&r->mem);
	for (size_t i = 0; i < r->n_functions; i++)
		free(r->function[i].name);
	free(r->function);
	free(r->track);
	free(r->sample);
	free(r->bytes);
	idmap_free(&r->by_name);
	free(r);
	return begun;
}
