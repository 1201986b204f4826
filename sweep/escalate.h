/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_ESCALATE_H
#define SWEEP_ESCALATE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Chooses doses. They are unknown before anything is known of the function: too small ones are lost
 * in noise, too large ones disturb more than needed and hide a slack in the first step. So the dose
 * (x, injected time per item, as a share of T0) is doubled from ESCALATE_FIRST until a response is
 * seen at two doses in a row, or the bound is reached. At each dose ESCALATE_PROBES blocks are
 * compared with SHAM; a response is a contrast above what t allows at 1 % with the spread of all
 * probes so far.
 *
 * Then the doses to measure with:
 *
 *	response from dose d on		one below (d/2, or nearer to where the response seems to
 *					begin, so that a slack has a dose under it), d, and up to
 *					4 d, spread out: at least two above any slack
 *	no response			half the bound and the bound: where hiding is hardest
 */
#define ESCALATE_FIRST	0.01
#define ESCALATE_PROBES 2
#define ESCALATE_STEPS	12
#define ESCALATE_DOSES	4

struct escalate {
	double t0_ns, bound; /* of x / T0 and of T / T0 - 1 */
	double least_ns;     /* x of the smallest exact delay */
	double safe_ns;	     /* the largest to measure with; INFINITY */
	size_t step;
	double x[ESCALATE_STEPS], delta[ESCALATE_STEPS]; /* ns */
	bool seen[ESCALATE_STEPS];
	double ss, df; /* spread of the contrasts within doses */
	bool over;
};

/* False: even the smallest exact delay would exceed the bound. */
bool escalate_open(struct escalate *esc, double t0_ns, double bound, double least_ns);

/*
 * Of a function that is called so often that a delay of each call is too much, each Nth one is
 * delayed: a power of two with which the smallest dose is a sixteenth of the largest, `most`, or
 * less. least: x of the smallest exact delay, of each call. Both in the same unit. 1: no N is
 * needed for that.
 */
double escalate_every(double least, double most);

/* None above it is measured with, whatever is probed. */
void escalate_safe(struct escalate *esc, double x_ns);

/* The next dose to probe, ns per item; 0: no more. */
double escalate_next(const struct escalate *esc);

/* Adds the contrasts (T of the dose less T of SHAM) of its blocks, n >= 1, and x as measured. */
/* No dose above x_ns: something else than T has grown by as much as it may. After escalate_tell().
 */
void escalate_limit(struct escalate *esc, double x_ns);

void escalate_tell(struct escalate *esc, double x_ns, const double *delta_ns, size_t n);

/* Doses to measure with, rising, ns per item; at most `most`. Returns how many. */
size_t escalate_doses(const struct escalate *esc, size_t most, double *x_ns);

#endif
