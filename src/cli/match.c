/* SPDX-License-Identifier: MIT */
/* --match: finds processes by their command lines. */
#include "options.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "elf/symbol.h"
#include "inject/tree-task.h"
#include "src/base/log.h"
#include "src/base/text.h"

/* The command line of a process with blanks between its words; "" if it has none. */
static void read_cmdline(pid_t pid, char *buf, size_t size)
{
	char path[64];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, buf, size - 1);
		close(fd);
	}
	n = n > 0 ? n : 0;
	buf[n] = '\0';
	for (ssize_t i = 0; i + 1 < n; i++)
		if (!buf[i])
			buf[i] = ' ';
}

/* Our ancestors may have our command line within their own: timeout(1), sh -c. */
static bool is_ancestor(pid_t pid)
{
	pid_t at = getpid();

	while (at > 1 && at != pid)
		at = task_parent(at);
	return at == pid;
}

static void match_one(const char *glob, pid_t pid, pid_t **pids, size_t *count, struct sb_err *err)
{
	char line[4096], shown[TEXT_QUOTE_SIZE], number[16];

	if (is_ancestor(pid))
		return;
	read_cmdline(pid, line, sizeof(line));
	if (!line[0] || !glob_match(glob, line))
		return;
	log_note("--match: %d %s", pid, text_quote(line, shown, sizeof(shown)));
	snprintf(number, sizeof(number), "%d", pid);
	spec_pids(number, pids, count, err);
}

int options_match(const char *arg, pid_t **pids, size_t *count, struct sb_err *err)
{
	size_t before = *count;
	DIR *dir = opendir("/proc");
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]))
			match_one(arg, (pid_t)strtol(e->d_name, NULL, 10), pids, count, err);
	if (dir)
		closedir(dir);
	if (*count > before)
		return 0;
	err_set(err, SB_ENOPROC, "--match '%s': no process has such a command line", arg);
	err_hint(err,
		 "the pattern must match the whole line, arguments and all: '*%.*s*' would "
		 "match a part of it",
		 (int)strcspn(arg + strspn(arg, "*"), "*"), arg + strspn(arg, "*"));
	return -SB_ENOPROC;
}
