/* SPDX-License-Identifier: MIT */
#ifndef SB_LIVE_LATER_H
#define SB_LIVE_LATER_H

#include "src/base/err.h"
#include "src/session/session.h"
#include "sweep/result.h"

/*
 * The processes that began after the attach to a running one. A sweep does not trace it, so a later
 * process that has executed a program is not hooked. Where each run of a program is a process of
 * its own, the hooked one ends and nothing is left to measure.
 */
struct later {
	pid_t *pids; /* the named processes and their descendants before the attach */
	size_t n;
	size_t unhooked; /* of those that began later */
};

void later_open(struct later *later, const struct session_config *cfg);
void later_count(struct later *later, const struct session_config *cfg); /* before the detach */

/*
 * Where there are such processes: puts them into the reason where the source did not move or a
 * target was not called, or into the hint of an error before the first window; else they are a
 * warning.
 */
void later_tell(const struct later *later, struct sweep_result *res, struct sb_err *err);
void later_close(struct later *later);

#endif
