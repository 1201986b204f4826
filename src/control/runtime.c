/* SPDX-License-Identifier: MIT */
#include "runtime.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "src/base/caps.h"

enum { CONNECT_S = 10 };

/* A directory, not a link to one, that only this user can write to. */
static bool is_own(const char *dir, uid_t user, mode_t closed)
{
	struct stat st;

	return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == user &&
	       !(st.st_mode & closed);
}

char *runtime_dir(char *buf, size_t size)
{
	const char *own = caps_env("SBINJECT_RUNTIME_DIR"), *xdg = caps_env("XDG_RUNTIME_DIR");

	if (own && *own)
		snprintf(buf, size, "%s", own);
	else if (geteuid() == 0)
		snprintf(buf, size, "/run/sbinject");
	else if (xdg && *xdg == '/' && is_own(xdg, geteuid(), 022))
		snprintf(buf, size, "%s/sbinject", xdg);
	else
		snprintf(buf, size, "/tmp/sbinject-%u", (unsigned int)geteuid());
	return buf;
}

char *runtime_dir_of(uid_t user, char *buf, size_t size)
{
	snprintf(buf, size, "/run/user/%u/sbinject", (unsigned int)user);
	if (access(buf, F_OK) < 0)
		snprintf(buf, size, "/tmp/sbinject-%u", (unsigned int)user);
	return buf;
}

uint64_t runtime_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 ? 0 : st.st_ino;
}

int runtime_check(const char *dir, uid_t user, struct sb_err *err)
{
	struct stat st;

	if (is_own(dir, user, 077))
		return 0;
	if (lstat(dir, &st) < 0)
		return err_sys(err, errno == ENOENT ? SB_ENOPROC : SB_EPERM, "%s", dir);
	if (S_ISDIR(st.st_mode) && st.st_uid != user)
		err_set(err, SB_EPERM, "%s is another user's (uid %u)", dir,
			(unsigned int)st.st_uid);
	else
		err_set(err, SB_EPERM, "%s is not a directory for its user alone (mode 0700)", dir);
	err_hint(err, "sessions are for their own user and root: another SBINJECT_RUNTIME_DIR is "
		      "needed");
	return -SB_EPERM;
}

int runtime_make(char *buf, size_t size, struct sb_err *err)
{
	runtime_dir(buf, size);
	if (mkdir(buf, 0700) < 0 && errno != EEXIST)
		return err_sys(err, SB_EFILE, "cannot make %s", buf);
	return runtime_check(buf, geteuid(), err);
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

static int socket_at(const char *path, int flags, struct sockaddr_un *addr)
{
	*addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(addr->sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(addr->sun_path, path, strlen(path) + 1);
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
}

/* EAGAIN: the listener exists, but its queue is full. */
static int dial(const char *path, int flags)
{
	struct timeval limit = { .tv_sec = CONNECT_S };
	struct sockaddr_un addr;
	int fd = socket_at(path, flags, &addr), saved;
	struct stat st;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	saved = errno;
	/* A directory of another user's may lead anywhere: only a dead socket of one's own goes. */
	if (errno == ECONNREFUSED && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    st.st_uid == geteuid())
		unlink(path);
	close(fd);
	errno = saved;
	return -1;
}

int runtime_connect(const char *path)
{
	return dial(path, 0);
}

/* It gets its name only when it listens: a socket that refuses connections counts as dead and is
 * removed. */
static int listen_as(int fd, const char *new, const char *path, const struct sockaddr_un *addr,
		     int backlog)
{
	mode_t old;
	int ret;

	unlink(new); /* left by an earlier process with this pid */
	old = umask(077);
	ret = bind(fd, (const struct sockaddr *)addr, sizeof(*addr));
	umask(old);
	if (ret < 0)
		return -1;
	if (listen(fd, backlog) == 0 && rename(new, path) == 0)
		return 0;
	unlink(new);
	return -1;
}

int runtime_listen(const char *path, int backlog, struct sb_err *err)
{
	struct sockaddr_un addr;
	char new[sizeof(addr.sun_path) + 8];
	int fd = dial(path, SOCK_NONBLOCK);

	if (fd >= 0)
		close(fd);
	if (fd >= 0 || errno == EAGAIN) { /* pids of two namespaces may be equal */
		err_set(err, SB_EHOOKED, "%s is a running session's, of another pid namespace",
			path);
		err_hint(err, "set SBINJECT_RUNTIME_DIR to a directory of this namespace's own");
		return -SB_EHOOKED;
	}
	snprintf(new, sizeof(new), "%s.new", path);
	fd = socket_at(new, SOCK_NONBLOCK, &addr);
	if (fd < 0)
		return err_sys(err, SB_EFILE, "cannot listen on %s", path);
	if (listen_as(fd, new, path, &addr, backlog) == 0)
		return fd;
	err_sys(err, SB_EFILE, "cannot listen on %s", path);
	close(fd);
	return -SB_EFILE;
}

void runtime_hold_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}
