/* SPDX-License-Identifier: MIT */
/*
 * Where presets lie, and which of them are trusted. A preset decides which functions of a target
 * are hooked, often by root: so only the user and root may be able to write it. Neither a
 * target nor the current directory has a say in where it is looked for.
 */
#include "preset-file.h"
#include "preset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "src/base/caps.h"
#include "src/base/must.h"
#include "src/base/text.h"

#define SUFFIX ".preset"

enum { FILE_MAX = 1 << 20, OWN, SHIPPED, DIRS };

/* The directory of the user's presets, or of those beside the program (PREFIX/bin/sbinject and
 * PREFIX/share, build/sbinject and share). False: there is none. */
static bool dir_path(int which, char *path, size_t size)
{
	const char *xdg = caps_env("XDG_CONFIG_HOME"), *home = caps_env("HOME");
	char exe[PATH_MAX], *slash;
	ssize_t n;

	if (which != SHIPPED && xdg && xdg[0] == '/')
		return snprintf(path, size, "%s/sbinject/presets", xdg) < (int)size;
	if (which != SHIPPED)
		return home && home[0] == '/' &&
		       snprintf(path, size, "%s/.config/sbinject/presets", home) < (int)size;
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n <= 0)
		return false;
	exe[n] = '\0';
	for (int i = 0; i < 2; i++) {
		slash = strrchr(exe, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
	return snprintf(path, size, "%s/share/sbinject/presets", exe) < (int)size;
}

/*
 * NULL, or the reason not to trust a file or its directory, in which a user who can write it can
 * put another file. One beside the program may belong to the program's owner and may be writable
 * for the same group as the program: its members can write the program.
 */
static const char *distrust(int which, const struct stat *st)
{
	bool dir = S_ISDIR(st->st_mode);
	struct stat exe;
	bool shipped = which == SHIPPED && stat("/proc/self/exe", &exe) == 0;

	if (st->st_uid && st->st_uid != getuid() && !(shipped && st->st_uid == exe.st_uid))
		return dir ? "its directory belongs neither to you nor to root" :
			     "it belongs neither to you nor to root";
	if (st->st_mode & S_IWOTH)
		return dir ? "every user can write its directory" : "every user can write it";
	if (st->st_mode & S_IWGRP &&
	    !(shipped && exe.st_mode & S_IWGRP && exe.st_gid == st->st_gid))
		return dir ? "a group can write its directory" : "its group can write it";
	return NULL;
}

static const char *distrust_file(int which, const struct stat *dir, const struct stat *file)
{
	const char *why = distrust(which, dir);

	if (!S_ISREG(file->st_mode))
		return "it is not a file";
	if (!why)
		why = distrust(which, file);
	return !why && file->st_size > FILE_MAX ? "it is above 1 MiB" : why;
}

static int refuse(const char *path, const char *why, struct sb_err *err)
{
	char shown[TEXT_QUOTE_SIZE];

	text_quote(path, shown, sizeof(shown));
	err_set(err, SB_EFILE, "the preset %s is not read: %s", shown, why);
	err_hint(err, "chmod go-w and chown it and its directory to yourself or to root, or "
		      "remove it");
	return -SB_EFILE;
}

/* What the file holds, up to its size. The caller frees. */
static char *read_all(int fd, size_t size, size_t *len)
{
	char *text = must_calloc(size + 1, 1);
	ssize_t got;

	*len = 0;
	while (*len < size && (got = read(fd, text + *len, size - *len)) > 0)
		*len += (size_t)got;
	return text;
}

/* -1 and *why NULL: there is none, as in a directory that only others may read. */
static int open_in(int at, const char *name, int flags, const char **why)
{
	int fd = openat(at, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);

	*why = NULL;
	if (fd < 0 && errno != ENOENT && errno != ENOTDIR &&
	    !(flags & O_DIRECTORY && errno == EACCES))
		*why = errno == ELOOP ? "it is a link" : strerror(errno);
	return fd;
}

/* 0 and NULL: there is no such file. The caller frees the text. */
static int read_file(int which, const char *dir, const char *name, char **text, size_t *len,
		     struct sb_err *err)
{
	char path[PATH_MAX + 64];
	const char *why;
	struct stat st, dir_st;
	int at = open_in(AT_FDCWD, dir, O_DIRECTORY, &why), fd = -1;

	*text = NULL;
	if (at >= 0)
		fd = open_in(at, name, O_NOFOLLOW, &why);
	if (fd >= 0)
		why = fstat(fd, &st) < 0 || fstat(at, &dir_st) < 0 ?
			      strerror(errno) :
			      distrust_file(which, &dir_st, &st);
	if (fd >= 0 && !why)
		*text = read_all(fd, (size_t)st.st_size, len);
	if (fd >= 0)
		close(fd);
	if (at >= 0)
		close(at);
	if (!why)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return refuse(path, why, err);
}

int preset_read(const char *file, struct preset_text *to, struct sb_err *err)
{
	char dir[PATH_MAX];
	int rc = 0;

	to->text = NULL;
	to->len = 0;
	for (int which = OWN; which < DIRS && !rc && !to->text; which++) {
		if (!dir_path(which, dir, sizeof(dir)))
			continue;
		snprintf(to->path, sizeof(to->path), "%s/%s", dir, file);
		rc = read_file(which, dir, file, &to->text, &to->len, err);
	}
	return rc;
}

/* Presets that were read, and names that none has, for as long as the program runs. */
static struct known {
	struct known *next;
	char *name;
	const struct preset *preset; /* NULL: there is none */
} * known;

static int load(const char *name, const struct preset **out, struct sb_err *err)
{
	struct preset_text text;
	struct preset *preset = NULL;
	char file[64];
	int rc;

	snprintf(file, sizeof(file), "%s" SUFFIX, name);
	rc = preset_read(file, &text, err);
	if (!rc && text.text)
		rc = preset_parse(text.text, text.len, name, text.path, &preset, err);
	free(text.text);
	*out = preset;
	return rc;
}

int preset_get(const char *name, size_t len, const struct preset **out, struct sb_err *err)
{
	const struct preset *preset;
	struct known *k = known;
	char *copy;
	int rc;

	*out = NULL;
	while (k && (strlen(k->name) != len || memcmp(k->name, name, len)))
		k = k->next;
	if (k) {
		*out = k->preset;
		return 0;
	}
	copy = must(strndup(name, len));
	rc = load(copy, &preset, err);
	if (rc) {
		free(copy);
		return rc;
	}
	k = must_calloc(1, sizeof(*k));
	*k = (struct known){ known, copy, preset };
	known = k;
	*out = preset;
	return 0;
}

/* ---- names ---- */

static bool listed(const char *names, const char *name, size_t len)
{
	for (const char *at = names; (at = strstr(at, name)); at += len)
		if ((at == names || at[-1] == ' ') && (!at[len] || at[len] == ','))
			return true;
	return false;
}

static void add_names(const char *path, char *buf, size_t size)
{
	struct dirent **entry;
	int n = scandir(path, &entry, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		char *name = entry[i]->d_name, *dot = strrchr(name, '.');
		size_t used = strlen(buf);

		if (dot && !strcmp(dot, SUFFIX) && preset_is_name(name, (size_t)(dot - name))) {
			*dot = '\0';
			if (!listed(buf, name, strlen(name)) && used + strlen(name) + 3 < size)
				snprintf(buf + used, size - used, "%s%s", used ? ", " : "", name);
		}
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
}

void preset_names(char *buf, size_t size)
{
	char path[PATH_MAX];

	*buf = '\0';
	for (int which = SHIPPED; which >= OWN; which--)
		if (dir_path(which, path, sizeof(path)))
			add_names(path, buf, size);
}
