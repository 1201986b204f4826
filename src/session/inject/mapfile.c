/* SPDX-License-Identifier: MIT */
#include "mapfile.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "src/base/maps.h"

enum { FILE_MOST = 64 << 20, DIR_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC };

/* ---- the ids of the process ---- */

struct ids {
	uid_t uid;
	gid_t gid;
	int dumpable;
	bool changed;
};

/*
 * Of this thread alone, as setfsuid(2), setfsgid(2) and the bare setgroups(2) are; glibc's would be
 * of all threads. With the user the capabilities for files go. Without privileges the user is ours,
 * and the group may stay ours.
 */
static bool ids_take(struct ids *old, const struct mapfile *m)
{
	*old = (struct ids){ .uid = geteuid(), .gid = getegid() };
	if (m->uid == old->uid && m->gid == old->gid)
		return true;
	old->dumpable = prctl(PR_GET_DUMPABLE);
	old->changed = true;
	syscall(SYS_setgroups, (size_t)0, NULL);
	setfsgid(m->gid);
	setfsuid(m->uid);
	return (uid_t)setfsuid((uid_t)-1) == m->uid &&
	       ((gid_t)setfsgid((gid_t)-1) == m->gid || old->uid);
}

/* The kernel resets what a change of ids makes of core dumps. */
static void ids_drop(const struct ids *old)
{
	int saved = errno;

	if (!old->changed)
		return;
	setfsuid(old->uid);
	setfsgid(old->gid);
	prctl(PR_SET_DUMPABLE, old->dumpable);
	errno = saved;
}

static int no_ids(const struct mapfile *m, struct sb_err *err)
{
	return err_set(err, SB_EPERM,
		       "/tmp/%s: process %d is another user's, whose ids cannot "
		       "be taken",
		       m->name, m->pid);
}

/* ---- the place ---- */

static void read_status(struct mapfile *m, FILE *f, bool inner)
{
	pid_t pid = m->pid;
	char line[512];

	while (fgets(line, sizeof(line), f)) {
		char *last = strrchr(line, '\t');

		if (last && !strncmp(line, "Uid:", 4))
			m->uid = (uid_t)strtoul(last, NULL, 10);
		else if (last && !strncmp(line, "Gid:", 4))
			m->gid = (gid_t)strtoul(last, NULL, 10);
		else if (last && inner && !strncmp(line, "NStgid:", 7))
			pid = (pid_t)strtol(last, NULL, 10);
	}
	snprintf(m->name, sizeof(m->name), "perf-%d.map", pid);
}

static int no_file(const struct mapfile *m, struct sb_err *err)
{
	return err_sys(err, SB_EFILE, "the perf map of process %d, /tmp/%s", m->pid, m->name);
}

/* The process has ended, or it cannot be looked at. */
static int no_process(const struct mapfile *m, struct sb_err *err)
{
	if (errno == ESRCH || errno == ENOENT)
		return -SB_ENOPROC;
	return err_sys(err, SB_EFILE, "the perf map of process %d", m->pid);
}

/* Its ids, and the name of the file. */
static int learn(struct mapfile *m)
{
	int fd = openat(m->proc, "status", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	struct stat here, there;

	if (!f)
		return -1;
	if (fstatat(m->proc, "ns/mnt", &there, 0) < 0 || stat("/proc/self/ns/mnt", &here) < 0) {
		fclose(f);
		return -1;
	}
	read_status(m, f, here.st_ino != there.st_ino || here.st_dev != there.st_dev);
	fclose(f);
	return 0;
}

/* Finds its /tmp, once. */
static int look(struct mapfile *m, struct sb_err *err)
{
	struct ids own;
	int root, ret;

	if (m->dir >= 0)
		return 0;
	if (learn(m) < 0)
		return no_process(m, err);
	root = openat(m->proc, "root", DIR_FLAGS);
	if (root < 0)
		return no_process(m, err);
	ret = ids_take(&own, m) ? 0 : no_ids(m, err);
	if (ret == 0)
		m->dir = openat(root, "tmp", DIR_FLAGS | O_NOFOLLOW);
	ids_drop(&own);
	if (ret == 0 && m->dir < 0)
		ret = no_file(m, err);
	close(root);
	return ret;
}

int mapfile_open(struct mapfile *m, pid_t pid, struct sb_err *err)
{
	char path[64];

	*m = (struct mapfile){ .pid = pid, .dir = -1 };
	snprintf(path, sizeof(path), "/proc/%d", maps_face(pid));
	m->proc = open(path, DIR_FLAGS);
	if (m->proc >= 0)
		return 0;
	return err_sys(err, errno == ENOENT ? SB_ENOPROC : SB_EFILE, "a perf map: %s", path);
}

void mapfile_close(struct mapfile *m)
{
	if (m->proc >= 0)
		close(m->proc);
	if (m->dir >= 0)
		close(m->dir);
	m->proc = m->dir = -1;
}

/* ---- a file that exists ---- */

enum users { USED_NOT, USED_TO_APPEND, USED_OTHERWISE };

static bool writes_anywhere(int fds, const char *number)
{
	char path[64], text[256];
	unsigned int flags = 0;
	ssize_t n;
	int fd;
	char *at;

	snprintf(path, sizeof(path), "../fdinfo/%.20s", number);
	fd = openat(fds, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, "flags:");
	if (at)
		flags = (unsigned int)strtoul(at + 6, NULL, 8);
	return (flags & O_ACCMODE) != O_RDONLY && !(flags & O_APPEND);
}

/* What the process itself does with the file. */
static enum users users_of(const struct mapfile *m, const struct stat *file)
{
	int fd = openat(m->proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	enum users used = USED_NOT;
	struct dirent *e;
	struct stat st;

	while (dir && used != USED_OTHERWISE && (e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]) ||
		    fstatat(dirfd(dir), e->d_name, &st, 0) < 0 || st.st_ino != file->st_ino ||
		    st.st_dev != file->st_dev)
			continue;
		used = writes_anywhere(dirfd(dir), e->d_name) ? USED_OTHERWISE : USED_TO_APPEND;
	}
	if (dir)
		closedir(dir);
	return used;
}

