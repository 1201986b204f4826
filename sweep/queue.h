/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_QUEUE_H
#define SWEEP_QUEUE_H

#include "record.h"

/*
 * Is there a response to be measured? Below saturation the mean response is that of a queue that is
 * steady; above it the queue grows as long as one looks, and the mean is a property of the time one
 * looked. Pure; from the counts of the response source.
 *
 * Little's law: L = lambda W requests are in the system, with lambda completions a second of the
 * mean response W. In a window sum / time of the responses is that number, whatever the queue is
 * like.
 *
 * Growth: if fewer requests are completed than arrive, the response of those that are completed
 * rises by dW/dt = 1 - completions / arrivals. A program that slows down by a fifth in a minute has
 * a dW/dt below 1e-4; a queue at 101 % has 1e-2.
 *
 * Under a delay alone: fewer are completed while it is in force than arrive, and more than arrive
 * afterwards, when the queue is worked off. In a closed loop fewer are completed, too, but what was
 * not completed does not come later. Near saturation neither is seen before the response is several
 * times as long: with random arrivals at one server, (idle time without) / (idle time with the
 * delay). What a closed loop does to a response is less, since its clients wait for it.
 */
#define QUEUE_GROWTH 2e-3
#define QUEUE_LEVEL  1e-3 /* of the tests */
#define QUEUE_SHARE  0.02 /* of the completions: less is what a steady queue takes to get there */
/* Of what is not completed in a window with the delay, the share that the next one makes up at
 * least. In a closed loop nothing is to be made up, and noise may be as much as QUEUE_SHARE. */
#define QUEUE_MADE_UP 0.5
#define QUEUE_LONGER \
	1.5 /* growth of the response beyond the delay, by both: the queue is not steady */
#define QUEUE_IDLE 0.25 /* of the idle time: with less of it left no queue is steady for long */

struct queue_growth {
	double slope, p, ratio; /* dW/dt; of no trend; the last third's mean by the first's; NAN */
	bool grows;
};
struct queue_growth queue_growth(const struct record *rec);

struct queue_flow {
	/* By the largest delay, as a share of the completions: while it is in force, and in the
	 * window after it, guards included. NAN: unknown. */
	double during, after;
	double during_p, after_p;
	bool saturated;
};
struct queue_flow queue_flow(const struct record *rec, int experiment);

/*
 * Of the windows of a column: requests in the system, by Little's law; their standard deviation
 * from window to window, as a share; completions a second; the share of a processor of the busiest
 * thread.
 */
struct queue_level {
	double in_system, spread, per_s, busy;
};
struct queue_level queue_level(const struct record *rec, const struct record_of *of, int column);

/*
 * The share of its time for which each of so many servers (>= 1, rounded) is busy, if in_system
 * requests that arrive at random are in the system on average and all take the same time (M/D/c,
 * by half the wait of M/M/c: Cosmetatos 1975). Of services that vary it is less, and less where
 * requests also wait for something else: at most so busy.
 */
double queue_utilisation(double in_system, double servers);

#endif
