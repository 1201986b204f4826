/* SPDX-License-Identifier: MIT */
/*
 * --json and --jsonl. A document replaces its file in one step, so that a reader sees the old
 * one or the new one and never half of either; a line is appended by one write(), so that lines
 * of runs that end together do not mix.
 */
#include "out.h"

#include <stdio.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "text.h"

static int fail(const char *path, struct sb_err *err)
{
	char shown[TEXT_QUOTE_SIZE];
	int rc = err_sys(err, SB_EFILE, "cannot write the result to %s",
			 text_quote(path, shown, sizeof(shown)));

	err_hint(err, "check that the directory exists, may be written to and has room");
	return rc;
}

/* Closes fd whatever happens; 0, or -1 with errno of the first failure. */
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
	if (close(fd) && !first) /* NFS and quotas report here */
		first = errno;
	errno = first;
	return first ? -1 : 0;
}

static int write_stdout(const char *text)
{
	errno = 0;
	if (fputs(text, stdout) < 0 || fflush(stdout))
		return -1;
	return 0;
}

static int append_line(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);

	return fd < 0 ? -1 : write_close(fd, text, strlen(text));
}

static int write_through(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -1 : write_close(fd, text, strlen(text));
}

/* A new file beside path, in *name; the mode is what open() and the umask make of it. */
static int open_beside(const char *path, char **name)
{
	int fd = -1;

	for (unsigned int i = 0; i < 100; i++) {
		if (asprintf(name, "%s.%d-%u.tmp", path, (int)getpid(), i) < 0)
			abort();
		fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0 || errno != EEXIST)
			return fd;
		free(*name); /* left by an earlier process with our pid */
		*name = NULL;
	}
	return fd;
}

/* Writes beside path and renames. `old`: the file that is replaced, for its mode, or NULL. */
static int write_replace(const char *path, const char *text, const struct stat *old)
{
	char *name = NULL;
	int fd = open_beside(path, &name), rc = -1, saved;

	if (fd >= 0) {
		if (old &&
		    fchmod(fd, old->st_mode & 0777)) /* another's mode is no reason to fail */
			errno = 0;
		rc = write_close(fd, text, strlen(text));
		if (!rc)
			rc = rename(name, path);
		saved = errno;
		if (rc)
			unlink(name);
		errno = saved;
	}
	free(name);
	return rc;
}

/* Where only the file itself may be written: its directory is closed, or it is a mount. */
static bool must_write_through(int error)
{
	return error == EACCES || error == EPERM || error == EROFS || error == EBUSY;
}

/*
 * A device, a pipe or a link into /proc (/dev/stdout) is written to and never replaced: renaming
 * over /dev/null would be the end of it. Other links are followed first.
 */
static int write_document(const char *path, const char *text)
{
	struct stat st;
	char *real;
	int rc;

	if (stat(path, &st))
		return errno == ENOENT ? write_replace(path, text, NULL) : -1;
	if (!S_ISREG(st.st_mode) || !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6))
		return write_through(path, text);
	if (access(path, W_OK))
		return -1;
	real = realpath(path, NULL);
	if (!real)
		return -1;
	rc = write_replace(real, text, &st);
	free(real);
	return rc && must_write_through(errno) ? write_through(path, text) : rc;
}

int out_document(const char *path, const char *json, struct sb_err *err)
{
	char *text;
	int rc;

	if (asprintf(&text, "%s\n", json) < 0)
		abort();
	rc = !strcmp(path, "-") ? write_stdout(text) : write_document(path, text);
	if (rc)
		rc = fail(path, err);
	free(text);
	return rc;
}

int out_json(const char *path, const struct result *res, bool lines, struct sb_err *err)
{
	char *json = result_to_json(res, !lines), *text;
	int rc;

	if (!lines || !strcmp(path, "-")) {
		rc = out_document(path, json, err);
		free(json);
		return rc;
	}
	if (asprintf(&text, "%s\n", json) < 0)
		abort();
	rc = append_line(path, text) ? fail(path, err) : 0;
	free(text);
	free(json);
	return rc;
}

int out_check(const char *path, struct sb_err *err)
{
	const char *slash;
	char dir[4096];

	if (!path || !strcmp(path, "-") || access(path, W_OK) == 0)
		return 0;
	if (errno == ENOENT) {
		slash = strrchr(path, '/');
		snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1,
			 slash ? path : ".");
		if (access(dir, W_OK | X_OK) == 0)
			return 0;
	}
	return err_sys(err, SB_EFILE, "the result cannot be written to %s", path);
}
