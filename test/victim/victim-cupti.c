/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for libcupti.so: the few functions of the activity API that a tool needs, and records
 * of what the stand-in for libcuda.so.1 is asked for, with times that are known: a kernel of the
 * handle n * 4096 runs for 2000 + 100 n ns, a copy for 500 ns and one for each KiB, a memset for
 * 300 ns, each from the moment of its call on. It keeps a log of its own of what it recorded, and
 * prints it when the process exits. Records are given back by a thread of its own when a buffer is
 * full, and else by a flush. The clock is CLOCK_REALTIME, as CUPTI's is without a callback.
 *
 * VICTIM_CUPTI has words: subscribed (another has), later (... from 300 ms after the first enable),
 * registered (another has buffers), uninitialized, version=N, odd (records of unknown kinds and
 * without times between the others), hang (cuptiActivityEnable() does not return), refuse (it
 * fails), small (buffers are given back after ten records), silent (no log).
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include "victim.h"

enum { OK = 0, INVALID_OPERATION = 7, NOT_INITIALIZED = 15, UNKNOWN = 999, MULTIPLE = 39 };
enum { COPY = 1, MEMSET = 2, CONCURRENT_KERNEL = 10, PEER = 22, KINDS = 64 };

typedef void request_fn(uint8_t **buffer, size_t *size, size_t *most);
typedef void complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			 size_t valid);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static request_fn *request;
static complete_fn *complete;
static bool enabled[KINDS], subscribed, registered;
static uint64_t first_enable_ns;
static uint32_t version = 28;
static uint64_t subscriptions, dropped;
static char words[256];

static struct buffer {
	uint8_t *at;
	size_t size, used, records;
	struct buffer *next;
} * now, *full;

/* The log: by what was recorded. */
static struct log {
	char name[96];
	uint64_t n, total_ns, min_ns, max_ns, bytes;
} logs[64];

static bool word(const char *w)
{
	const char *at = strstr(words, w);

	return at && (at == words || at[-1] == ',');
}

static uint64_t real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void log_add(const char *name, uint64_t ns, uint64_t bytes)
{
	struct log *l = logs;

	while (l < logs + 63 && l->n && strcmp(l->name, name) != 0)
		l++;
	snprintf(l->name, sizeof(l->name), "%s", name);
	l->min_ns = !l->n || ns < l->min_ns ? ns : l->min_ns;
	l->max_ns = ns > l->max_ns ? ns : l->max_ns;
	l->n++;
	l->total_ns += ns;
	l->bytes += bytes;
}

/* ---- buffers ---- */

static void give_back(struct buffer *b)
{
	complete(NULL, 0, b->at, b->size, b->used);
	free(b);
}

static void *deliver(void *arg)
{
	(void)arg;
	for (;;) {
		struct buffer *b;

		pthread_mutex_lock(&lock);
		b = full;
		full = b ? b->next : NULL;
		pthread_mutex_unlock(&lock);
		if (b)
			give_back(b);
		else
			victim_sleep_ns(2000000);
	}
	return NULL;
}

/* Room for a record, zeroed, with the lock held; NULL: there is none. */
static uint8_t *place(size_t size)
{
	struct buffer *b = now;
	uint8_t *at;

	if (b && (b->size - b->used < size || (word("small") && b->records == 10))) {
		b->next = full;
		full = b;
		b = now = NULL;
	}
	if (!b) {
		size_t most;

		b = calloc(1, sizeof(*b));
		if (!b)
			abort();
		request(&b->at, &b->size, &most);
		if (!b->at || b->size < size) {
			free(b);
			dropped++;
			return NULL;
		}
		now = b;
	}
	at = b->at + b->used;
	b->used += size;
	b->records++;
	memset(at, 0, size);
	return at;
}

static void put32(uint8_t *record, size_t at, uint32_t v)
{
	memcpy(record + at, &v, sizeof(v));
}

static void put64(uint8_t *record, size_t at, uint64_t v)
{
	memcpy(record + at, &v, sizeof(v));
}

static const size_t sizes[KINDS] = {
	[COPY] = 112, [MEMSET] = 80, [CONCURRENT_KERNEL] = 208, [PEER] = 120, [33] = 40,
};

static void times(uint8_t *record, size_t device, size_t correlation, uint64_t ns)
{
	static uint32_t number;
	uint64_t start = real_ns();

	put64(record, 16, start);
	put64(record, 24, start + ns);
	put32(record, device, 1);
	put32(record, device + 4, 3);
	put32(record, correlation, ++number);
}

/* Kernels have a name by their handle, one of them none. */
static char names[16][64];

static const char *name_of(uint64_t handle)
{
	unsigned int n = (unsigned int)(handle / 4096 % 16);

	return n == 5 ? NULL : names[n];
}

static void odd(void)
{
	uint8_t *record = place(sizes[33]);

	if (record)
		put32(record, 0, 33);
	record = place(sizes[COPY]);
	if (record)
		put32(record, 0, COPY);
}

