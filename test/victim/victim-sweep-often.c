/* SPDX-License-Identifier: MIT */
/*
 * Functions that are called tens of thousands of times an item: the smallest delay of each call
 * would be a large part of the item. busy() is on its way; idle() runs beside its rest, and long
 * enough before the end of that.
 */
#include "victim-sweep.h"

static struct {
	uint64_t busy, idle;
} called;

static sem_t begin, end;
static uint64_t calls;

VICTIM_HOOKED void busy(void)
{
	__atomic_store_n(&called.busy, called.busy + 1, __ATOMIC_RELAXED);
}

VICTIM_HOOKED void idle(void)
{
	__atomic_store_n(&called.idle, called.idle + 1, __ATOMIC_RELAXED);
}

static void *beside(void *arg)
{
	sweep_pin(1);
	for (;;) {
		while (sem_wait(&begin))
			;
		for (uint64_t i = 0; i < calls; i++)
			idle();
		sem_post(&end);
	}
	return arg;
}

static void *way(void *arg)
{
	double us = sweep_param("item", 1800);

	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		sem_post(&begin);
		sweep_sleep(us);
		while (sem_wait(&end))
			;
		for (uint64_t i = 0; i < calls; i++)
			busy();
		item_done();
	}
	return arg;
}

int sweep_often(void)
{
	pthread_t thread;

	calls = (uint64_t)sweep_param("calls", 25000);
	sem_init(&begin, 0, 0);
	sem_init(&end, 0, 0);
	sweep_truth("busy", 1, 0);
	sweep_truth("idle", 0, sweep_param("item", 1800) * 1e3 - (double)calls * 20);
	if (pthread_create(&thread, NULL, beside, NULL) || pthread_create(&thread, NULL, way, NULL))
		return 2;
	victim_ready();
	sweep_until_stopped();
	victim_calls("busy", called.busy);
	return 0;
}
