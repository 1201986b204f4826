/* SPDX-License-Identifier: MIT */
/*
 * lockorder MODE [ROUNDS]: three threads take locks in turns, so that none ever waits for another
 * one: ROUNDS times, or until SIGTERM. MODE:
 *
 *	opposite	the first and the second one; the second and the first one
 *	same		both threads in one order
 *	circle		the first and the second, the second and the third, the third and the first
 *	try		as opposite, but the second thread only tries to get its second lock
 *	timed		as opposite, but the first thread takes its first lock by a call with a time
 *	reuse		as opposite, but another lock replaces the first one in between
 *	gate		as opposite, all under the third lock
 *	read		as opposite, of rwlocks: both threads only read the second one
 *	write		... and one of them writes it
 *	wait		one thread holds the second, and waits for a condition with the first
 *	foreign		as opposite, but the first lock is released by the third thread
 */
#include <errno.h>
#include "victim.h"

enum { THREADS = 3 };

pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t second_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t third_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t first_rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_rwlock_t second_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static uint64_t rounds, errors, inside;
static unsigned int turn;
static const struct mode {
	const char *name;
	void (*part[THREADS])(void);
} * mode;

static void check(int result)
{
	errors += result != 0;
}

/* What the locks are for. */
static void work(void)
{
	uint64_t before = __atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);

	errors += before != 0;
	__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
}

static void take_both(pthread_mutex_t *one, pthread_mutex_t *other)
{
	check(pthread_mutex_lock(one));
	check(pthread_mutex_lock(other));
	work();
	check(pthread_mutex_unlock(other));
	check(pthread_mutex_unlock(one));
}

/* Each order has its own place in the code. */
#define ORDER(name, one, other)                      \
	VICTIM_HOOKED void name(void);               \
	VICTIM_HOOKED void name(void)                \
	{                                            \
		check(pthread_mutex_lock(&one));     \
		check(pthread_mutex_lock(&other));   \
		work();                              \
		check(pthread_mutex_unlock(&other)); \
		check(pthread_mutex_unlock(&one));   \
	}

ORDER(forward, first_lock, second_lock)
ORDER(forward_again, first_lock, second_lock)
ORDER(backward, second_lock, first_lock)
ORDER(onward, second_lock, third_lock)
ORDER(round_again, third_lock, first_lock)

static void backward_try(void)
{
	check(pthread_mutex_lock(&second_lock));
	check(pthread_mutex_trylock(&first_lock));
	work();
	check(pthread_mutex_unlock(&first_lock));
	check(pthread_mutex_unlock(&second_lock));
}

static void forward_timed(void)
{
	struct timespec end = { .tv_sec = time(NULL) + 1000 };

	check(pthread_mutex_timedlock(&first_lock, &end));
	check(pthread_mutex_lock(&second_lock));
	work();
	check(pthread_mutex_unlock(&second_lock));
	check(pthread_mutex_unlock(&first_lock));
}

static void forward_fresh(void)
{
	check(pthread_mutex_init(&first_lock, NULL));
	take_both(&first_lock, &second_lock);
	check(pthread_mutex_destroy(&first_lock));
}

static void backward_fresh(void)
{
	check(pthread_mutex_init(&first_lock, NULL));
	take_both(&second_lock, &first_lock);
	check(pthread_mutex_destroy(&first_lock));
}

static void forward_gate(void)
{
	check(pthread_mutex_lock(&third_lock));
	forward();
	check(pthread_mutex_unlock(&third_lock));
}

static void backward_gate(void)
{
	check(pthread_mutex_lock(&third_lock));
	backward();
	check(pthread_mutex_unlock(&third_lock));
}

static void forward_read(void)
{
	check(pthread_rwlock_wrlock(&first_rwlock));
	check(pthread_rwlock_rdlock(&second_rwlock));
	work();
	check(pthread_rwlock_unlock(&second_rwlock));
	check(pthread_rwlock_unlock(&first_rwlock));
}

static void forward_write(void)
{
	check(pthread_rwlock_wrlock(&first_rwlock));
	check(pthread_rwlock_wrlock(&second_rwlock));
	work();
	check(pthread_rwlock_unlock(&second_rwlock));
	check(pthread_rwlock_unlock(&first_rwlock));
}

static void backward_read(void)
{
	check(pthread_rwlock_rdlock(&second_rwlock));
	check(pthread_rwlock_wrlock(&first_rwlock));
	work();
	check(pthread_rwlock_unlock(&first_rwlock));
	check(pthread_rwlock_unlock(&second_rwlock));
}

static void wait_inside(void)
{
	struct timespec past = { 0 };

	check(pthread_mutex_lock(&first_lock));
	check(pthread_mutex_lock(&second_lock));
	errors += pthread_cond_timedwait(&condition, &first_lock, &past) != ETIMEDOUT;
	check(pthread_mutex_unlock(&second_lock));
	check(pthread_mutex_unlock(&first_lock));
}

static void leave_first(void)
{
	check(pthread_mutex_lock(&first_lock));
	check(pthread_mutex_lock(&second_lock));
	check(pthread_mutex_unlock(&second_lock));
}

static void release_first(void)
{
	check(pthread_mutex_unlock(&first_lock));
}

static void nothing(void)
{
}

static const struct mode modes[] = {
	{ "opposite", { forward, backward, nothing } },
	{ "same", { forward, forward_again, onward } },
	{ "circle", { forward, onward, round_again } },
	{ "try", { forward, backward_try, nothing } },
	{ "timed", { forward_timed, backward, nothing } },
	{ "reuse", { forward_fresh, backward_fresh, nothing } },
	{ "gate", { forward_gate, backward_gate, nothing } },
	{ "read", { forward_read, backward_read, nothing } },
	{ "write", { forward_write, backward_read, nothing } },
	{ "wait", { wait_inside, nothing, nothing } },
	{ "foreign", { leave_first, release_first, backward } },
};

static void *run(void *arg)
{
	unsigned int number = (unsigned int)(uintptr_t)arg;
	uint64_t done = 0;

	while (!(rounds ? done == rounds : __atomic_load_n(&turn, __ATOMIC_ACQUIRE) == THREADS)) {
		unsigned int now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);

		if (now != number) {
			victim_sleep_ns(50000);
			continue;
		}
		mode->part[number]();
		done++;
		/* The last one of a round ends all. */
		now = number + 1 < THREADS ? number + 1 : victim_stop && !rounds ? THREADS : 0;
		__atomic_store_n(&turn, now, __ATOMIC_RELEASE);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];

	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(argv[1], modes[i].name))
			mode = &modes[i];
	if (!mode)
		return 2;
	rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	victim_catch_term();
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, run, (void *)i))
			return 2;
	victim_ready();
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return victim_done(!errors);
}
