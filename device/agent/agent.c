/* SPDX-License-Identifier: MIT */
/*
 * The device agent: what runs inside a process whose device times are asked for. It is loaded by a
 * thread that is lent for that (inject/entry.c), which starts a thread of the agent's own: all
 * calls of CUPTI are made by that one, which may wait for any lock that the program holds.
 *
 * CUPTI cannot forget callbacks that were registered once, so this object is never unloaded
 * (device.mk links it so), and its callbacks do nothing while no session is at work. Buffers are
 * mapped when CUPTI asks for one, by whatever thread, and unmapped when it gives one back.
 *
 * No subscription is held: while one is, a profiler of the program's own that starts for the first
 * time would find the place taken, and would record no kernel from then on. It is taken for a
 * moment at the begin and at the end, to see whether another one has it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "record.h"
#include "inject/page-abi.h"

#define MS 1000000ull

enum {
	NAP_MS = 20,
	FLUSH_MS = 100,
	EXIT_MS = 3000,	 /* the most that the process's end waits */
	BEGINS_MS = 200, /* ... where nothing is recorded yet */
	DRAIN_MS = 1000,
	LEAVE_MS = 4000, /* a thread that was lent may be on its way out of the room until then */
	LINGER_MS = 20,
	BUFFER_BYTES = 1 << 20,
	LOOKS = 4,
};

extern int __cxa_atexit(void (*function)(void *), void *arg, void *dso);
int sb_agent(struct sb_mailbox *mailbox);

static struct cupti api;
static struct sb_device *current; /* NULL: no session is at work */
static uint32_t users;		  /* threads in a callback that may use it */
static uint32_t writing;	  /* the ring's lock */
static uint32_t at_work;	  /* the agent's thread is; 0: it is not */
static uint32_t exiting;	  /* the process does */
static pid_t owner;		  /* the process that it works in: a fork has none of it */
static bool registered;		  /* the callbacks are, since an earlier session */
static bool at_exit;		  /* the handler is registered */

enum { BEGINS = 1, RECORDS };

static const int kinds[] = { CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_KIND_COPY, CUPTI_KIND_PEER_COPY,
			     CUPTI_KIND_MEMSET };
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void nap(unsigned int ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * (long)MS }, NULL);
}

/* ---- the ring ---- */

static void copy_in(const struct sb_device *d, uint64_t at, const void *from, size_t n)
{
	uint64_t place = at & (d->ring_size - 1);
	size_t first = n < d->ring_size - place ? n : (size_t)(d->ring_size - place);

	memcpy((char *)(uintptr_t)d->ring + place, from, first);
	memcpy((char *)(uintptr_t)d->ring, (const char *)from + first, n - first);
}

/* False: it has no room. */
static bool put(struct sb_device *d, struct sb_device_event *e, const char *name)
{
	size_t len = name ? strnlen(name, SB_DEVICE_NAME) : 0;
	uint64_t tail = __atomic_load_n(&d->tail, __ATOMIC_ACQUIRE);

	e->name = (uint16_t)len;
	e->size = (uint32_t)((sizeof(*e) + len + 7) & ~(size_t)7);
	if (d->ring_size - (d->head - tail) < e->size)
		return false;
	copy_in(d, d->head, e, sizeof(*e));
	if (name)
		copy_in(d, d->head + sizeof(*e), name, len);
	__atomic_store_n(&d->head, d->head + e->size, __ATOMIC_RELEASE);
	return true;
}

