/* SPDX-License-Identifier: MIT */
#ifndef SB_FIND_H
#define SB_FIND_H

#include "counters.h"
#include "job.h"
#include "src/result/explain.h"
#include "src/result/find.h"

/*
 * Counts the calls of the candidates that can be hooked, for time_ns, and proposes one as the
 * progress (find-choose.h). They are hooked for that time, and not delayed. page: its counters are
 * read meanwhile, and one is proposed; NULL: there is none. NULL: no candidate can be hooked, or it
 * failed (*err); an end by the user gives what was counted so far.
 */
struct find_rates *find_count(struct sweep_job *job, const struct explain_result *res,
			      struct counters *page, uint64_t time_ns, struct sb_err *err);

#endif
