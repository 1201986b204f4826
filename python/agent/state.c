/* SPDX-License-Identifier: MIT */
/*
 * The agent's state in this process, shared by all its files, and agent_fail(), which records the
 * reason of a failure in the mailbox.
 */
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
