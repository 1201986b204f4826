/* SPDX-License-Identifier: MIT */
/* Apart from their documents, whose code frees results itself. */
#include <stdlib.h>
#include "evidence.h"

void rows_free(struct result_rows *rows)
{
	for (size_t i = 0; i < RESULT_ROWS; i++)
		free(rows->why[i]);
}

void result_cgroup_free(struct result_cgroup *cgroup)
{
	free(cgroup->path);
	rows_free(&cgroup->rows);
}