static void lock_ring(void)
{
	while (__atomic_exchange_n(&writing, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock_ring(void)
{
	__atomic_store_n(&writing, 0, __ATOMIC_RELEASE);
}

/* ---- callbacks: on any thread, also when no session is at work ---- */

static struct sb_device *enter(void)
{
	struct sb_device *d;

	__atomic_add_fetch(&users, 1, __ATOMIC_SEQ_CST);
	d = __atomic_load_n(&current, __ATOMIC_SEQ_CST);
	return d && owner == getpid() ? d : NULL;
}

static void leave(void)
{
	__atomic_sub_fetch(&users, 1, __ATOMIC_SEQ_CST);
}

static void request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	struct sb_device *d = enter();
	void *at = MAP_FAILED;

	if (d)
		at = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	*buffer = at == MAP_FAILED ? NULL : at;
	*size = at == MAP_FAILED ? 0 : BUFFER_BYTES;
	*max_records = 0;
	if (d && *buffer)
		__atomic_add_fetch(&d->buffers, 1, __ATOMIC_RELAXED);
	leave();
}

static void take(struct sb_device *d, const uint8_t *record, size_t room)
{
	struct sb_device_event e;
	uint64_t name;

	d->records++;
	if (!record_read(record, room, &e, &name))
		d->unknown++;
	else if (put(d, &e, (const char *)(uintptr_t)name))
		d->written++;
	else
		d->dropped++;
}

static void take_all(struct sb_device *d, uint8_t *buffer, size_t valid)
{
	void *record = NULL;

	lock_ring();
	while (api.next(buffer, valid, &record) == CUPTI_OK) {
		size_t at = (size_t)((uint8_t *)record - buffer);

		if (at >= valid)
			break;
		take(d, record, valid - at);
	}
	unlock_ring();
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	struct sb_device *d = enter();

	(void)context;
	(void)stream;
	(void)size;
	if (d && buffer && valid && valid <= BUFFER_BYTES)
		take_all(d, buffer, valid);
	if (d && buffer)
		__atomic_sub_fetch(&d->buffers, 1, __ATOMIC_RELAXED);
	leave();
	if (buffer)
		munmap(buffer, BUFFER_BYTES);
}

static void no_callback(void *user, int domain, uint32_t id, const void *data)
{
	(void)user;
	(void)domain;
	(void)id;
	(void)data;
}

/* ---- the agent's thread ---- */

static bool alive(const struct sb_device *d)
{
	uint64_t said = __atomic_load_n(&d->alive_ns, __ATOMIC_ACQUIRE), now = now_ns();

	return now < said || now - said < SB_DEVICE_ALIVE_NS;
}

static bool stops(const struct sb_device *d)
{
	return __atomic_load_n(&d->stop, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&exiting, __ATOMIC_ACQUIRE) || !alive(d);
}

static void explain(struct sb_device *d, const char *why)
{
	size_t len = why ? strnlen(why, sizeof(d->reason) - 1) : 0;

	if (why)
		memcpy(d->reason, why, len);
	d->reason[len] = '\0';
}

static int refuse(struct sb_device *d, enum sb_device_step step, int code, const char *why)
{
	d->step = step;
	d->code = code;
	explain(d, why);
	return -1;
}

static int find_functions(struct sb_device *d)
{
	static const char *const names[] = {
		"cuptiGetVersion",
		"cuptiSubscribe",
		"cuptiUnsubscribe",
		"cuptiActivityRegisterCallbacks",
		"cuptiActivityEnable",
		"cuptiActivityDisable",
		"cuptiActivityFlushAll",
		"cuptiActivityGetNextRecord",
		"cuptiActivityGetNumDroppedRecords",
		"cuptiGetTimestamp",
	};
	void *library = dlopen(d->cupti, RTLD_NOW | RTLD_LOCAL), **to = (void **)&api;

	_Static_assert(sizeof(api) == sizeof(names), "a name for each function");
	if (!library)
		return refuse(d, SB_DEVICE_OPEN, 0, dlerror());
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		to[i] = dlsym(library, names[i]);
		if (!to[i])
			return refuse(d, SB_DEVICE_FUNCTION, 0, names[i]);
	}
	return 0;
}

/* Another subscriber's place is not taken, and another user's buffers are not replaced. */
static int look_for_others(struct sb_device *d)
{
	void *subscriber = NULL;
	int code = api.subscribe(&subscriber, no_callback, NULL);

	if (code != CUPTI_OK)
		return refuse(d, SB_DEVICE_SUBSCRIBE, code, NULL);
	api.unsubscribe(subscriber);
	code = registered ? CUPTI_INVALID_OPERATION : api.flush(0);
	return code == CUPTI_INVALID_OPERATION ? 0 : refuse(d, SB_DEVICE_TAKEN, code, NULL);
}

static void disable(size_t n)
{
	while (n--)
		api.disable(kinds[n]);
}

static int enable(struct sb_device *d)
{
	int code = api.register_callbacks(request, complete);

	if (code != CUPTI_OK)
		return refuse(d, SB_DEVICE_REGISTER, code, NULL);
	registered = true;
	for (size_t i = 0; i < KINDS; i++) {
		code = api.enable(kinds[i]);
		if (code == CUPTI_OK)
			continue;
		disable(i);
		return refuse(d, SB_DEVICE_ENABLE, code, NULL);
	}
	return 0;
}

/* Of a few looks the one with the least time between its two edges. */
static int sample_clock(struct sb_device *d)
{
	struct sb_device_event best = { .kind = SB_DEVICE_CLOCK_SAMPLE, .bytes = UINT64_MAX };

	for (int i = 0; i < LOOKS; i++) {
		uint64_t before = now_ns(), ns, after;
		int code = api.timestamp(&ns);

		after = now_ns();
		if (code != CUPTI_OK)
			return refuse(d, SB_DEVICE_CLOCK, code, NULL);
		if (after - before >= best.bytes)
			continue;
		best.start = ns;
		best.bytes = after - before;
		best.end = before + best.bytes / 2;
	}
	lock_ring();
	put(d, &best, NULL); /* without it, the one before it holds for longer */
	unlock_ring();
	return 0;
}

static int begin(struct sb_device *d)
{
	int code;

	if (find_functions(d) < 0)
		return -1;
	code = api.get_version(&d->cupti_version);
	if (code != CUPTI_OK || !record_version_known(d->cupti_version))
		return refuse(d, SB_DEVICE_VERSION, code, NULL);
	if (look_for_others(d) < 0 || sample_clock(d) < 0 || enable(d) < 0)
		return -1;
	d->begin_ns = now_ns();
	return 0;
}

static void count_dropped(struct sb_device *d)
{
	size_t n = 0;

	if (api.dropped(NULL, 0, &n) == CUPTI_OK)
		d->cupti_dropped += n;
}

static void serve(struct sb_device *d)
{
	uint64_t flushed = now_ns(), now;

	__atomic_store_n(&at_work, RECORDS, __ATOMIC_RELEASE);
	__atomic_store_n(&d->state, SB_DEVICE_RUNS, __ATOMIC_RELEASE);
	for (; !stops(d); nap(NAP_MS)) {
		now = now_ns();
		if (now - flushed < FLUSH_MS * MS)
			continue;
		flushed = now;
		sample_clock(d);
		api.flush(0);
		count_dropped(d);
	}
}

/* What another one has enabled since is not taken away from it. */
static void end(struct sb_device *d)
{
	void *subscriber = NULL;
	int code = api.subscribe(&subscriber, no_callback, NULL);

	if (code == CUPTI_MULTIPLE_SUBSCRIBERS) {
		d->end = SB_DEVICE_LOST;
		return;
	}
	disable(KINDS);
	d->end_ns = now_ns();
	sample_clock(d);
	api.flush(CUPTI_FLUSH_FORCED);
	count_dropped(d);
	sample_clock(d);
	if (code == CUPTI_OK)
		api.unsubscribe(subscriber);
	d->end = __atomic_load_n(&exiting, __ATOMIC_ACQUIRE) ? SB_DEVICE_BY_EXIT : SB_DEVICE_BY_US;
}

/* At the process's end there is no later look: sbinject reads the last events now. */
static void await_reader(struct sb_device *d)
{
	uint64_t until = now_ns() + DRAIN_MS * MS;

	__atomic_store_n(&d->final, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&exiting, __ATOMIC_ACQUIRE) && alive(d) && now_ns() < until &&
	       !__atomic_load_n(&d->seen, __ATOMIC_ACQUIRE))
		nap(1);
}

