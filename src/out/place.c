/* SPDX-License-Identifier: MIT */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
	char *path; /* as the user gave it */
	bool special;
	char *dir_path, *name; /* of a regular file, or of a future one; no link in the path */
	int dir;
	struct stat dir_is;
	struct place *next;
};

enum { DIR_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC };

static struct place *places;

static bool is_special(const char *path, const struct stat *st)
{
	return !S_ISREG(st->st_mode) || !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
}

/* The path of an existing file with all links followed, else that of its directory. The caller
 * frees. */
static char *follow(const char *path, bool exists)
{
	const char *slash = strrchr(path, '/');
	char *dir, *real, *whole = NULL;

	if (exists)
		return realpath(path, NULL);
	dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	real = dir ? realpath(dir, NULL) : NULL;
	if (real && asprintf(&whole, "%s/%s", real, slash ? slash + 1 : path) < 0)
		whole = NULL;
	free(dir);
	free(real);
	return whole;
}

static int split(struct place *p, bool exists)
{
	char *real = follow(p->path, exists), *slash = real ? strrchr(real, '/') : NULL;

	if (!slash)
		return -1;
	p->name = strdup(slash + 1);
	slash[slash == real] = '\0';
	p->dir_path = real;
	p->dir = open(real, DIR_FLAGS);
	if (!p->name || !*p->name || p->dir < 0)
		return -1;
	return fstat(p->dir, &p->dir_is);
}

static bool is_held(const struct place *p)
{
	struct stat st;

	return fstat(p->dir, &st) == 0 && st.st_ino == p->dir_is.st_ino &&
	       st.st_dev == p->dir_is.st_dev;
}

/* The tracer closes all descriptors that it inherits. Then the directory is opened again, and must
 * be the same one. */
static bool hold_again(struct place *p)
{
	if (is_held(p))
		return true;
	p->dir = open(p->dir_path, DIR_FLAGS);
	if (p->dir < 0)
		return false;
	errno = ESTALE;
	return is_held(p);
}

static struct place *find(const char *path)
{
	struct place *p = places;
	struct stat st;
	bool exists;

	while (p && strcmp(p->path, path) != 0)
		p = p->next;
	if (p)
		return p->special || hold_again(p) ? p : NULL;
	exists = stat(path, &st) == 0;
	if (!exists && errno != ENOENT)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p || !(p->path = strdup(path)))
		abort();
	p->dir = -1;
	p->special = exists && is_special(path, &st);
	if (!p->special && split(p, exists) < 0) {
		int saved = errno;

		free(p->name);
		free(p->dir_path);
		free(p->path);
		free(p);
		errno = saved;
		return NULL;
	}
	p->next = places;
	return places = p;
}

int out_place_hold(const char *path)
{
	return find(path) ? 0 : -1;
}

/* A device or pipe that has become a link since leads nowhere. */
static int open_special(const struct place *p, int flags)
{
	int fd = open(p->path, (flags & ~(O_CREAT | O_TRUNC)) | O_WRONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -1;
	/* /dev/stdout may be a regular file; it is our own. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && strncmp(p->path, "/dev/", 5) &&
	    strncmp(p->path, "/proc/", 6)) {
		close(fd);
		errno = ELOOP;
		return -1;
	}
	if ((flags & O_TRUNC) && S_ISREG(st.st_mode) && ftruncate(fd, 0) < 0)
		errno = 0;
	return fd;
}

int out_place_open(const char *path, int flags)
{
	const struct place *p = find(path);

	if (!p)
		return -1;
	if (p->special)
		return open_special(p, flags);
	return openat(p->dir, p->name, flags | O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, 0666);
}

FILE *out_place_stream(const char *path)
{
	int fd = out_place_open(path, O_CREAT | O_TRUNC);

	return fd < 0 ? NULL : fdopen(fd, "w");
}

/* Closes fd in any case. 0, or -1 with errno of the first failure. */
static int write_close(int fd, const char *text, size_t len)
{
	int first = 0;

	while (len && !first) {
		ssize_t done = write(fd, text, len);

		if (done < 0 && errno != EINTR)
			first = errno;
		if (done > 0) {
			text += done;
			len -= (size_t)done;
		}
	}
	if (close(fd) && !first) /* NFS and quotas report errors here */
		first = errno;
	errno = first;
	return first ? -1 : 0;
}

int out_place_append(const char *path, const char *text, size_t len)
{
	int fd = out_place_open(path, O_APPEND | O_CREAT);

	return fd < 0 ? -1 : write_close(fd, text, len);
}

static int write_through(const char *path, const char *text, size_t len)
{
	int fd = out_place_open(path, O_TRUNC);

	return fd < 0 ? -1 : write_close(fd, text, len);
}

/* Creates a new file beside it, named in *name, with the mode that open() and the umask give. */
static int open_beside(const struct place *p, char **name)
{
	int fd = -1;

	for (unsigned int i = 0; i < 100; i++) {
		if (asprintf(name, "%s.%d-%u.tmp", p->name, (int)getpid(), i) < 0)
			abort();
		fd = openat(p->dir, *name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			    0666);
		if (fd >= 0 || errno != EEXIST)
			return fd;
		free(*name); /* left by an earlier process with the same pid */
		*name = NULL;
	}
	return fd;
}

/* Writes beside it and renames. `old`: the replaced file, for its mode, or NULL. */
static int write_replace(const struct place *p, const char *text, size_t len,
			 const struct stat *old)
{
	char *name = NULL;
	int fd = open_beside(p, &name), rc = -1, saved;

	if (fd >= 0) {
		if (old &&
		    fchmod(fd, old->st_mode & 0777)) /* a failure to set the mode is no error */
			errno = 0;
		rc = write_close(fd, text, len);
		if (!rc)
			rc = renameat(p->dir, name, p->dir, p->name);
		saved = errno;
		if (rc)
			unlinkat(p->dir, name, 0);
		errno = saved;
	}
	free(name);
	return rc;
}

/* Only the file itself may be written: its directory is read-only, or it is a mount. */
static bool must_write_through(int error)
{
	return error == EACCES || error == EPERM || error == EROFS || error == EBUSY;
}

int out_place_replace(const char *path, const char *text, size_t len)
{
	const struct place *p = find(path);
	struct stat st;
	bool exists;
	int rc;

	if (!p)
		return -1;
	if (p->special)
		return write_through(path, text, len);
	exists = fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
	if (exists && faccessat(p->dir, p->name, W_OK, 0) < 0)
		return -1;
	rc = write_replace(p, text, len, exists ? &st : NULL);
	return rc && exists && must_write_through(errno) ? write_through(path, text, len) : rc;
}
