/* SPDX-License-Identifier: MIT */
#include "progress-priv.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 65536 };

static const struct {
	const char *prefix;
	enum progress_kind kind;
	const struct progress_ops *ops;
} kinds[] = {
	{ "prom:", PROGRESS_PROM, &progress_prom },
	{ "stdout:", PROGRESS_STDOUT, &progress_stdout },
	{ "file:", PROGRESS_FILE, &progress_file },
	{ "cmd:", PROGRESS_CMD, &progress_cmd },
	{ "cpu:", PROGRESS_CPU, &progress_cpu },
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

enum progress_kind progress_kind_of(const char *text)
{
	for (int i = 0; i < KINDS; i++)
		if (!strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)))
			return kinds[i].kind;
	return strcmp(text, "end") ? PROGRESS_TARGET : PROGRESS_END;
}

int progress_open(const char *text, bool response, struct progress **out, struct sb_err *err)
{
	struct progress *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		abort();
	for (int i = 0; i < KINDS; i++)
		if (kinds[i].kind == progress_kind_of(text))
			p->ops = kinds[i].ops;
	if (!p->ops) {
		free(p);
		return err_set(err, SB_EUSAGE, "'%s' is no source that can be read", text);
	}
	p->text = strdup(text);
	if (!p->text)
		abort();
	p->rest = strchr(p->text, ':') + 1;
	p->response = response;
	ret = p->ops->open(p, err);
	if (ret < 0) {
		progress_close(p);
		return ret;
	}
	*out = p;
	return 0;
}

void progress_close(struct progress *p)
{
	if (!p)
		return;
	p->ops->close(p);
	free(p->text);
	free(p);
}

int progress_read(struct progress *p, struct progress_value *value, struct sb_err *err)
{
	*value = (struct progress_value){ 0 };
	return p->ops->read(p, value, err);
}

uint64_t progress_poll_ns(const struct progress *p)
{
	return p->ops->poll_ns;
}

const char *progress_text(const struct progress *p)
{
	return p->text;
}

bool progress_last_number(const char *text, double *number)
{
	const char *at = text + strlen(text);
	bool found = false;

	/* Back to the last digit, then to the start of its number. */
	while (at > text && !isdigit((unsigned char)at[-1]))
		at--;
	while (at > text && (isdigit((unsigned char)at[-1]) || strchr(".eE+-", at[-1])))
		at--;
	for (; *at && !found; at++) {
		char *end;

		if (*at == '-' && at > text && isalnum((unsigned char)at[-1]))
			continue; /* "step-45" */
		*number = strtod(at, &end);
		found = end > at && isfinite(*number);
	}
	return found;
}

static void nothing(struct progress *p)
{
	free(p->own);
}

/* ---- file: ---- */

static int file_open(struct progress *p, struct sb_err *err)
{
	p->own = calloc(1, sizeof(bool)); /* a number was read from it before */
	if (!p->own)
		abort();
	if (*p->rest)
		return 0;
	err_set(err, SB_EUSAGE, "file: names no file");
	err_hint(err, "file:/run/app/items holds the number of items done so far");
	return -SB_EUSAGE;
}

