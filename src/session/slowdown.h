/* SPDX-License-Identifier: MIT */
#ifndef SB_SLOWDOWN_H
#define SB_SLOWDOWN_H

#include <stdbool.h>

struct sb_err;
struct session_config;

enum { SLOWDOWN_WARNING = 512 };

/*
 * Judges how much of a thread's time the delays of a target take, whichever backend measured it.
 * part: delay time over the time without it, 0.3 is 30 %; expected: it was projected from the rate
 * of calls, before any delay. True: more than --max-slowdown allows, err says so. warning: empty,
 * or what the user should hear who gave no limit.
 */
bool slowdown_refused(const struct session_config *cfg, const char *target, double part,
		      bool expected, char warning[SLOWDOWN_WARNING], struct sb_err *err);

#endif
