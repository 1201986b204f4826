/* SPDX-License-Identifier: MIT */
#ifndef VICTIM_H
#define VICTIM_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * What all victims share. A victim prints, a line each:
 *
 *	ready			it has started its threads and goes on working
 *	rate N			calls a second, once a tenth of a second, where it was asked to
 *	calls NAME N		at its end: exactly how often NAME was called
 *	self-check ok		at its end: nothing it computes or counts went wrong
 *
 * and ends with status 0 only after "self-check ok".
 */
#define VICTIM_HOOKED __attribute__((noinline, noclone, used))

/* Keeps the compiler from folding two calls with one argument into one. */
#define VICTIM_OPAQUE(x) __asm__ volatile("" : "+r"(x) : : "memory")

static volatile sig_atomic_t victim_stop;

static inline void victim_on_term(int sig)
{
	(void)sig;
	victim_stop = 1;
}

static inline void victim_catch_term(void)
{
	struct sigaction sa = { .sa_handler = victim_on_term };

	sigaction(SIGTERM, &sa, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

static inline void victim_ready(void)
{
	puts("ready");
	fflush(stdout);
}

static inline uint64_t victim_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void victim_sleep_ns(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	while (nanosleep(&ts, &ts) != 0 && !victim_stop)
		;
}

/* Sleeps until the file exists: a test attaches first and opens the gate afterwards. */
static inline void victim_gate(const char *path)
{
	while (path && !victim_stop && access(path, F_OK) != 0)
		victim_sleep_ns(2000000);
}

static inline void victim_calls(const char *name, uint64_t count)
{
	printf("calls %s %llu\n", name, (unsigned long long)count);
}

static inline int victim_done(bool ok)
{
	puts(ok ? "self-check ok" : "self-check FAILED");
	fflush(stdout);
	return ok ? 0 : 1;
}

#endif