static int file_look(struct progress *p, struct progress_value *value, struct sb_err *err)
{
	char text[4097];
	off_t size;
	ssize_t n;
	int fd = open(p->rest, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return err_sys(err, SB_EFILE, "progress: cannot read %s", p->rest);
	size = lseek(fd, 0, SEEK_END);
	if (size > (off_t)sizeof(text) - 1)
		lseek(fd, size - (off_t)sizeof(text) + 1, SEEK_SET);
	else
		lseek(fd, 0, SEEK_SET);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	if (progress_last_number(text, &value->count))
		return 0;
	return err_set(err, SB_EFILE, "progress: there is no number in %s", p->rest);
}

/* A program that rewrites a file truncates it first; one that rotates it removes it first. So if
 * there was a number before, wait for the next. */
static int file_read(struct progress *p, struct progress_value *value, struct sb_err *err)
{
	bool *known = p->own;
	struct sb_err why = { 0 };
	int ret = file_look(p, value, &why);

	for (int waited_ms = 0; ret < 0 && waited_ms < (*known ? 2000 : 200); waited_ms += 2) {
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
		ret = file_look(p, value, &why);
	}
	if (ret < 0 && !err->code)
		*err = why;
	*known |= ret == 0;
	return ret;
}

const struct progress_ops progress_file = { file_open, file_read, nothing, 2000000 };

/* ---- cmd: ---- */

static int cmd_open(struct progress *p, struct sb_err *err)
{
	if (*p->rest)
		return 0;
	err_set(err, SB_EUSAGE, "cmd: names no command");
	err_hint(err, "cmd:'wc -l </var/log/app.log' prints the number of items done so far");
	return -SB_EUSAGE;
}

static int cmd_read(struct progress *p, struct progress_value *value, struct sb_err *err)
{
	char line[4200], text[4097];
	size_t n;
	FILE *f;
	int status;

	/* A command that hangs must not hang the sweep. */
	snprintf(line, sizeof(line), "exec timeout 5 sh -c '%s'", "eval \"$SBINJECT_PROGRESS\"");
	setenv("SBINJECT_PROGRESS", p->rest, 1);
	f = popen(line, "re");
	unsetenv("SBINJECT_PROGRESS");
	if (!f)
		return err_sys(err, SB_ESYS, "progress: cannot run %s", p->rest);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	status = pclose(f);
	if (status)
		return err_set(err, SB_EFILE, "progress: '%s' failed (status %d)%s", p->rest,
			       status >> 8, status >> 8 == 124 ? ": it took over 5 s" : "");
	if (progress_last_number(text, &value->count))
		return 0;
	return err_set(err, SB_EFILE, "progress: '%s' prints no number", p->rest);
}

const struct progress_ops progress_cmd = { cmd_open, cmd_read, nothing, 100000000 };

/* ---- stdout: ---- */

struct lines {
	regex_t regex;
	bool group;
	char text[TEXT_MAX];
	size_t len;
	double count;
};

static int stdout_open(struct progress *p, struct sb_err *err)
{
	struct lines *l = calloc(1, sizeof(*l));
	char why[160];
	int code;

	if (!l)
		abort();
	code = regcomp(&l->regex, p->rest, REG_EXTENDED | REG_NEWLINE);
	if (code || !*p->rest) {
		regerror(code, &l->regex, why, sizeof(why));
		free(l);
		return err_set(err, SB_EUSAGE, "stdout:%s: %s", p->rest, code ? why : "no pattern");
	}
	l->group = l->regex.re_nsub > 0;
	p->own = l;
	return 0;
}

static void take_line(struct lines *l, char *line)
{
	regmatch_t m[2];
	double number;

	if (regexec(&l->regex, line, 2, m, 0))
		return;
	if (!l->group) {
		l->count++;
		return;
	}
	if (m[1].rm_so < 0)
		return;
	line[m[1].rm_eo] = '\0';
	if (progress_last_number(line + m[1].rm_so, &number))
		l->count = number;
}

void progress_feed(struct progress *p, const char *bytes, size_t len)
{
	struct lines *l = p && p->ops == &progress_stdout ? p->own : NULL;

	for (size_t i = 0; l && i < len; i++) {
		if (bytes[i] != '\n' && l->len < TEXT_MAX - 1) {
			l->text[l->len++] = bytes[i] ? bytes[i] : ' ';
			continue;
		}
		l->text[l->len] = '\0';
		take_line(l, l->text);
		l->len = 0;
	}
}

static int stdout_read(struct progress *p, struct progress_value *value, struct sb_err *err)
{
	(void)err;
	value->count = ((struct lines *)p->own)->count;
	return 0;
}

static void stdout_close(struct progress *p)
{
	struct lines *l = p->own;

	if (l)
		regfree(&l->regex);
	free(l);
}

const struct progress_ops progress_stdout = { stdout_open, stdout_read, stdout_close, 2000000 };