/* sbinject is gone, and nothing of it looks at the room any more, once that thread has left. */
static void unmap_room(struct sb_device *d)
{
	uint64_t until = now_ns() + LEAVE_MS * MS;

	while (now_ns() < until)
		nap(4 * NAP_MS);
	munmap((void *)(uintptr_t)d->room, d->room_size);
}

/* Who unmaps the room? `taken` before the state and after it: at most one does. */
static void leave_room(struct sb_device *d, enum sb_device_state state)
{
	__atomic_store_n(&d->state, state, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&d->taken, __ATOMIC_ACQUIRE) && alive(d))
		nap(LINGER_MS);
	if (__atomic_load_n(&d->taken, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&d->left, 1, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(&d->state, SB_DEVICE_GONE, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&d->taken, __ATOMIC_SEQ_CST))
		unmap_room(d);
}

static void *worker(void *arg)
{
	struct sb_device *d = arg;
	bool fine;

	d->worker = (uint32_t)syscall(SYS_gettid);
	fine = begin(d) == 0;
	/* Not earlier: threads that CUPTI starts in begin() would have the name, and stay. */
	prctl(PR_SET_NAME, "sbinject-device");
	if (fine)
		serve(d);
	if (fine)
		end(d);
	/* From here on no callback writes. */
	__atomic_store_n(&current, NULL, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&users, __ATOMIC_SEQ_CST))
		nap(1);
	await_reader(d);
	__atomic_store_n(&at_work, 0, __ATOMIC_RELEASE);
	leave_room(d, fine ? SB_DEVICE_ENDED : SB_DEVICE_REFUSED);
	return NULL;
}

