/* SPDX-License-Identifier: MIT */
#ifndef SB_LOG_H
#define SB_LOG_H

/*
 * Notices for the user and traces for the developer. Every module may call these functions.
 * log_set_sink() sets the destination once: the command line writes to stderr; the tracer sends the
 * line to the command line, so that the tracer never blocks on a terminal.
 */
enum log_level { LOG_ERROR, LOG_WARN, LOG_NOTE, LOG_DEBUG };

typedef void log_sink_fn(enum log_level level, const char *line, void *ctx);

void log_set_sink(log_sink_fn *sink, void *ctx);
void log_set_level(enum log_level most_verbose);
enum log_level log_get_level(void);

/*
 * For a thread beside the one that owns the sink: keeps the calling thread's lines until
 * log_release(), by whichever thread, passes them on in order.
 */
struct log_held {
	struct log_kept *first, *last;
};
void log_hold(struct log_held *held); /* NULL: no longer */
void log_release(struct log_held *held);

/* One line, without newline and without "sbinject:"; the sink adds both where needed. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_note(...)  log_line(LOG_NOTE, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
