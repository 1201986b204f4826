// SPDX-License-Identifier: MIT
/*
 * What is there to win? One thread: an item is work() and then parse(), each some microseconds of
 * the processor's time, whatever delays the thread.
 *
 *	gain [seconds [parse-us]]	60 us of 200; with 0, parse() returns at once
 *
 * Prints the time of an item, ns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "victim.h"

enum { WORK_US = 140 };

static double parse_us = 60;

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void burn(double us)
{
	double end = cpu_us() + us;

	while (us > 0 && cpu_us() < end)
		;
}

static VICTIM_HOOKED void parse(void)
{
	burn(parse_us);
	__asm__ volatile("");
}

static VICTIM_HOOKED void work(void)
{
	burn(WORK_US);
	__asm__ volatile("");
}

static volatile unsigned long items;

static VICTIM_HOOKED void item(void)
{
	items = items + 1;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 3600, start = now_s(), end;

	if (argc > 2)
		parse_us = atof(argv[2]);
	victim_catch_term();
	victim_ready();
	while ((end = now_s()) < start + seconds && !victim_stop) {
		work();
		parse();
		item();
	}
	printf("%.0f\n", (end - start) / (double)items * 1e9);
	return 0;
}
