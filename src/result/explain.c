/* SPDX-License-Identifier: MIT */
#include "explain.h"

#include <stdlib.h>

void explain_free(struct explain_result *res)
{
	if (!res)
		return;
	free(res->progress);
	free(res->thread);
	free(res);
}
