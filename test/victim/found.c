/* SPDX-License-Identifier: MIT */
/*
 * found SHAPE: programs in which `find` has one right answer.
 *
 *	join	an item is critical(), and beside() in another thread meanwhile, which takes a third
 *		of the time: critical() sets the pace, beside() is hidden
 *	inner	an item is critical(), and then inner() five times: both set the pace, and only
 *		critical() is called once an item. tiny() is called 20 000 times an item: too
 *		often for a delay of each call
 *
 *	costly	an item is critical(), and then tiny() a million times: a hook of tiny() takes as
 *		long as tiny() itself
 *
 * `inner` sleeps between two items for three times as long as an item takes.
 */
#include "victim.h"

enum { UNIT = 200000, TINY = 20000, COSTLY = 1000000 };

static uint64_t items;
static volatile uint64_t sink[2];
static pthread_barrier_t begin, end;
static volatile bool over;

#define BURN(at, units)                                       \
	do {                                                  \
		uint64_t x = sink[at] + 1;                    \
		for (uint32_t i = 0; i < (units)*UNIT; i++) { \
			x = x * 6364136223846793005u + 1;     \
			VICTIM_OPAQUE(x);                     \
		}                                             \
		sink[at] = x;                                 \
	} while (0)

VICTIM_HOOKED void critical(void);
void critical(void)
{
	BURN(0, 3);
}

VICTIM_HOOKED void beside(void);
void beside(void)
{
	BURN(1, 1);
}

VICTIM_HOOKED void inner(void);
void inner(void)
{
	BURN(0, 1);
}

VICTIM_HOOKED void tiny(void);
void tiny(void)
{
	uint64_t x = sink[0];

	for (int i = 0; i < 10; i++) {
		x = x * 6364136223846793005u + 1;
		VICTIM_OPAQUE(x);
	}
	sink[0] = x;
}

static void *other(void *arg)
{
	for (;;) {
		pthread_barrier_wait(&begin);
		if (over)
			return arg;
		beside();
		pthread_barrier_wait(&end);
	}
}

static void join(void)
{
	pthread_t thread;

	pthread_barrier_init(&begin, NULL, 2);
	pthread_barrier_init(&end, NULL, 2);
	pthread_create(&thread, NULL, other, NULL);
	for (; !victim_stop; items++) {
		pthread_barrier_wait(&begin);
		critical();
		pthread_barrier_wait(&end);
	}
	over = true;
	pthread_barrier_wait(&begin);
	pthread_join(thread, NULL);
}

static void nest(void)
{
	for (; !victim_stop; items++) {
		uint64_t from = victim_now_ns();

		critical();
		for (int i = 0; i < 5; i++)
			inner();
		for (int i = 0; i < TINY; i++)
			tiny();
		victim_sleep_ns((victim_now_ns() - from) * 3);
	}
}

static void costly(void)
{
	for (; !victim_stop; items++) {
		critical();
		for (int i = 0; i < COSTLY && !victim_stop; i++)
			tiny();
	}
}

int main(int argc, char **argv)
{
	const char *shape = argc > 1 ? argv[1] : "";

	victim_catch_term();
	victim_ready();
	if (!strcmp(shape, "join"))
		join();
	else if (!strcmp(shape, "costly"))
		costly();
	else
		nest();
	victim_calls("critical", items);
	return victim_done(items > 0);
}