/* The last records are flushed before what the program has registered earlier runs. */
static void on_exit_of_process(void *arg)
{
	uint32_t work = __atomic_load_n(&at_work, __ATOMIC_ACQUIRE);
	uint64_t until = now_ns() + (work == RECORDS ? EXIT_MS : BEGINS_MS) * MS;

	(void)arg;
	if (!work || owner != getpid()) /* a fork has copies of these, and no thread of ours */
		return;
	__atomic_store_n(&exiting, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&at_work, __ATOMIC_ACQUIRE) && now_ns() < until)
		nap(1);
}

static int start(struct sb_device *d)
{
	uint32_t none = 0;
	pthread_t thread;

	if (!__atomic_compare_exchange_n(&at_work, &none, BEGINS, 0, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return refuse(d, SB_DEVICE_AGAIN, 0, NULL);
	owner = getpid();
	__atomic_store_n(&current, d, __ATOMIC_SEQ_CST);
	if (!at_exit && __cxa_atexit(on_exit_of_process, NULL, NULL) == 0)
		at_exit = true;
	if (pthread_create(&thread, NULL, worker, d) == 0)
		return pthread_detach(thread);
	__atomic_store_n(&current, NULL, __ATOMIC_SEQ_CST);
	__atomic_store_n(&at_work, 0, __ATOMIC_RELEASE);
	return refuse(d, SB_DEVICE_THREAD, 0, NULL);
}

/* Signals are blocked on the lent thread, and so on the agent's, and on those that CUPTI starts. */
__attribute__((visibility("default"))) int sb_agent(struct sb_mailbox *mailbox)
{
	struct sb_device *d = (struct sb_device *)((char *)mailbox + SB_DEVICE_OFF);

	if (d->magic != SB_DEVICE_MAGIC || mailbox->command != SB_AGENT_APPLY)
		return SB_AGENT_DAMAGED;
	d->left = start(d) < 0; /* there is no thread of ours */
	if (d->left)
		__atomic_store_n(&d->state, SB_DEVICE_REFUSED, __ATOMIC_RELEASE);
	return SB_AGENT_OK;
}
