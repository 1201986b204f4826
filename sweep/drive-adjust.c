/* SPDX-License-Identifier: MIT */
/* What T is adjusted for: the tests are those of all targets, and of the control if it was run. */
#include <stdlib.h>
#include "adjust.h"
#include "drive-priv.h"
#include "src/base/must.h"

void drive_adjust(struct drive *drive)
{
	struct record_of *of = must_calloc(drive->cfg.n_targets + 1, sizeof(*of));
	size_t n = 0;

	for (size_t i = 0; i < drive->cfg.n_targets; i++)
		if (drive->work[i].experiment >= 0)
			of[n++] = work_of(drive, i);
	if (drive->control_experiment >= 0)
		of[n++] = (struct record_of){ drive->control_experiment, -1, 0, 1 };
	adjust_fit(&drive->rec, of, n, drive->adjust);
	free(of);
}
