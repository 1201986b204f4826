/* SPDX-License-Identifier: MIT */
#ifndef SB_RESULT_FIND_H
#define SB_RESULT_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What `sbinject find` counted, slice by slice: calls of the candidates (result/explain.h), and
 * what the program itself counts. */
enum { FIND_SLICES = 8, FIND_NONE = -1 };

struct find_rate {
	char *target;
	double share; /* of the samples; of a counter NAN */
	uint64_t hits[FIND_SLICES];
	uint64_t calls;	 /* the sum */
	double per_s;	 /* NAN: no time passed */
	double scatter;	 /* of the slices' rates: standard deviation over mean; NAN: no calls */
	bool waits;	 /* share is of the time that a thread waits in it */
	bool events;	 /* a counter: how many events a histogram or summary has */
	bool often;	 /* called in each slice, often enough */
	bool steady;	 /* ... at much the same rate, or in the same ratio to another function */
	double cost;	 /* a hook's part of the time, about; NAN: not known, or of a counter */
	bool left_out;	 /* ... is too much: counted for a moment, and hits are none */
	int multiple_of; /* it has a whole multiple of the calls of this one; FIND_NONE */
};

struct find_rates {
	struct find_rate *rate;
	size_t n;
	double slice_s[FIND_SLICES];
	size_t slices; /* all of FIND_SLICES, unless it was ended */
	int point;     /* the one that is proposed as the progress; FIND_NONE */
	/* The counters of a page, as sources of progress; what they grow by, and whether steadily.
	 */
	struct find_rate *counter;
	size_t n_counters;
	int counter_point;  /* the one that is proposed; FIND_NONE */
	int response_point; /* a histogram or summary of seconds, as a response; FIND_NONE */
	bool ended;	    /* by the user, or by the end of the target */
	/* Processes that began after the attach and were not hooked, as many as were seen at one
	 * instant; FIND_NONE: those that begin later are hooked as well. */
	int unhooked;
};

/* A hook that takes more of the time than this changes the program that is measured. */
#define FIND_COST_MOST 0.1

void find_rates_free(struct find_rates *rates); /* NULL is harmless */

#endif
