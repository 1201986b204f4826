/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "text.h"

/* Until a sink is set nothing is printed: the user of a library, or a test, expects no output. */
static log_sink_fn *log_sink;
static void *log_sink_ctx;
static enum log_level log_most_verbose = LOG_NOTE;

struct log_kept {
	struct log_kept *next;
	enum log_level level;
	char line[];
};

static _Thread_local struct log_held *log_holder;

void log_set_sink(log_sink_fn *sink, void *ctx)
{
	log_sink = sink;
	log_sink_ctx = ctx;
}

void log_set_level(enum log_level most_verbose)
{
	log_most_verbose = most_verbose;
}

enum log_level log_get_level(void)
{
	return log_most_verbose;
}

void log_hold(struct log_held *held)
{
	log_holder = held;
}

/* Without memory the line is lost. */
static void keep(enum log_level level, const char *line)
{
	size_t len = strlen(line) + 1;
	struct log_kept *k = malloc(sizeof(*k) + len);

	if (!k)
		return;
	k->next = NULL;
	k->level = level;
	memcpy(k->line, line, len);
	*(log_holder->first ? &log_holder->last->next : &log_holder->first) = k;
	log_holder->last = k;
}

void log_release(struct log_held *held)
{
	while (held->first) {
		struct log_kept *k = held->first;

		held->first = k->next;
		log_sink(k->level, k->line, log_sink_ctx);
		free(k);
	}
}

void log_line(enum log_level level, const char *fmt, ...)
{
	int saved = errno;
	char line[1024], shown[2048];
	va_list ap;

	if (!log_sink || level > log_most_verbose)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* Names from the target's files must not split a line or reach the terminal as control
	 * codes. */
	text_quote(line, shown, sizeof(shown));
	if (log_holder)
		keep(level, shown);
	else
		log_sink(level, shown, log_sink_ctx);
	errno = saved;
}
