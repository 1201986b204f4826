/* SPDX-License-Identifier: MIT */
#ifndef SB_STEADY_H
#define SB_STEADY_H

/*
 * Counters that never fall. The rate of the clock is known better as time goes by, and so a sum of
 * times can become smaller by a billionth; a reader of counters takes that for a restart, and
 * counts the whole sum once more. For several threads.
 */
struct steady;

struct steady *steady_new(void);
void steady_free(struct steady *s); /* NULL is harmless */

/* The value to show: `value`, or the larger one that was shown before. A value below `reset` times
 * that is taken for what it is: the counter began anew. */
double steady_value(struct steady *s, const char *counter, double value, double reset);

#endif
