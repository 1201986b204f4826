/* SPDX-License-Identifier: MIT */
/* What the agent of this process is doing, and why it failed last. */
#include <string.h>
#include "agent.h"

struct agent agent;

int agent_fail(int error, const char *reason)
{
	size_t len = strlen(reason);

	if (len > 255)
		len = 255;
	memcpy(agent.reason, reason, len);
	agent.reason[len] = '\0';
	return error;
}
