/* SPDX-License-Identifier: MIT */
#ifndef SB_SLOWDOWN_H
#define SB_SLOWDOWN_H

#include <stdbool.h>

struct sb_err;
struct session_config;

enum { SLOWDOWN_WARNING = 512 };

/*
 * Judges the share of a thread's time that the delays of a target take, whichever backend measured
 * it. part: delay time over the time without it, 0.3 is 30 %. expected: projected from the rate of
 * calls, before any delay. True: more than --max-slowdown allows; err has the text. warning: empty,
 * or the text for a user without a limit.
 */
bool slowdown_refused(const struct session_config *cfg, const char *target, double part,
		      bool expected, char warning[SLOWDOWN_WARNING], struct sb_err *err);

#endif