static bool is_fit(const struct mapfile *m, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_nlink == 1 && st->st_uid == m->uid;
}

/*
 * What stands there is looked at before it is opened: a pipe or a device does something when it is
 * opened. A descriptor for reading and writing; -1 with errno.
 */
static int open_existing(const struct mapfile *m, int flags, struct stat *st)
{
	struct stat seen;
	int fd;

	if (fstatat(m->dir, m->name, &seen, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	errno = EEXIST;
	if (!is_fit(m, &seen))
		return -1;
	fd = openat(m->dir, m->name,
		    flags | O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, st) == 0 && is_fit(m, st) && st->st_ino == seen.st_ino &&
	    st->st_dev == seen.st_dev)
		return fd;
	close(fd);
	errno = EEXIST;
	return -1;
}

static int left_alone(const struct mapfile *m, const char *why, struct sb_err *err)
{
	return err_set(err, SB_EFILE, "process %d gets no perf map: /tmp/%s exists, and %s", m->pid,
		       m->name, why);
}

/* ---- adding ---- */

/* One write, so that the lines of several writers do not mix; all or nothing. */
static int put(int fd, const char *lines, size_t len, bool inside)
{
	struct iovec io[2] = { { .iov_base = "\n", .iov_len = inside },
			       { .iov_base = (void *)lines, .iov_len = len } };
	ssize_t n = writev(fd, io, 2);
	off_t end = lseek(fd, 0, SEEK_CUR);

	if (n == (ssize_t)(len + inside))
		return 0;
	if (n < 0)
		return -1;
	fcntl(fd, F_SETFL, 0); /* no longer O_APPEND */
	for (off_t at = end - n; at < end; at++)
		if (pwrite(fd, "\n", 1, at) != 1)
			break;
	errno = ENOSPC;
	return -1;
}

static int add_to_new(const struct mapfile *m, int fd, const char *lines, size_t len)
{
	/* The umask is ours. Others need no addresses of this process. */
	int ret = fchmod(fd, 0600), saved;

	if (ret == 0)
		ret = put(fd, lines, len, false);
	saved = errno;
	if (ret < 0)
		unlinkat(m->dir, m->name, 0);
	errno = saved;
	return ret;
}

/* True: the file ends within a line. */
static bool is_cut(int fd, const struct stat *st)
{
	char last = '\n';

	return st->st_size && pread(fd, &last, 1, st->st_size - 1) == 1 && last != '\n';
}

int mapfile_append(struct mapfile *m, const char *lines, size_t len, struct sb_err *err)
{
	const int create = O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int ret = look(m, err), fd;
	bool fresh = false;
	struct stat st;
	struct ids own;

	if (ret < 0)
		return ret;
	if (!ids_take(&own, m)) {
		ids_drop(&own);
		return no_ids(m, err);
	}
	fd = openat(m->dir, m->name, create, 0600);
	fresh = fd >= 0;
	if (fresh)
		ret = add_to_new(m, fd, lines, len);
	else if (errno == EEXIST)
		fd = open_existing(m, O_APPEND, &st);
	ids_drop(&own);
	if (fd < 0)
		return errno == EEXIST ? left_alone(m, "is not a file of its user alone", err) :
					 no_file(m, err);
	if (!fresh && users_of(m, &st) == USED_OTHERWISE)
		ret = left_alone(m, "the process writes it without appending", err);
	else if (!fresh)
		ret = put(fd, lines, len, is_cut(fd, &st));
	if (ret < 0)
		no_file(m, err); /* the first error stays */
	close(fd);
	return ret < 0 ? -SB_EFILE : 0;
}

/* ---- removing ---- */

struct lines {
	char *text;
	size_t len;
	bool ours, others; /* are there any? */
	size_t tail;	   /* from here on there are only ours */
};

static bool is_ours(const char *line, size_t len)
{
	size_t at = 0;

	for (int i = 0; i < 2; i++) {
		size_t digits = at;

		while (at < len && isxdigit((unsigned char)line[at]))
			at++;
		if (at == digits || at == len || line[at++] != ' ')
			return false;
	}
	return len - at >= strlen(MAPFILE_PREFIX) &&
	       !memcmp(line + at, MAPFILE_PREFIX, strlen(MAPFILE_PREFIX));
}

static size_t line_length(const struct lines *l, size_t at)
{
	const char *end = memchr(l->text + at, '\n', l->len - at);

	return end ? (size_t)(end - (l->text + at)) : l->len - at;
}

/* Does nothing where the file has changed since it was read. False: it cannot be written. */
static bool blank(int fd, const char *line, size_t len, off_t at)
{
	char *now = malloc(len);
	bool ok = true;

	if (!now)
		abort();
	if (pread(fd, now, len, at) == (ssize_t)len && !memcmp(now, line, len)) {
		memset(now, '\n', len);
		ok = pwrite(fd, now, len, at) == (ssize_t)len;
	}
	free(now);
	return ok;
}

static void look_at_lines(struct lines *l)
{
	l->tail = l->len;
	for (size_t at = 0, n; at < l->len; at += n + 1) {
		n = line_length(l, at);
		if (!is_ours(l->text + at, n)) {
			l->others |= n > 0;
			l->tail = l->len;
			continue;
		}
		l->ours = true;
		if (l->tail == l->len)
			l->tail = at;
	}
}

static bool blank_lines(const struct lines *l, int fd)
{
	bool ok = true;

	for (size_t at = 0, n; at < l->len && ok; at += n + 1) {
		n = line_length(l, at);
		if (is_ours(l->text + at, n))
			ok = blank(fd, l->text + at, n, (off_t)at);
	}
	return ok;
}

static bool read_lines(int fd, const struct stat *st, struct lines *l)
{
	ssize_t n = 1;

	*l = (struct lines){ 0 };
	if (st->st_size <= 0 || st->st_size > FILE_MOST)
		return false;
	l->text = malloc((size_t)st->st_size);
	if (!l->text)
		abort();
	while (n > 0 && l->len < (size_t)st->st_size) {
		n = pread(fd, l->text + l->len, (size_t)st->st_size - l->len, (off_t)l->len);
		if (n > 0)
			l->len += (size_t)n;
	}
	return true;
}

static bool has_grown(int fd, const struct lines *l)
{
	struct stat now;

	return fstat(fd, &now) < 0 || now.st_size != (off_t)l->len;
}

/* No process is known to have it open. */
static bool remove_file(const struct mapfile *m, int fd)
{
	struct stat open, named;

	if (fstat(fd, &open) < 0 || fstatat(m->dir, m->name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    named.st_ino != open.st_ino || named.st_dev != open.st_dev)
		return true; /* another file has its name by now */
	return unlinkat(m->dir, m->name, 0) == 0;
}

static bool clean(const struct mapfile *m, int fd, const struct stat *st, bool used)
{
	bool ok = true;
	struct lines l;

	if (!read_lines(fd, st, &l))
		return true;
	look_at_lines(&l);
	used |= has_grown(fd, &l);
	if (l.ours && !l.others && !used) {
		ok = remove_file(m, fd);
	} else if (l.ours) {
		if (!used)
			ok = ftruncate(fd, (off_t)l.tail) == 0;
		ok = ok && blank_lines(&l, fd); /* past the end of the file it does nothing */
	}
	free(l.text);
	return ok;
}

int mapfile_clean(struct mapfile *m, struct sb_err *err)
{
	int ret = look(m, err), fd;
	struct stat st;
	struct ids own;
	bool used;

	if (ret < 0)
		return ret;
	if (!ids_take(&own, m)) {
		ids_drop(&own);
		return no_ids(m, err);
	}
	fd = open_existing(m, 0, &st);
	ids_drop(&own);
	if (fd < 0)
		return 0; /* there is none, or it cannot be ours */
	used = users_of(m, &st) != USED_NOT;
	if (ids_take(&own, m) && !clean(m, fd, &st, used))
		ret = no_file(m, err);
	ids_drop(&own);
	close(fd);
	return ret;
}
