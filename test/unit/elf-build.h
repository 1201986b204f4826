/* SPDX-License-Identifier: MIT */
#ifndef SB_TEST_ELF_BUILD_H
#define SB_TEST_ELF_BUILD_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Small ELF files for the tests, compiled into a directory that build_clean() removes. */
static char build_dir[64];

static inline int build_setup(void **state)
{
	(void)state;
	strcpy(build_dir, "/tmp/sb-elf-XXXXXX");
	return mkdtemp(build_dir) ? 0 : -1;
}

static inline int build_clean(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", build_dir);
	return system(cmd) ? -1 : 0;
}

/* The path of NAME in the directory; one of a few static buffers. */
static inline const char *build_path(const char *name)
{
	static char path[4][192];
	static unsigned int turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", build_dir, name);
	return path[turn];
}

static inline int build_write(const char *path, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, bytes, len);
	close(fd);
	return n == (ssize_t)len ? 0 : -1;
}

/* `compiler flags -o NAME source`; 0 where it cannot be compiled here. */
static inline int build_elf(const char *compiler, const char *flags, const char *name,
			    const char *suffix, const char *source)
{
	char file[192], cmd[1024];

	snprintf(file, sizeof(file), "%s/%s.%s", build_dir, name, suffix);
	if (build_write(file, source, strlen(source)))
		return 0;
	snprintf(cmd, sizeof(cmd), "%s %s -o '%s/%s' '%s' 2>'%s/log'", compiler, flags, build_dir,
		 name, file, build_dir);
	return system(cmd) == 0;
}

/* A whole file in memory, to be freed. */
static inline unsigned char *build_read(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	unsigned char *bytes = NULL;
	struct stat st;

	*len = 0;
	if (f && fstat(fileno(f), &st) == 0 && (bytes = malloc((size_t)st.st_size + 1)))
		*len = fread(bytes, 1, (size_t)st.st_size, f);
	if (f)
		fclose(f);
	return bytes;
}

#define need_elf(...)                                                     \
	do {                                                              \
		if (!build_elf(__VA_ARGS__)) {                            \
			print_message("skipped: no compiler for this\n"); \
			skip();                                           \
		}                                                         \
	} while (0)

#endif
