/* SPDX-License-Identifier: MIT */
#include "slowdown.h"

#include <stdio.h>
#include "session.h"
#include "src/base/err.h"

enum { WARN_PERCENT = 50 };

bool slowdown_refused(const struct session_config *cfg, const char *target, double part,
		      bool expected, char warning[SLOWDOWN_WARNING], struct sb_err *err)
{
	double limit = cfg->max_slowdown;

	warning[0] = '\0';
	if (limit > 0 && part > limit) {
		err_set(err, SB_EREFUSED,
			"target '%s': %s add %.0f %% to a thread's time, more than --max-slowdown "
			"%.0f%%",
			target, expected ? "its delay would" : "its delays", part * 100,
			limit * 100);
		err_hint(err, "choose a smaller delay, or every=N to delay each Nth call only");
		return true;
	}
	if (limit == 0 && part * 100 > WARN_PERCENT && !cfg->sweeping)
		snprintf(warning, SLOWDOWN_WARNING,
			 "target '%s': its delays add %.0f %% to a thread's time (limit it with "
			 "--max-slowdown)",
			 target, part * 100);
	return false;
}
