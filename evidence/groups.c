/* SPDX-License-Identifier: MIT */
/* Groups of counters, as options name them. */
#include <stdlib.h>
#include <string.h>
#include "evidence.h"
#include "src/base/text.h"

const char *const evidence_groups[GROUP_COUNT] = {
	"time", "waits", "switches", "faults", "io", "network", "locks", "hardware",
};

/* What reports of benchmarks call them, and those that are read without a list. */
static const struct {
	const char *word;
	unsigned int groups;
} others[] = {
	{ "memory", 1u << GROUP_FAULTS },
	{ "cpu", 1u << GROUP_TIME | 1u << GROUP_SWITCHES },
	{ "all", EVIDENCE_ALL },
};

static unsigned int group_of(const char *word)
{
	for (unsigned int i = 0; i < GROUP_COUNT; i++)
		if (!strcmp(word, evidence_groups[i]))
			return 1u << i;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strcmp(word, others[i].word))
			return others[i].groups;
	return 0;
}

int evidence_groups_read(const char *text, unsigned int *groups, struct sb_err *err)
{
	char *copy = text_dup(text), *save = NULL;
	unsigned int found, all = 0;
	int ret = 0;

	for (char *word = strtok_r(copy, ",", &save); word && ret == 0;
	     word = strtok_r(NULL, ",", &save)) {
		found = group_of(word);
		all |= found;
		if (!found)
			ret = err_set(err, SB_EUSAGE, "--evidence=%s: unknown group of counters",
				      word);
	}
	if (ret == 0 && !all)
		ret = err_set(err, SB_EUSAGE, "--evidence=%s: no group of counters", text);
	if (ret < 0)
		err_hint(err,
			 "time, waits, switches, faults, io, network, locks, hardware; memory is "
			 "faults, cpu is time and switches, all is all but hardware");
	else
		*groups = all;
	free(copy);
	return ret;
}
