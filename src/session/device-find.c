/* SPDX-License-Identifier: MIT */
#include "device-find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "inject/mailbox.h"
#include "inject/tree-task.h"
#include "src/base/caps.h"
#include "src/base/err.h"
#include "src/base/inroot.h"

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "libcuda.so.1", but not "libcudart.so". */
static bool is_library(const char *path, const char *name)
{
	const char *base = base_of(path);
	size_t n = strlen(name);

	return !strncmp(base, name, n) && (!base[n] || base[n] == '.');
}

/* ---- CUPTI's library ---- */

/* The number behind ".so."; -1: none. */
static long major_of(const char *path)
{
	const char *so = strstr(base_of(path), ".so.");

	return so && isdigit((unsigned char)so[4]) ? strtol(so + 4, NULL, 10) : -1;
}

/* In that directory of the process's root, of the same major version as the runtime. */
static bool look_in(const char *root, const char *dir, const char *runtime,
		    struct device_found *out)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "libcupti.so.%ld", major_of(runtime));
	if (snprintf(out->cupti, sizeof(out->cupti), "%s/%s", dir, name) >= (int)sizeof(out->cupti))
		return false;
	fd = inroot_open(root, out->cupti);
	if (fd < 0) {
		out->cupti[0] = '\0';
		return false;
	}
	close(fd);
	return true;
}

/* As the toolkit and the wheels of PyPI have them. */
static void look_beside(pid_t pid, const char *runtime, struct device_found *out)
{
	static const char *const beside[] = { "", "/../../cuda_cupti/lib", "/../extras/CUPTI/lib64",
					      "/../../extras/CUPTI/lib64",
					      "/../../../extras/CUPTI/lib64" };
	char root[32], dir[400];
	int len = (int)(base_of(runtime) - runtime);

	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	for (size_t i = 0; i < sizeof(beside) / sizeof(*beside) && !out->cupti[0]; i++)
		if (len && snprintf(dir, sizeof(dir), "%.*s%s", len - 1, runtime, beside[i]) <
				   (int)sizeof(dir))
			look_in(root, dir, runtime, out);
}

void device_find(pid_t pid, const struct maps *maps, struct device_found *out)
{
	const char *runtime = NULL;

	*out = (struct device_found){ .cuda = false };
	for (size_t i = 0; i < maps->count; i++) {
		const struct map_entry *m = &maps->entry[i];

		out->cuda |= is_library(m->path, "libcuda.so");
		if (is_library(m->path, "libcudart.so"))
			runtime = m->path;
		if (is_library(m->path, "libcupti.so") && !out->cupti[0] && !m->deleted)
			snprintf(out->cupti, sizeof(out->cupti), "%s", m->path);
		if (!out->loaded && !m->offset && !strcmp(m->path, "/memfd:" ROOM_DEVICE_NAME))
			out->loaded = m->start;
	}
	if (!out->cupti[0] && runtime)
		look_beside(pid, runtime, out);
	if (!out->cupti[0])
		snprintf(out->why, sizeof(out->why),
			 "CUPTI's library (libcupti.so) is neither mapped in it nor %s; PyTorch "
			 "maps it, and LD_PRELOAD=PATH/libcupti.so.N does",
			 runtime ? "beside its CUDA runtime" :
				   "to be looked for, since no libcudart.so is mapped");
}

/* ---- the device ---- */

/* The number of a descriptor of the device; -1: none. */
static int descriptor_of_device(pid_t pid)
{
	char path[64], link[64];
	struct dirent *e;
	int fd = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", maps_face(pid));
	dir = CAPS(opendir(path));
	while (dir && fd < 0 && (e = readdir(dir))) {
		ssize_t n = CAPS(readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1));

		link[n > 0 ? n : 0] = '\0';
		if (!strcmp(base_of(link), "nvidia-uvm") || !strcmp(link, "/dev/dxg"))
			fd = (int)strtol(e->d_name, NULL, 10);
	}
	if (dir)
		closedir(dir);
	return fd;
}

bool device_opened(pid_t pid)
{
	return descriptor_of_device(pid) >= 0;
}

static pid_t parent_of(pid_t pid)
{
	char path[64], text[512], *end;
	int parent = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	end = strrchr(text, ')');
	return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

bool device_inherited(pid_t pid)
{
	int fd = descriptor_of_device(pid);
	pid_t parent = parent_of(pid);
	char path[64], link[64];
	ssize_t n;
	long same;

	if (fd < 0 || parent <= 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", parent, fd);
	n = CAPS(readlink(path, link, sizeof(link) - 1));
	link[n > 0 ? n : 0] = '\0';
	if (strcmp(base_of(link), "nvidia-uvm") != 0 && strcmp(link, "/dev/dxg") != 0)
		return false;
	same = CAPS(
		syscall(SYS_kcmp, pid, parent, KCMP_FILE, (unsigned long)fd, (unsigned long)fd));
	return same <= 0; /* the same, or unknown */
}

/* Its CLOCK_MONOTONIC is that of sbinject. */
static bool same_time(pid_t pid)
{
	char path[64];
	struct stat theirs, own;

	snprintf(path, sizeof(path), "/proc/%d/ns/time", pid);
	if (CAPS(stat(path, &theirs)) < 0 || stat("/proc/self/ns/time", &own) < 0)
		return errno == ENOENT; /* before Linux 5.6 there are none */
	return theirs.st_ino == own.st_ino && theirs.st_dev == own.st_dev;
}

/* /proc/self is there in its root. */
static bool has_proc(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/root/proc/self", pid);
	return CAPS(lstat(path, &st)) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

const char *device_obstacle(pid_t pid, const struct device_found *found)
{
	if (!found->cupti[0])
		return found->why;
	if (task_any_seccomp(pid))
		return "it is confined by seccomp, whose filter could end it for what CUPTI does; "
		       "start it without that filter";
	if (!same_time(pid))
		return "its clocks are those of another time namespace; run sbinject in that one";
	if (!has_proc(pid))
		return "its root directory has no /proc, which the agent needs; mount one there";
	return NULL;
}

int device_check(pid_t pid, struct sb_err *err)
{
	struct device_found found;
	const char *why = NULL;
	struct maps maps;

	if (maps_read(pid, &maps, NULL) < 0)
		return 1;
	device_find(pid, &maps, &found);
	maps_free(&maps);
	if (!found.cuda)
		return 1;
	if (!device_opened(pid))
		why = "CUDA is not initialized in it: nvidia-uvm is not open; they begin when it "
		      "is";
	else if (device_inherited(pid))
		why = "it was forked from a process that uses the device; name that one";
	else
		why = device_obstacle(pid, &found);
	return why ? err_set(err, SB_EREFUSED, "%s", why) : 0;
}
