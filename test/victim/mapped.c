/* SPDX-License-Identifier: MIT */
/*
 * mapped MODE: calls mapped_fn() and has a perf map of its own.
 *
 *	none		no map
 *	append		/tmp/perf-PID.map, and adds a line every few milliseconds, as CPython does
 *	offset		the same at an offset of its own, as V8 does
 *	late GATE	as append; opens it when the file GATE exists, writes when that is gone
 *	fork GATE	no map; has a child that calls it too, and a second one once GATE exists;
 *			prints "child PID" for each
 *
 * At its end it finds its own lines in the map, whole and in order.
 */
#include <fcntl.h>
#include <sys/wait.h>
#include "victim.h"

enum { LINE = 32, PAUSE_NS = 3000000 };

uint64_t mapped_fn(uint64_t x);

static uint64_t errors, calls, lines;
static char path[64];
static int map_fd = -1;

VICTIM_HOOKED uint64_t mapped_fn(uint64_t x)
{
	VICTIM_OPAQUE(x);
	x = x * 7 + 6;
	VICTIM_OPAQUE(x);
	return x;
}

static void call(void)
{
	uint64_t end = victim_now_ns() + PAUSE_NS;

	while (!victim_stop && victim_now_ns() < end)
		for (int i = 0; i < 100; i++, calls++)
			errors += mapped_fn(calls) != calls * 7 + 6;
}

static int line_of(uint64_t n, char line[LINE])
{
	return snprintf(line, LINE, "%llx 10 own_%llu\n", (unsigned long long)(0x1000 + n * 16),
			(unsigned long long)n);
}

static void add_line(void)
{
	char line[LINE];
	int len = line_of(lines++, line);

	errors += write(map_fd, line, (size_t)len) != len;
}

static void open_map(int flags)
{
	map_fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | flags, 0600);
	errors += map_fd < 0;
	if (map_fd < 0)
		perror(path);
}

/* Other lines may stand between its own. */
static bool map_is_whole(void)
{
	char line[LINE], text[4096];
	uint64_t n = 0;
	FILE *f;

	if (map_fd < 0)
		return true;
	f = fopen(path, "r");
	if (!f)
		return false;
	line_of(n, line);
	while (fgets(text, sizeof(text), f)) {
		if (strstr(text, "own_") && strcmp(text, line) != 0)
			break;
		if (strcmp(text, line) == 0)
			line_of(++n, line);
	}
	fclose(f);
	printf("own %llu of %llu\n", (unsigned long long)n, (unsigned long long)lines);
	return n == lines;
}

static pid_t make_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		while (!victim_stop)
			call();
		_exit(errors != 0);
	}
	printf("child %d\n", (int)pid);
	return pid;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "none", *gate = argc > 2 ? argv[2] : NULL;
	bool forks = strcmp(mode, "fork") == 0, late = strcmp(mode, "late") == 0;
	pid_t child[2] = { 0 };
	int status;

	victim_catch_term();
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	if (strcmp(mode, "append") == 0)
		open_map(O_APPEND);
	else if (strcmp(mode, "offset") == 0)
		open_map(O_TRUNC);
	if (forks)
		child[0] = make_child();
	printf("pid %d\n", (int)getpid());
	victim_ready();
	while (!victim_stop) {
		call();
		if (gate && access(gate, F_OK) == 0) {
			if (forks)
				child[1] = make_child();
			if (late && map_fd < 0)
				open_map(O_APPEND);
			if (!late)
				gate = NULL;
		}
		if (map_fd >= 0 && !(late && access(gate, F_OK) == 0))
			add_line();
	}
	for (int i = 0; i < 2; i++)
		if (child[i]) {
			kill(child[i], SIGTERM);
			errors += waitpid(child[i], &status, 0) != child[i] || status != 0;
		}
	victim_calls("mapped_fn", calls);
	return victim_done(errors == 0 && map_is_whole());
}
