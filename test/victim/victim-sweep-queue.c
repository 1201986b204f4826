/* SPDX-License-Identifier: MIT */
/*
 * A producer and a consumer with a bounded queue between them. The consumer takes longer, so the
 * producer waits for room: a delay of produce() comes out of that wait, up to the difference; one
 * of consume() is felt in full.
 */
#include "victim-sweep.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t room, work;
	unsigned int length, most;
} queue = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0 };

static uint64_t produced, consumed;

VICTIM_HOOKED void produce(void)
{
	__atomic_fetch_add(&produced, 1, __ATOMIC_RELAXED);
}

VICTIM_HOOKED void consume(void)
{
	__atomic_fetch_add(&consumed, 1, __ATOMIC_RELAXED);
}

/* The one place where the producer waits. */
VICTIM_HOOKED void queue_push(void)
{
	pthread_mutex_lock(&queue.lock);
	while (queue.length == queue.most)
		pthread_cond_wait(&queue.room, &queue.lock);
	queue.length++;
	pthread_cond_signal(&queue.work);
	pthread_mutex_unlock(&queue.lock);
}

VICTIM_HOOKED void queue_pop(void)
{
	pthread_mutex_lock(&queue.lock);
	while (!queue.length)
		pthread_cond_wait(&queue.work, &queue.lock);
	queue.length--;
	pthread_cond_signal(&queue.room);
	pthread_mutex_unlock(&queue.lock);
}

static void *producer(void *arg)
{
	sweep_work work = sweep_param("rest", 0) > 1 ? sweep_how() : sweep_spin;
	double us = sweep_param("make", 200);

	sweep_pin(1);
	for (;;) {
		work(us);
		produce();
		queue_push();
	}
	return arg;
}

static void *consumer(void *arg)
{
	sweep_work work = sweep_how();
	double us = sweep_param("take", 1000);

	sweep_pin(0);
	for (;;) {
		queue_pop();
		work(us);
		consume();
		item_done();
	}
	return arg;
}

int sweep_queue(void)
{
	double slack_us = sweep_param("take", 1000) - sweep_param("make", 200);
	pthread_t thread;

	queue.most = (unsigned int)sweep_param("room", 4);
	sweep_truth("produce", 0, slack_us * 1e3);
	sweep_truth("consume", 1, 0);
	if (pthread_create(&thread, NULL, producer, NULL) ||
	    pthread_create(&thread, NULL, consumer, NULL))
		return 2;
	victim_ready();
	sweep_until_stopped();
	return 0;
}