static void watch(int kind, uint64_t handle, uint64_t bytes, void *stream, const unsigned shape[7])
{
	uint64_t ns = kind == CONCURRENT_KERNEL ? 2000 + handle / 4096 % 16 * 100 :
		      kind == MEMSET		? 300 :
						  500 + bytes / 1024;
	const char *name = kind == CONCURRENT_KERNEL ? name_of(handle) : "";
	uint8_t *record = NULL;

	pthread_mutex_lock(&lock);
	if (enabled[kind] && request)
		record = place(sizes[kind]);
	if (record && kind == CONCURRENT_KERNEL) {
		times(record, 40, 92, ns);
		put32(record, 48, stream ? 20 : 7);
		for (size_t i = 0; i < 6; i++)
			put32(record, 52 + 4 * i, shape[i]);
		put32(record, 76, 16);
		put32(record, 80, shape[6]);
		put64(record, 104, (uintptr_t)name);
	} else if (record) {
		times(record, 32, kind == PEER ? 60 : 44, ns);
		put32(record, 40, stream ? 20 : 7);
		put64(record, 8, bytes);
		put32(record, 4, kind == MEMSET ? 77 : (uint32_t)handle);
	}
	if (record) {
		put32(record, 0, (uint32_t)kind);
		log_add(kind == CONCURRENT_KERNEL ? name ? name : "(none)" :
			kind == MEMSET		  ? "memset" :
						    "copy",
			ns, bytes);
	}
	if (record && word("odd"))
		odd();
	pthread_mutex_unlock(&lock);
}

/* ---- the functions ---- */

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int cuptiGetVersion(uint32_t *v)
{
	*v = version;
	return OK;
}

int cuptiGetTimestamp(uint64_t *ns)
{
	*ns = real_ns();
	return OK;
}

static bool taken(void)
{
	return subscribed || word("subscribed") ||
	       (word("later") && first_enable_ns && real_ns() - first_enable_ns > 300000000);
}

int cuptiSubscribe(void **subscriber, void (*callback)(void *, int, uint32_t, const void *),
		   void *user)
{
	(void)callback;
	(void)user;
	if (word("uninitialized"))
		return NOT_INITIALIZED;
	if (taken())
		return MULTIPLE;
	subscribed = true;
	subscriptions++;
	*subscriber = &subscribed;
	return OK;
}

int cuptiUnsubscribe(void *subscriber)
{
	(void)subscriber;
	subscribed = false;
	return OK;
}

int cuptiActivityRegisterCallbacks(request_fn *r, complete_fn *c)
{
	pthread_mutex_lock(&lock);
	request = r;
	complete = c;
	registered = true;
	pthread_mutex_unlock(&lock);
	return OK;
}

int cuptiActivityEnable(int kind)
{
	static bool begun;
	pthread_t thread;

	if (word("refuse") && kind == MEMSET)
		return UNKNOWN;
	while (word("hang"))
		victim_sleep_ns(10000000);
	pthread_mutex_lock(&lock);
	enabled[kind] = true;
	first_enable_ns = first_enable_ns ? first_enable_ns : real_ns();
	pthread_mutex_unlock(&lock);
	if (!begun) {
		begun = true;
		pthread_create(&thread, NULL, deliver, NULL);
		pthread_detach(thread);
	}
	return OK;
}

int cuptiActivityDisable(int kind)
{
	pthread_mutex_lock(&lock);
	enabled[kind] = false;
	pthread_mutex_unlock(&lock);
	return OK;
}

int cuptiActivityFlushAll(uint32_t flag)
{
	struct buffer *b, *next;

	(void)flag;
	if (!registered && !word("registered"))
		return INVALID_OPERATION;
	pthread_mutex_lock(&lock);
	b = full;
	full = NULL;
	if (now) {
		now->next = b;
		b = now;
		now = NULL;
	}
	pthread_mutex_unlock(&lock);
	for (; b; b = next) {
		next = b->next;
		give_back(b);
	}
	return OK;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *at = *record ? (uint8_t *)*record : buffer;

	if (*record) {
		uint32_t kind;

		memcpy(&kind, at, sizeof(kind));
		at += kind < KINDS ? sizes[kind] : 0;
	}
	if ((size_t)(at - buffer) >= valid)
		return 12; /* CUPTI_ERROR_MAX_LIMIT_REACHED */
	*record = at;
	return OK;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n)
{
	(void)context;
	(void)stream;
	pthread_mutex_lock(&lock);
	*n = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return OK;
}

__attribute__((constructor)) static void begin(void)
{
	const char *env = getenv("VICTIM_CUPTI"), *at;
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void (**to)(int, uint64_t, uint64_t, void *, const unsigned[7]);

	for (unsigned int i = 0; i < 16; i++)
		snprintf(names[i], sizeof(names[i]), i % 2 ? "_Z6kernelILi%uEEvPf" : "plain_%u", i);
	snprintf(words, sizeof(words), "%s", env ? env : "");
	at = strstr(words, "version=");
	version = at ? (uint32_t)strtoul(at + 8, NULL, 10) : version;
	to = cuda ? (void (**)(int, uint64_t, uint64_t, void *, const unsigned[7]))dlsym(
			    cuda, "victim_cuda_watch") :
		    NULL;
	if (to)
		*to = watch;
}

__attribute__((destructor)) static void end(void)
{
	bool any = false;

	for (int i = 0; i < KINDS; i++)
		any |= enabled[i];
	if (word("silent"))
		return;
	printf("cupti subscribed %d enabled %d subscriptions %llu\n", subscribed, any,
	       (unsigned long long)subscriptions);
	for (size_t i = 0; i < 64 && logs[i].n; i++)
		printf("cupti record %llu %llu %llu %llu %llu %s\n", (unsigned long long)logs[i].n,
		       (unsigned long long)logs[i].total_ns, (unsigned long long)logs[i].min_ns,
		       (unsigned long long)logs[i].max_ns, (unsigned long long)logs[i].bytes,
		       logs[i].name);
	fflush(stdout);
}
