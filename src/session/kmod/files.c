/* SPDX-License-Identifier: MIT */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "src/base/caps.h"

enum { COMMAND_MAX = 512, READ_STEP = 65536 };

const char *kmod_dir(void)
{
	const char *own = caps_env("SBINJECT_KMOD_DIR");
	const char *dir = own && *own ? own : "/sys/kernel/speed_bump";

	return access(dir, F_OK) == 0 ? dir : NULL;
}

static int open_file(const char *file, int flags)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", kmod_dir() ? kmod_dir() : "", file);
	return open(path, flags | O_CLOEXEC);
}

/* The meaning of the module's error numbers, and the remedy. */
static int refused(int code, const char *what, struct sb_err *err)
{
	static const struct {
		int code;
		enum sb_code ours;
		const char *text;
	} known[] = {
		{ EINVAL, SB_EREFUSED, "it does not take this" },
		{ ENOENT, SB_ENOSYMBOL, "no such file, function or target" },
		{ ENOEXEC, SB_ENOELF, "not a valid ELF file" },
		{ ENAMETOOLONG, SB_ETOOLONG, "a path above 256 or a name above 128" },
		{ ERANGE, SB_ERANGE, "a delay above 10 s" },
		{ EEXIST, SB_EEXIST, "the target is there already" },
		{ ENOSPC, SB_ENOMEM, "it holds 64 targets at most" },
		{ EACCES, SB_EPERM, "only root may" },
		{ EPERM, SB_EPERM, "only root may" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i].code == code)
			return err_set(err, known[i].ours,
				       "the kernel module refuses '%.200s': %s (%s)", what,
				       known[i].text, strerrorname_np(code));
	return err_set(err, SB_ESYS, "the kernel module refuses '%.200s': %s", what,
		       strerror(code));
}

int kmod_write(const char *file, struct sb_err *err, const char *fmt, ...)
{
	char text[COMMAND_MAX + 2];
	int fd = open_file(file, O_WRONLY), len, code = fd < 0 ? errno : 0;
	va_list ap;

	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!code && len > COMMAND_MAX)
		code = ENAMETOOLONG;
	else if (!code && write(fd, text, (size_t)len) < 0)
		code = errno;
	if (fd >= 0)
		close(fd);
	return code ? refused(code, text, err) : 0;
}

char *kmod_read(const char *file)
{
	int fd = open_file(file, O_RDONLY);
	size_t len = 0, cap = 0;
	char *text = NULL;
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0) {
		if (cap - len < READ_STEP / 2) {
			text = realloc(text, (cap += READ_STEP) + 1);
			if (!text)
				abort();
		}
		n = read(fd, text + len, cap - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[len] = '\0';
	return text;
}

uint64_t kmod_number(const char *text, const char *word)
{
	const char *at = text ? strstr(text, word) : NULL;

	return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

bool kmod_hits(const char *list, const char *name, uint64_t *hits)
{
	size_t len = strlen(name);

	for (const char *line = list; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, len) != 0 || strncmp(line + len, " delay_ns=", 10) != 0)
			continue;
		*hits = kmod_number(line, " hits=");
		return true;
	}
	return false;
}
