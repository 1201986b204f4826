/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "now.h"

const char *const memory_names[MEMORY_ROWS] = {
	[MEMORY_PROCESSES] = "processes", [MEMORY_RSS] = "rss_bytes",
	[MEMORY_PSS] = "pss_bytes",	  [MEMORY_ANONYMOUS] = "anonymous_bytes",
	[MEMORY_SWAP] = "swap_bytes",	  [MEMORY_TOOK] = "read_ns",
};

/* As each file calls them; NULL: it does not have it. */
static const struct names {
	const char *file, *name[MEMORY_ROWS];
} walk = { "smaps_rollup",
	   { [MEMORY_RSS] = "Rss",
	     [MEMORY_PSS] = "Pss",
	     [MEMORY_ANONYMOUS] = "Anonymous",
	     [MEMORY_SWAP] = "Swap" } },
  counted = {
	  "status",
	  { [MEMORY_RSS] = "VmRSS", [MEMORY_ANONYMOUS] = "RssAnon", [MEMORY_SWAP] = "VmSwap" }
  };

/* Lines "NAME:   N kB". 0, or an errno; ESRCH: it has ended, or is a thread of the kernel. */
static int read_file(const char *proc, pid_t pid, const struct names *names,
		     uint64_t of[MEMORY_ROWS])
{
	char path[128], line[256], name[32];
	unsigned long long kib;
	bool any = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d/%s", proc, pid, names->file);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? ESRCH : errno;
	errno = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%31[A-Za-z_]: %llu kB", name, &kib) != 2)
			continue;
		for (int r = 0; r < MEMORY_ROWS; r++)
			if (names->name[r] && !strcmp(names->name[r], name)) {
				of[r] = 1024 * (uint64_t)kib;
				any = true;
			}
	}
	if (!any && !errno)
		errno = ESRCH;
	fclose(f);
	return any ? 0 : errno;
}

static void add(struct memory_values *to, const uint64_t of[MEMORY_ROWS])
{
	for (int r = MEMORY_RSS; r <= MEMORY_SWAP; r++)
		to->of[r] += of[r];
	to->of[MEMORY_PROCESSES]++;
}

/* Before the kernel walks anything: how much there is. */
static void read_process(const char *proc, pid_t pid, struct memory_values *values)
{
	uint64_t of[MEMORY_ROWS] = { 0 }, walked[MEMORY_ROWS] = { 0 };
	int why = read_file(proc, pid, &counted, of);

	if (why == ESRCH)
		return;
	if (why == 0 && of[MEMORY_RSS] > MEMORY_WALK_MOST) {
		add(values, of);
		values->why[MEMORY_PSS] = MEMORY_LARGE;
		return;
	}
	if (why == 0)
		why = read_file(proc, pid, &walk, walked);
	if (why == ESRCH)
		return;
	add(values, walked);
	for (int r = MEMORY_RSS; why && r <= MEMORY_SWAP; r++)
		values->why[r] = why;
}

void memory_read(const char *proc, const pid_t *pid, size_t n, struct memory_values *values)
{
	uint64_t from = evidence_now_ns();

	*values = (struct memory_values){ 0 };
	for (size_t i = 0; i < n; i++)
		read_process(proc, pid[i], values);
	values->of[MEMORY_TOOK] = evidence_now_ns() - from;
	if (!values->of[MEMORY_PROCESSES])
		memory_unread(MEMORY_ENDED, values);
	for (int r = 0; r < MEMORY_ROWS; r++)
		values->of[r] = values->why[r] ? 0 : values->of[r];
}

void memory_unread(int why, struct memory_values *values)
{
	*values = (struct memory_values){ 0 };
	for (int r = 0; r < MEMORY_ROWS; r++)
		values->why[r] = why;
}

const char *memory_why(int why)
{
	switch (why) {
	case MEMORY_UNASKED:
		return "its group is not in --evidence=GROUPS";
	case MEMORY_LATER:
		return "the program had not begun";
	case MEMORY_ENDED:
		return "the processes had ended";
	case MEMORY_LARGE:
		return "a process has more than 256 MiB: to walk its pages would hold it up";
	default:
		return strerror(why);
	}
}
