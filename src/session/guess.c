/* SPDX-License-Identifier: MIT */
#include "guess.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "elf/symbol.h"
#include "src/base/caps.h"
#include "src/base/inroot.h"

static bool ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && !strcmp(text + len - n, end);
}

static const char *file_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_kernel(const char *module)
{
	const char *file = file_of(module);

	return !strncmp(file, "vmlinu", 6) || !strcmp(file, "kernel") || ends_in(file, ".ko");
}

static bool is_source(const char *module)
{
	static const char *const ends[] = { ".c",  ".cc", ".cpp", ".cxx", ".C",
					    ".rs", ".go", ".h",	  ".hpp", ".S" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (ends_in(module, ends[i]))
			return true;
	return false;
}

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* A name, or several names separated by dots: a Python module. */
static bool is_dotted_name(const char *module)
{
	for (const char *c = module; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != '.')
			return false;
	return *module && !isdigit((unsigned char)*module) && !strstr(module, ".so");
}

static bool maps_python(const struct maps *maps)
{
	for (size_t i = 0; i < maps->count; i++) {
		const char *file = file_of(maps->entry[i].path);

		if (!strncmp(file, "python3", 7) || !strncmp(file, "libpython3", 10))
			return true;
	}
	return false;
}

static bool is_otherwise_written(const struct spec *spec, char *hint, size_t size)
{
	const char *module = spec->module, *symbol = spec->symbol;

	if (is_kernel(module))
		snprintf(hint, size,
			 "functions of the kernel cannot be slowed, but counted and timed: "
			 "kernel:%.100s; those of the C library that call it can be slowed: "
			 "libc.so.6:write",
			 symbol);
	else if (is_source(module) && is_number(symbol))
		snprintf(hint, size,
			 "a line of the main executable's sources is written ':@%.100s:%.10s'",
			 module, symbol);
	else if (is_source(module))
		snprintf(hint, size,
			 "a module is a mapped file, not a source file: ':%.100s' is a function of "
			 "the main executable",
			 symbol);
	else if (ends_in(module, ".py"))
		snprintf(
			hint, size,
			"a function of Python is written 'py:MODULE:QUALNAME', as 'py:__main__:f'");
	else
		return false;
	return true;
}

/* A library named by its file name alone, searched in the root of the process. */
static bool is_on_path(const struct spec *spec, pid_t pid, char *path, size_t size)
{
	static const char *const dirs[] = { "/lib/x86_64-linux-gnu",
					    "/usr/lib/x86_64-linux-gnu",
					    "/lib64",
					    "/usr/lib64",
					    "/usr/local/lib",
					    "/lib",
					    "/usr/lib",
					    "" };
	struct stat st;

	if (!strstr(spec->module, ".so") || glob_is_pattern(spec->module))
		return false;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
		char root[32];
		int fd;
		bool found;

		if ((spec->module[0] == '/') != !dirs[i][0])
			continue;
		snprintf(path, size, "%s%s%s", dirs[i], dirs[i][0] ? "/" : "", spec->module);
		snprintf(root, sizeof(root), "/proc/%d/root", maps_face(pid));
		fd = inroot_find(root, path);
		found = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
		if (fd >= 0)
			close(fd);
		if (found)
			return true;
	}
	return false;
}

enum guess guess_target(const struct spec *spec, pid_t pid, const struct maps *maps,
			const char *near, char *hint, size_t size)
{
	char path[4300];

	if (is_otherwise_written(spec, hint, size))
		return GUESS_WRITTEN;
	snprintf(hint, size, "%s", near);
	if (near[0] == '\'') /* the hint names the place of the function */
		return GUESS_NONE;
	if (is_dotted_name(spec->module) && maps_python(maps)) {
		snprintf(hint, size, "a function of Python is written 'py:%.100s:%.100s'",
			 spec->module, spec->symbol);
		return GUESS_WRITTEN;
	}
	if (!is_on_path(spec, pid, path, sizeof(path))) {
		if (spec->module[0] == '/' && !glob_is_pattern(spec->module))
			snprintf(hint, size, "there is no such file");
		return GUESS_NONE;
	}
	snprintf(hint, size, "it is hooked as soon as %.200s is loaded", path);
	return GUESS_AWAITED;
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool is_on_search_path(const char *word)
{
	const char *dir = caps_env("PATH");
	char path[4096];

	for (; dir && *dir; dir += strcspn(dir, ":"), dir += *dir == ':') {
		int len = (int)strcspn(dir, ":");

		snprintf(path, sizeof(path), "%.*s/%s", len, dir, word);
		if (is_program(path))
			return true;
	}
	return false;
}

const char *guess_command(char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (words[i][0] == '-' || strpbrk(words[i], ":=") || !words[i][0])
			continue;
		if (strchr(words[i], '/') ? is_program(words[i]) : is_on_search_path(words[i]))
			return words[i];
	}
	return NULL;
}
