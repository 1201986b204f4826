/* SPDX-License-Identifier: MIT */
#include "runtime.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

char *runtime_dir(char *buf, size_t size)
{
	const char *own = getenv("SBINJECT_RUNTIME_DIR"), *xdg = getenv("XDG_RUNTIME_DIR");

	if (own && *own)
		snprintf(buf, size, "%s", own);
	else if (geteuid() == 0)
		snprintf(buf, size, "/run/sbinject");
	else if (xdg && *xdg)
		snprintf(buf, size, "%s/sbinject", xdg);
	else
		snprintf(buf, size, "/tmp/sbinject-%u", (unsigned int)geteuid());
	return buf;
}

int runtime_make(char *buf, size_t size, struct sb_err *err)
{
	struct stat st;

	runtime_dir(buf, size);
	if (mkdir(buf, 0700) < 0 && errno != EEXIST)
		return err_sys(err, SB_EFILE, "cannot make %s", buf);
	if (lstat(buf, &st) < 0)
		return err_sys(err, SB_EFILE, "cannot look at %s", buf);
	if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077))
		return 0;
	err_set(err, SB_EPERM, "%s is not a directory of this user's alone", buf);
	err_hint(err, "remove it, or set SBINJECT_RUNTIME_DIR");
	return -SB_EPERM;
}

char *runtime_socket(const char *dir, pid_t session, char *buf, size_t size)
{
	snprintf(buf, size, "%s/%d" RUNTIME_SOCKET, dir, (int)session);
	return buf;
}

static int by_pid(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

size_t runtime_sessions(const char *dir, pid_t **sessions)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t n = 0;

	*sessions = NULL;
	while (d && (e = readdir(d))) {
		char *end;
		long pid = strtol(e->d_name, &end, 10);

		if (!isdigit((unsigned char)e->d_name[0]) || strcmp(end, RUNTIME_SOCKET) != 0)
			continue;
		*sessions = realloc(*sessions, (n + 1) * sizeof(**sessions));
		if (!*sessions)
			abort();
		(*sessions)[n++] = (pid_t)pid;
	}
	if (d)
		closedir(d);
	if (n)
		qsort(*sessions, n, sizeof(**sessions), by_pid);
	return n;
}

int runtime_connect(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -1;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	if (errno == ECONNREFUSED)
		unlink(path);
	close(fd);
	return -1;
}
