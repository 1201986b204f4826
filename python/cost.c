// SPDX-License-Identifier: MIT
#include "agent.h"

int cost_measure(void)
{
	return 0;
}
