/* SPDX-License-Identifier: MIT */
#include "cgroup-place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += len)
		if ((at == list || at[-1] == ',') && strchr(",\n", at[len])) /* or '\0' */
			return true;
	return false;
}

/* Where a hierarchy is mounted here, and which of its groups that is. */
static bool find_mount(const char *controller, char mount[PATH_MAX], char root[PATH_MAX])
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, type[32], options[256];
	bool found = false;
	size_t cap = 0;

	while (f && !found && getline(&line, &cap, f) > 0) {
		const char *rest = strstr(line, " - ");

		if (!rest || sscanf(rest, " - %31s %*s %255s", type, options) != 2 ||
		    sscanf(line, "%*d %*d %*s %4095s %4095s", root, mount) != 2)
			continue;
		found = controller ? !strcmp(type, "cgroup") && has_word(options, controller) :
				     !strcmp(type, "cgroup2");
	}
	if (f)
		fclose(f);
	free(line);
	return found;
}

/* Lines "ID:CONTROLLERS:PATH"; of v2 the controllers are empty. */
static bool read_path(pid_t pid, const char *controller, char path[PATH_MAX])
{
	char name[64], *line = NULL;
	bool found = false;
	size_t cap = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/cgroup", pid);
	f = fopen(name, "re");
	while (f && !found && getline(&line, &cap, f) > 0) {
		char *which = strchr(line, ':'), *at = which ? strchr(which + 1, ':') : NULL;

		if (!at)
			continue;
		*at++ = '\0';
		at[strcspn(at, "\n")] = '\0';
		found = (controller ? has_word(which + 1, controller) : !which[1]) &&
			snprintf(path, PATH_MAX, "%s", at) < PATH_MAX;
	}
	if (f)
		fclose(f);
	free(line);
	return found;
}

bool cgroup_find(pid_t pid, const char *controller, struct cgroup_place *place)
{
	char path[PATH_MAX], root[PATH_MAX];
	const char *below;
	size_t len;

	if (!read_path(pid, controller, path) || !find_mount(controller, place->mount, root))
		return false;
	len = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (strncmp(path, root, len) != 0 || (path[len] && path[len] != '/'))
		return false;
	below = strcmp(path + len, "/") == 0 ? "" : path + len;
	/* Of another namespace: "/../NAME" is beside what is mounted here. */
	if (strncmp(below, "/..", 3) == 0 && (!below[3] || below[3] == '/'))
		return false;
	strcpy(place->below, below);
	return true;
}
