/* SPDX-License-Identifier: MIT */
#include "processes.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "inject/tree-task.h"
#include "src/base/caps.h"
#include "src/base/maps.h"
#include "src/base/must.h"
#include "src/base/text.h"

bool processes_skipped(const struct session_config *cfg, pid_t pid)
{
	if (pid == getpid())
		return true;
	for (size_t i = 0; i < cfg->n_skip; i++)
		if (cfg->skip[i] == pid)
			return true;
	return false;
}

bool processes_listed(const pid_t *pids, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

static void list_add(pid_t **pids, size_t *n, pid_t pid)
{
	*pids = realloc(*pids, (*n + 1) * sizeof(**pids));
	if (!*pids)
		abort();
	(*pids)[(*n)++] = pid;
}

size_t processes_all(pid_t **out)
{
	size_t n = 0, cap = 0;
	struct dirent *e;
	DIR *dir = opendir("/proc");

	*out = NULL;
	while (dir && (e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (n == cap) {
			cap = cap ? cap * 2 : 256;
			*out = realloc(*out, cap * sizeof(**out));
			if (!*out)
				abort();
		}
		(*out)[n++] = (pid_t)strtol(e->d_name, NULL, 10);
	}
	if (dir)
		closedir(dir);
	return n;
}

void processes_descendants(const struct session_config *cfg, pid_t **pids, size_t *n)
{
	pid_t *all = NULL, *parent = NULL;
	size_t total = cfg->children ? processes_all(&all) : 0, before;

	if (total)
		parent = must_calloc(total, sizeof(*parent));
	for (size_t i = 0; i < total; i++)
		parent[i] = task_parent(all[i]);
	*pids = NULL;
	*n = 0;
	for (size_t i = 0; i < cfg->n_pids; i++)
		if (!processes_listed(*pids, *n, cfg->pids[i]))
			list_add(pids, n, cfg->pids[i]);
	do {
		before = *n;
		for (size_t i = 0; i < total; i++)
			if (processes_listed(*pids, *n, parent[i]) &&
			    !processes_listed(*pids, *n, all[i]) && !processes_skipped(cfg, all[i]))
				list_add(pids, n, all[i]);
	} while (*n != before);
	free(parent);
	free(all);
}

bool processes_thread_file(pid_t pid, pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	f = fopen(path, "re");
	n = f ? fread(text, 1, size - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = '\0';
	return n > 0;
}

void processes_thread_name(pid_t pid, pid_t tid, char *comm, size_t size)
{
	char path[64];
	FILE *f;

	comm[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(comm, (int)size, f))
		comm[strcspn(comm, "\n")] = '\0';
	fclose(f);
}

static char *read_exe(pid_t pid)
{
	char path[64], exe[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", maps_face(pid));
	n = CAPS(readlink(path, exe, sizeof(exe) - 1));
	exe[n > 0 ? n : 0] = '\0';
	return text_dup(exe);
}

void processes_names(pid_t pid, char *comm, size_t size, char **exe)
{
	processes_thread_name(pid, pid, comm, size);
	*exe = read_exe(pid);
}
