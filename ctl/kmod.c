/* SPDX-License-Identifier: MIT */
/*
 * The kernel module's sysfs files, by the module's own interface: one command in each write to
 * `targets`, 512 bytes at most; its list has one target a line.
 */
#include "ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_MAX = 512 };

const char *ctl_kmod_dir(void)
{
	const char *own = secure_getenv("SBINJECT_KMOD_DIR");
	const char *dir = own && *own ? own : "/sys/kernel/speed_bump";

	return access(dir, F_OK) == 0 ? dir : NULL;
}

static json_t *no(const char *error, const char *what, const char *hint)
{
	return json_pack("{s:b s:s s:o s:o}", "ok", 0, "error", error, "what", json_name(what),
			 "hint", json_name(hint));
}

static json_t *of_errno(int code, const char *file)
{
	static const struct {
		int code;
		const char *what;
	} known[] = {
		{ EINVAL, "the module does not understand this target" },
		{ ENOENT, "no such file, symbol or target" },
		{ ENOEXEC, "not a valid ELF file" },
		{ ENAMETOOLONG, "the path (256) or symbol (128) is too long" },
		{ ERANGE, "a delay above 10 s is refused" },
		{ EEXIST, "the target is there already" },
		{ ENOSPC, "the module holds 64 targets at most" },
		{ EACCES, "only root may change the kernel module" },
		{ EPERM, "only root may change the kernel module" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i].code == code)
			return no(strerrorname_np(code), known[i].what, file);
	return no("EIO", strerror(code), file);
}

static int write_file(const char *dir, const char *file, const char *text)
{
	char path[512];
	ssize_t n;
	int fd, code;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return errno;
	n = write(fd, text, strlen(text));
	code = n < 0 ? errno : 0;
	close(fd);
	return code;
}

static bool read_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[512];
	size_t len = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	buf[len] = '\0';
	close(fd);
	return true;
}

static json_t *done(int code, const char *file)
{
	return code ? of_errno(code, file) : json_pack("{s:b}", "ok", 1);
}

/* Writes a line to the list of targets, from a text in the form of requests. */
static json_t *write_line(const char *dir, const char *text)
{
	char *line = json_bytes(text);
	int code = write_file(dir, "targets", line);

	free(line);
	return done(code, "targets");
}

/* "PATH:SYM", and of the further words those that the module knows: a delay, pid=N. */
static json_t *kmod_add(const char *dir, const json_t *request)
{
	const json_t *words = json_object_get(request, "words");
	char line[COMMAND_MAX + 2];
	size_t used = 0;

	for (size_t i = 0; i < json_array_size(words); i++) {
		const char *word = json_string_value(json_array_get(words, i));
		size_t digits = strspn(word, "0123456789");
		bool delay = i && digits && (!word[digits] || !strcmp(word + digits, "ns"));

		if (i && !delay && strncmp(word, "pid=", 4) != 0)
			return no("EINVAL", "the kernel module knows a delay and pid=N, no more",
				  word);
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%.*s", i ? " " : "+",
					 delay ? (int)digits : (int)strlen(word), word);
		if (used > COMMAND_MAX)
			return no("EINVAL", "a command of more than 512 bytes", "");
	}
	return write_line(dir, line);
}

static json_t *kmod_change(const char *dir, const json_t *request, char sign)
{
	const char *target = json_string_value(json_object_get(request, "target"));
	const json_t *delay = json_object_get(request, "delay_ns");
	char line[COMMAND_MAX + 2];
	int n = snprintf(line, sizeof(line), "%c%s", sign, target);

	if (n <= COMMAND_MAX && sign == '=' && delay)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %lld",
			      (long long)json_integer_value(delay));
	if (n > COMMAND_MAX)
		return no("EINVAL", "a command of more than 512 bytes", "");
	return write_line(dir, line);
}

static json_t *kmod_delay(const char *dir, const json_t *request)
{
	const json_t *delay = json_object_get(request, "delay_ns");
	char text[64];

	if (delay) {
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(delay));
		return done(write_file(dir, "default_delay_ns", text), "default_delay_ns");
	}
	if (!read_file(dir, "default_delay_ns", text, sizeof(text)))
		return of_errno(errno, "default_delay_ns");
	return json_pack("{s:b s:I}", "ok", 1, "delay_ns", (json_int_t)strtoll(text, NULL, 10));
}

/* "PATH:SYM delay_ns=N hits=M[ pid=P]" */
static json_t *parse_target(char *line)
{
	char *delay = strstr(line, " delay_ns="), *hits = strstr(line, " hits=");
	char *pid = strstr(line, " pid=");
	json_t *t;

	if (!delay || !hits)
		return NULL;
	*delay = '\0';
	t = json_pack("{s:o s:I s:I}", "target", json_name(line), "delay_ns",
		      (json_int_t)strtoll(delay + 10, NULL, 10), "hits",
		      (json_int_t)strtoll(hits + 6, NULL, 10));
	if (t && pid)
		json_object_set_new(t, "pid", json_integer(strtoll(pid + 5, NULL, 10)));
	return t;
}

static json_t *kmod_list(const char *dir)
{
	char *text = malloc(1 << 16), *save = NULL;
	json_t *list = json_array();

	if (!text || !read_file(dir, "targets_list", text, 1 << 16)) {
		free(text);
		json_decref(list);
		return of_errno(errno, "targets_list");
	}
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *t = parse_target(line);

		if (t)
			json_array_append_new(list, t);
	}
	free(text);
	return json_pack("{s:b s:o}", "ok", 1, "targets", list);
}

static json_int_t stat_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoll(at + strlen(name), NULL, 10) : 0;
}

static json_t *kmod_status(const char *dir)
{
	char text[4096];

	if (!read_file(dir, "stats", text, sizeof(text)))
		return of_errno(errno, "stats");
	return json_pack("{s:b s:b s:I s:I s:I s:s s:[]}", "ok", 1, "enabled",
			 stat_of(text, "enabled: ") != 0, "targets", stat_of(text, "targets: "),
			 "total_hits", stat_of(text, "total_hits: "), "total_delay_ns",
			 stat_of(text, "total_delay_ns: "), "backend", "kmod", "pids");
}

json_t *ctl_kmod_ask(const char *dir, const json_t *request)
{
	const char *op = json_string_value(json_object_get(request, "op"));

	if (!strcmp(op, "add"))
		return kmod_add(dir, request);
	if (!strcmp(op, "remove"))
		return kmod_change(dir, request, '-');
	if (!strcmp(op, "update"))
		return kmod_change(dir, request, '=');
	if (!strcmp(op, "clear"))
		return done(write_file(dir, "targets", "-*"), "targets");
	if (!strcmp(op, "delay"))
		return kmod_delay(dir, request);
	if (!strcmp(op, "enable") || !strcmp(op, "disable"))
		return done(write_file(dir, "enabled", op[0] == 'e' ? "1" : "0"), "enabled");
	if (!strcmp(op, "list"))
		return kmod_list(dir);
	if (!strcmp(op, "status"))
		return kmod_status(dir);
	return no("EINVAL", "the kernel module cannot do this", "it is for sessions of sbinject");
}
