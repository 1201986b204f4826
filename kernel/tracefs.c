/* SPDX-License-Identifier: MIT */
#include "tracefs.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "src/base/must.h"

/* A mount that no path leads to; it ends with its descriptor. */
static int mount_alone(void)
{
	int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC), fd = -1;

	if (context < 0)
		return -1;
	if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
		fd = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	close(context);
	return fd;
}

/* A folder of it; negative: there is none. */
static int open_inside(const char *name, int flags)
{
	int fs = mount_alone(), fd;

	if (fs < 0)
		return -1;
	fd = openat(fs, name, flags | O_RDONLY | O_CLOEXEC);
	close(fs);
	return fd;
}

/* ---- functions ---- */

struct tracefs_functions {
	char *text;    /* names, each with its end */
	size_t *start; /* of each in the text, sorted by name */
	size_t n, len;
};

static int compare(const void *a, const void *b, void *text)
{
	return strcmp((char *)text + *(const size_t *)a, (char *)text + *(const size_t *)b);
}

static void add_function(struct tracefs_functions *f, const char *line, size_t len)
{
	if (!(f->n & (f->n - 1)))
		f->start = must_realloc(f->start, (f->n ? f->n * 2 : 1) * sizeof(*f->start));
	f->text = must_realloc(f->text, f->len + len + 1);
	memcpy(f->text + f->len, line, len);
	f->text[f->len + len] = '\0';
	f->start[f->n++] = f->len;
	f->len += len + 1;
}

/* "name [module]" */
struct tracefs_functions *tracefs_functions_open(void)
{
	int fd = open_inside("available_filter_functions", 0);
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	struct tracefs_functions *f;
	char *line = NULL;
	size_t room = 0;

	if (!file)
		return NULL;
	f = must_calloc(1, sizeof(*f));
	while (getline(&line, &room, file) > 0)
		add_function(f, line, strcspn(line, " \t\n"));
	free(line);
	fclose(file);
	if (f->n) {
		qsort_r(f->start, f->n, sizeof(*f->start), compare, f->text);
		return f;
	}
	tracefs_functions_close(f);
	return NULL;
}

enum tracefs_hookable tracefs_hookable(const struct tracefs_functions *f, const char *name)
{
	size_t low = 0, high = f ? f->n : 0;

	if (!f)
		return TRACEFS_UNKNOWN;
	while (low < high) {
		size_t middle = (low + high) / 2;
		int c = strcmp(f->text + f->start[middle], name);

		if (!c)
			return TRACEFS_PLACE;
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return TRACEFS_NO_PLACE;
}

void tracefs_functions_close(struct tracefs_functions *f)
{
	if (!f)
		return;
	free(f->text);
	free(f->start);
	free(f);
}

/* ---- events ---- */

struct tracefs_events {
	struct event {
		char *subsystem, *name;
	} * event;
	size_t n;
};

static DIR *folder_of(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static bool is_folder(const struct dirent *e)
{
	return e->d_name[0] != '.' && e->d_type == DT_DIR;
}

static void read_subsystem(struct tracefs_events *e, int at, const char *subsystem)
{
	DIR *dir = folder_of(at, subsystem);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		if (!is_folder(d))
			continue;
		e->event = must_realloc(e->event, (e->n + 1) * sizeof(*e->event));
		e->event[e->n++] = (struct event){ must_strdup(subsystem), must_strdup(d->d_name) };
	}
	if (dir)
		closedir(dir);
}

struct tracefs_events *tracefs_events_open(void)
{
	int fd = open_inside("events", O_DIRECTORY);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct tracefs_events *e;
	struct dirent *d;

	if (!dir)
		return NULL;
	e = must_calloc(1, sizeof(*e));
	while ((d = readdir(dir)))
		if (is_folder(d))
			read_subsystem(e, fd, d->d_name);
	closedir(dir);
	return e;
}

const char *tracefs_subsystem(const struct tracefs_events *e, const char *name)
{
	for (size_t i = 0; i < e->n; i++)
		if (!strcmp(e->event[i].name, name))
			return e->event[i].subsystem;
	return "raw";
}

void tracefs_events_each(const struct tracefs_events *e, tracefs_event_fn *fn, void *ctx)
{
	for (size_t i = 0; e && i < e->n; i++)
		fn(ctx, e->event[i].subsystem, e->event[i].name);
}

void tracefs_events_close(struct tracefs_events *e)
{
	for (size_t i = 0; e && i < e->n; i++) {
		free(e->event[i].subsystem);
		free(e->event[i].name);
	}
	free(e ? e->event : NULL);
	free(e);
}
