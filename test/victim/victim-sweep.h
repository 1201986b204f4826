/* SPDX-License-Identifier: MIT */
#ifndef VICTIM_SWEEP_H
#define VICTIM_SWEEP_H

#include <errno.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "victim.h"

/*
 * Programs whose sensitivity is known because it was put there: each says on a line "truth KAPPA
 * SLACK_NS" what a sweep of its function must find, from its own parameters (name=value on the
 * command line). Work is a wait for a time on the clock, so it is as long on a busy machine, and
 * a delay comes on top of it.
 */

/* An item is done; the progress function. */
void item(void);
void item_done(void); /* calls it, and counts */

/* The functions that are slowed. */
void crit(void);
void hid(void);
void part(void);
void token(void);
void stage_a(void);
void stage_b(void);
void stage_c(void);
void never(void);
void produce(void);
void consume(void);
void queue_push(void);
void queue_pop(void);
void busy(void);
void idle(void);

/* name=value of the command line, a time in microseconds or a plain number. */
double sweep_param(const char *name, double otherwise);

/* CPU spent, or slept, for a time. */
void sweep_spin(double us);
void sweep_sleep_until(uint64_t ns);
void sweep_sleep(double us);

/* The one that "rest" asks for. */
typedef void (*sweep_work)(double us);
sweep_work sweep_how(void);

/* This thread, and those it makes, to the nth processor of those that may be used. */
void sweep_pin(int nth);

/* Until SIGTERM, whichever thread it comes to. */
void sweep_until_stopped(void);

/* As if by kappa and slack per item (ns); printed once, before "ready". */
void sweep_truth(const char *function, double kappa, double slack_ns);

/* The items so far, in the file "published" of the working directory, each so many ms. */
void sweep_publish(double ms);

/* What all processes of a victim share. */
enum { SWEEP_WORKERS = 16 };
struct sweep_shared {
	uint64_t items;
	sem_t ready, go;
	int turn; /* whose it is: convoy */
};
extern struct sweep_shared *sweep_shared;

/* A latency histogram, served as Prometheus text at http://127.0.0.1:PORT/metrics; says "port N".
 */
void sweep_serve(void);
void sweep_latency(double seconds);

int sweep_open_loop(void); /* shapes of their own files */
int sweep_slow_few(void);
int sweep_pipeline(void);
int sweep_queue(void);
int sweep_often(void);

#endif
