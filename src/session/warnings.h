/* SPDX-License-Identifier: MIT */
#ifndef SB_WARNINGS_H
#define SB_WARNINGS_H

#include <stddef.h>

struct result;

/* Problems of a session that do not end it. Each is printed once, at once, and is repeated in the
 * result. { 0 } is empty. */
struct warnings {
	char **line;
	size_t n;
};

void warnings_add(struct warnings *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void warnings_tell(const struct warnings *w, struct result *res);
void warnings_free(struct warnings *w);

#endif
