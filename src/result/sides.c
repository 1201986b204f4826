/* SPDX-License-Identifier: MIT */
#include "sides.h"

const char *sides_name(size_t counter)
{
	return counter == SIDES_OFF_CPU ? "off_cpu_ns" : evidence_kinds[counter].name;
}

enum evidence_group sides_group(size_t counter)
{
	return counter == SIDES_OFF_CPU ? GROUP_TIME : evidence_kinds[counter].group;
}

bool sides_is_time(size_t counter)
{
	return sides_group(counter) == GROUP_TIME;
}
