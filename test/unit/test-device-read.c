/* SPDX-License-Identifier: MIT */
/* beside others */
/*
 * The ring of a device agent, read from outside: what is whole arrives, also across the ring's end,
 * and no contents of it make sbinject read, write or count anything that is not there.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "src/session/inject/device-read.h"

enum { RING = 4096, EVENTS = 500 };

static struct sb_device d;
static uint8_t ring[RING];
static struct tracing *tracing;
static struct device_reader *reader;

static void put(const void *from, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		ring[(at + i) % RING] = ((const uint8_t *)from)[i];
}

/* As the agent does it, but waiting for room. */
static void write_event(struct sb_device_event *e, const char *name)
{
	e->name = (uint16_t)strlen(name);
	e->size = (uint32_t)((sizeof(*e) + e->name + 7u) & ~7u);
	while (RING - (d.head - __atomic_load_n(&d.tail, __ATOMIC_ACQUIRE)) < e->size)
		usleep(100);
	put(e, sizeof(*e), d.head);
	put(name, e->name, d.head + sizeof(*e));
	__atomic_store_n(&d.head, d.head + e->size, __ATOMIC_RELEASE);
}

static struct device_room *open_room(void)
{
	struct sb_err err = { 0 };
	struct memory mem;

	d = (struct sb_device){
		.magic = SB_DEVICE_MAGIC, .ring = (uintptr_t)ring, .ring_size = RING, .begin_ns = 40
	};
	memset(ring, 0, sizeof(ring));
	assert_int_equal(memory_open(&mem, getpid(), &err), 0);
	return device_room_open(reader, getpid(), &mem, (uintptr_t)&d);
}

static void whole(void **state)
{
	struct sb_device_event e = { .kind = SB_DEVICE_CLOCK_SAMPLE, .start = 500, .end = 1000 };
	struct device_room *room = open_room();
	struct device_sums sums = { 0 };
	char name[600];

	(void)state;
	write_event(&e, "");
	for (unsigned int i = 0; i < EVENTS; i++) {
		e = (struct sb_device_event){ .kind = (uint8_t)(SB_DEVICE_KERNEL + i % 3),
					      .start = 500 + i,
					      .end = 600 + i,
					      .stream = i % 5 };
		memset(name, 'n', sizeof(name));
		name[i % sizeof(name)] = '\0';
		d.records++;
		d.written++;
		write_event(&e, name);
	}
	__atomic_store_n(&d.final, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&d.seen, __ATOMIC_ACQUIRE))
		usleep(100);
	assert_true(d.alive_ns > 1);
	assert_true(device_room_close(reader, room, 30, &sums));
	assert_int_equal(sums.spans, EVENTS);
	assert_int_equal(sums.written, EVENTS);
	assert_int_equal(sums.late_ns, 10); /* it began at 40, in a session since 30 */
	assert_false(sums.damaged);
	assert_null(sums.cut_why);
}

static void damaged(void **state)
{
	(void)state;
	srand(3);
	for (int i = 0; i < 300; i++) {
		struct sb_device_event e = {
			.kind = SB_DEVICE_CLOCK_SAMPLE, .start = 500, .end = 1000, .size = sizeof(e)
		};
		struct device_room *room = open_room();
		struct device_sums sums = { 0 };

		for (size_t k = 0; k < RING; k++)
			ring[k] = (uint8_t)(rand() % 4 ? 0 : rand());
		put(&e, sizeof(e), 0);
		e = (struct sb_device_event){ .kind = (uint8_t)(rand() % 6),
					      .size = (uint32_t)(rand() % 200),
					      .name = (uint16_t)(rand() % 300),
					      .end = (uint64_t)rand() };
		put(&e, sizeof(e), sizeof(e));
		if (i % 5 == 0)
			d.ring_size = (uint64_t)rand() << 20;
		if (i % 7 == 0)
			d.ring = (uint64_t)rand();
		__atomic_store_n(&d.head, i % 3 ? RING : (uint64_t)rand(), __ATOMIC_RELEASE);
		device_room_close(reader, room, 30, &sums);
		assert_true(sums.spans <= RING / sizeof(e));
		assert_non_null(sums.cut_why);
	}
}

static int set_up(void **state)
{
	static struct clock clk = { .ticks_per_ns = 1 };
	static struct hook_cost cost;

	(void)state;
	tracing = tracing_open(&(struct tracing_config){
		.fd = open("/dev/null", O_WRONLY), .clk = &clk, .cost = &cost });
	reader = device_reader_open(tracing);
	return !tracing || !reader;
}

static int tear_down(void **state)
{
	struct tracing_sums sums;

	(void)state;
	device_reader_close(reader);
	tracing_close(tracing, &sums);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
