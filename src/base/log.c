/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include "text.h"

/* Until a sink is set nothing is printed: the user of a library, or a test, expects no output. */
static log_sink_fn *log_sink;
static void *log_sink_ctx;
static enum log_level log_most_verbose = LOG_NOTE;

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
	log_sink(level, text_quote(line, shown, sizeof(shown)), log_sink_ctx);
	errno = saved;
}
