// SPDX-License-Identifier: MIT
#include "agent.h"

static int frame_start(void)
{
	return agent_fail(SB_AGENT_UNSUPPORTED, "3.12 or later is needed");
}

const struct backend frame_backend = { .start = frame_start };
