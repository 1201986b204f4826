/* SPDX-License-Identifier: MIT */
#include "warnings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/result/result.h"

void warnings_add(struct warnings *w, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->line[i], line))
			return;
	log_warn("%s", line);
	w->line = reallocarray(w->line, w->n + 1, sizeof(*w->line));
	if (!w->line)
		abort();
	w->line[w->n++] = text_dup(line);
}

void warnings_tell(const struct warnings *w, struct result *res)
{
	for (size_t i = 0; i < w->n; i++)
		result_warn(res, "%s", w->line[i]);
}

void warnings_free(struct warnings *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->line[i]);
	free(w->line);
}
