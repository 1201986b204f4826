/* SPDX-License-Identifier: MIT */
#include "doorbell.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "clock.h"
#include "inject/arch/arch.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

enum {
	WAIT_MOST = 127, /* 128, one of them sbinject's own */
	RENEW_NS = 90000000,
	LATE_NS = 500000000,
	RUNG_NS = 50000,
};

/* As in <linux/futex.h> since 5.16. */
struct doorbell_waitv {
	uint64_t val, uaddr;
	uint32_t flags, reserved;
};

struct watched {
	struct page *page;
	uint32_t seen;
};

struct doorbells {
	pthread_mutex_t lock;
	pthread_t thread;
	int fd;
	uint32_t changed; /* sbinject's own futex: the list changed, or the thread must end */
	bool stop;
	uint64_t lease_ticks; /* 0: this thread does not renew leases yet */
	uint64_t alive_ns;    /* the session's last call of doorbells_alive() */
	uint64_t renewed_ns;
	struct watched *list;
	size_t n;
};

static uint32_t doorbell_value(const struct page *page)
{
	return __atomic_load_n(&page_notice(page)->doorbell, __ATOMIC_ACQUIRE);
}

static void renew(const struct doorbells *b, struct page *page)
{
	if (b->lease_ticks)
		page_lease(page, arch->clock_read() + b->lease_ticks);
}

/* The lock is held. */
static void renew_all(struct doorbells *b)
{
	uint64_t now = clock_ns();

	if (now - b->renewed_ns < RENEW_NS ||
	    now - __atomic_load_n(&b->alive_ns, __ATOMIC_RELAXED) > BELLS_ALIVE_MS * 1000000ull)
		return;
	b->renewed_ns = now;
	for (size_t i = 0; i < b->n; i++)
		renew(b, b->list[i].page);
}

/* Fills the words to sleep on; true if a doorbell has been rung since the last call. */
static bool look(struct doorbells *b, struct doorbell_waitv *wait, size_t *n, bool *all, bool *stop)
{
	bool rung = false;

	pthread_mutex_lock(&b->lock);
	*stop = b->stop;
	renew_all(b);
	*n = 0;
	wait[(*n)++] = (struct doorbell_waitv){ .val = b->changed,
						.uaddr = (uintptr_t)&b->changed,
						.flags = 2 /* 32 bits */ };
	for (size_t i = 0; i < b->n; i++) {
		uint32_t now = doorbell_value(b->list[i].page);

		rung |= now != b->list[i].seen;
		b->list[i].seen = now;
		if (*n <= WAIT_MOST)
			wait[(*n)++] = (struct doorbell_waitv){
				.val = now,
				.flags = 2,
				.uaddr = (uintptr_t)&page_notice(b->list[i].page)->doorbell,
			};
	}
	*all = *n == b->n + 1;
	pthread_mutex_unlock(&b->lock);
	return rung;
}

/* futex_waitv's timeout is absolute. */
static void sleep_on(struct doorbell_waitv *wait, size_t n, bool all)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += all ? 100000000 : 10000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	if (syscall(SYS_futex_waitv, wait, n, 0, &until, CLOCK_MONOTONIC) >= 0 ||
	    errno == ETIMEDOUT || errno == EAGAIN || errno == EINTR)
		return;
	/* ENOSYS, or a failure that lasts: a real-time thread must not spin on it. */
	nanosleep(&(struct timespec){ .tv_nsec = n > 1 ? 1000000 : 100000000 }, NULL);
}

/*
 * Runs the thread before the session, which has a real-time class itself while it holds threads: a
 * lease whose renewal waits for the session, or for fifty busy threads of the target, lapses.
 * Without the permission the thread keeps its class.
 */
static void go_first(void)
{
	struct sched_param prio = { .sched_priority = 3 };

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &prio);
}

static void *doorbell_main(void *arg)
{
	struct doorbell_waitv wait[WAIT_MOST + 1];
	struct doorbells *b = arg;
	uint64_t one = 1;
	bool all, stop;
	size_t n;

	go_first();
	for (;;) {
		bool rung = look(b, wait, &n, &all, &stop);

		if (stop)
			return NULL;
		if (!rung) {
			sleep_on(wait, n, all);
			continue;
		}
		if (write(b->fd, &one, sizeof(one)) < 0 && errno != EAGAIN) /* EAGAIN: readable */
			return NULL;
		/* A process that rings without end must not keep a processor busy. */
		nanosleep(&(struct timespec){ .tv_nsec = RUNG_NS }, NULL);
	}
}

struct doorbells *doorbells_open(void)
{
	struct doorbells *b = calloc(1, sizeof(*b));
	sigset_t all, old;
	pthread_attr_t attr;
	int ret;

	if (!b)
		return NULL;
	pthread_mutex_init(&b->lock, NULL);
	b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	ret = b->fd < 0 ? -1 : pthread_create(&b->thread, &attr, doorbell_main, b);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (ret == 0)
		return b;
	if (b->fd >= 0)
		close(b->fd);
	free(b);
	return NULL;
}

int doorbells_fd(const struct doorbells *b)
{
	return b->fd;
}

static void wake(struct doorbells *b)
{
	__atomic_add_fetch(&b->changed, 1, __ATOMIC_ACQ_REL);
	syscall(SYS_futex, &b->changed, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void doorbells_lease(struct doorbells *b, uint64_t ticks)
{
	doorbells_alive(b);
	pthread_mutex_lock(&b->lock);
	b->lease_ticks = ticks;
	pthread_mutex_unlock(&b->lock);
}

void doorbells_alive(struct doorbells *b)
{
	uint64_t now = clock_ns();
	bool late = now - __atomic_load_n(&b->alive_ns, __ATOMIC_RELAXED) > LATE_NS;

	__atomic_store_n(&b->alive_ns, now, __ATOMIC_RELAXED);
	if (!late)
		return;
	/* Leases may have lapsed: renew them before the thread's next turn. */
	pthread_mutex_lock(&b->lock);
	b->renewed_ns = 0;
	renew_all(b);
	pthread_mutex_unlock(&b->lock);
}

void doorbells_add(struct doorbells *b, struct page *page)
{
	pthread_mutex_lock(&b->lock);
	b->list = realloc(b->list, (b->n + 1) * sizeof(*b->list));
	if (!b->list)
		abort();
	b->list[b->n++] = (struct watched){ .page = page };
	renew(b, page);
	pthread_mutex_unlock(&b->lock);
	wake(b);
}

void doorbells_remove(struct doorbells *b, struct page *page)
{
	pthread_mutex_lock(&b->lock);
	for (size_t i = 0; i < b->n; i++) {
		if (b->list[i].page != page)
			continue;
		b->list[i] = b->list[--b->n];
		break;
	}
	pthread_mutex_unlock(&b->lock);
	wake(b);
}

void doorbells_close(struct doorbells *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	pthread_mutex_unlock(&b->lock);
	wake(b);
	pthread_join(b->thread, NULL);
	close(b->fd);
	free(b->list);
	free(b);
}
