/* SPDX-License-Identifier: MIT */
/* Subjects, sbinject and other programs as children of the bench. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "bench.h"

enum { ENTRY_BYTES = 5, PLANT_TIMEOUT_MS = 20000 };

static uint8_t entry_before[ENTRY_BYTES];

double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

bool have_program(const char *name)
{
	char *path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin"), *save = NULL;
	bool found = false;

	for (char *dir = strtok_r(path, ":", &save); dir && !found;
	     dir = strtok_r(NULL, ":", &save)) {
		char file[4096];

		snprintf(file, sizeof(file), "%s/%s", dir, name);
		found = access(file, X_OK) == 0;
	}
	free(path);
	return found;
}

static bool read_entry(const struct subject *s, uint8_t *bytes)
{
	char path[64];
	bool ok;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)s->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ok = fd >= 0 && pread(fd, bytes, ENTRY_BYTES, (off_t)s->fn) == ENTRY_BYTES;
	if (fd >= 0)
		close(fd);
	return ok;
}

bool subject_hooked(const struct subject *s)
{
	uint8_t now[ENTRY_BYTES];

	return read_entry(s, now) && memcmp(now, entry_before, ENTRY_BYTES) != 0;
}

int subject_start(struct subject *s, const char *name, const char *mode, const char *n)
{
	char path[512], line[128];
	int to[2], from[2];

	snprintf(path, sizeof(path), "%s/test/bench/%s", bench.build, name);
	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		return -1;
	s->pid = fork();
	if (s->pid == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execl(path, path, mode, n, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	s->in = fdopen(to[1], "w");
	s->out = fdopen(from[0], "r");
	if (!s->in || !s->out || !fgets(line, sizeof(line), s->out) ||
	    sscanf(line, "ready %*d %li", (long *)&s->fn) != 1 || !read_entry(s, entry_before)) {
		fprintf(stderr, "bench: %s does not start\n", path);
		subject_stop(s);
		return -1;
	}
	return 0;
}

void subject_stop(struct subject *s)
{
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	if (s->in)
		fclose(s->in);
	if (s->out)
		fclose(s->out);
	memset(s, 0, sizeof(*s));
}

int subject_ask(struct subject *s, double *answer, int cap, const char *fmt, ...)
{
	char line[256], *at = line, *end;
	va_list ap;
	int n = 0;

	va_start(ap, fmt);
	vfprintf(s->in, fmt, ap);
	va_end(ap);
	fputc('\n', s->in);
	fflush(s->in);
	if (!fgets(line, sizeof(line), s->out))
		return 0;
	for (; n < cap; n++, at = end) {
		answer[n] = strtod(at, &end);
		if (end == at)
			break;
	}
	return n;
}

double subject_call(struct subject *s, int threads, uint64_t calls)
{
	double answer[3];

	if (subject_ask(s, answer, 3, "call %d %llu", threads, (unsigned long long)calls) != 3)
		return NAN;
	return answer[0];
}

pid_t run_start(char *const *argv, const char *log)
{
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		dup2(null, 0);
		dup2(fd, 1);
		dup2(fd, 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

int run_stop(pid_t pid, int sig, int timeout_ms)
{
	double end = now_ms() + timeout_ms;
	int status = 0;

	if (sig)
		kill(pid, sig);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now_ms() > end) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		usleep(200);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool sb_runs(void)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/sbinject", bench.build);
	return access(path, X_OK) == 0;
}

static long status_field(pid_t pid, const char *field)
{
	char path[64], line[256];
	long value = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0)
			value = atol(line + strlen(field));
	if (f)
		fclose(f);
	return value;
}

int sb_attach(struct attached *a, const struct subject *s, const char *const *words)
{
	static int serial;
	char path[512], pid[16];
	const char *argv[32] = { path };
	double begin = now_ms();
	long tracer;
	int n = 1;

	if (!strcmp(words[0], "trace"))
		argv[n++] = *words++;
	argv[n++] = "-p";
	argv[n++] = pid;
	argv[n++] = "--json";
	argv[n++] = a->json;
	snprintf(path, sizeof(path), "%s/sbinject", bench.build);
	snprintf(pid, sizeof(pid), "%d", (int)s->pid);
	snprintf(a->json, sizeof(a->json), "%s/run-%d.json", bench.dir, ++serial);
	snprintf(a->log, sizeof(a->log), "%s/run-%d.log", bench.dir, serial);
	while (*words && n < 31)
		argv[n++] = *words++;
	a->pid = run_start((char *const *)argv, a->log);
	while (!subject_hooked(s)) {
		if (waitpid(a->pid, NULL, WNOHANG) != 0 || now_ms() - begin > PLANT_TIMEOUT_MS) {
			kill(a->pid, SIGINT);
			a->pid = 0;
			return -1;
		}
		usleep(100);
	}
	a->planted_ms = now_ms() - begin;
	usleep(20000); /* the threads are let go a moment after the bytes are in */
	tracer = status_field(s->pid, "TracerPid:");
	a->rss_kb = status_field(a->pid, "VmHWM:");
	if (tracer > 0)
		a->rss_kb += status_field((pid_t)tracer, "VmHWM:");
	return 0;
}

int sb_detach(struct attached *a)
{
	return a->pid > 0 ? run_stop(a->pid, SIGINT, 20000) : -1;
}

double sb_json(const struct attached *a, const char *path)
{
	json_t *root = json_load_file(a->json, 0, NULL), *at = root;
	char parts[128], *save = NULL;
	double value = NAN;

	snprintf(parts, sizeof(parts), "%s", path);
	for (char *p = strtok_r(parts, ".", &save); p && at; p = strtok_r(NULL, ".", &save))
		at = json_is_array(at) ? json_array_get(at, strtoul(p, NULL, 10)) :
					 json_object_get(at, p);
	if (json_is_number(at))
		value = json_number_value(at);
	else if (json_is_array(at))
		value = (double)json_array_size(at);
	json_decref(root);
	return value;
}

const char *sb_why(const struct attached *a)
{
	static char last[200];
	char line[200];
	FILE *f = fopen(a->log, "re");

	snprintf(last, sizeof(last), "sbinject did not attach");
	while (f && fgets(line, sizeof(line), f))
		if (line[0] != '\n')
			snprintf(last, sizeof(last), "%s", line);
	if (f)
		fclose(f);
	last[strcspn(last, "\n")] = 0;
	return last;
}
