/* SPDX-License-Identifier: MIT */
#ifndef SB_EXPLAIN_H
#define SB_EXPLAIN_H

#include "job.h"
#include "src/result/explain.h"

/*
 * Where does the time of an item go? Watches the processes of the job for time_ns, in blocks, and
 * reads the progress with each. progress_text NULL: an item is a second. A target as the progress
 * is hooked for that time; with any other source nothing is hooked. NULL: nothing was measured.
 */
struct explain_result *explain_live(struct sweep_job *job, uint64_t time_ns, struct sb_err *err);

#endif
