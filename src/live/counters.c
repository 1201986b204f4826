/* SPDX-License-Identifier: MIT */
#include "counters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "fetch.h"
#include "progress.h"
#include "src/base/must.h"

/* Each read looks for each counter in the whole text: of a longer one fewer are looked for. */
#define LOOKED_THROUGH (64u << 20)

static const char prefix[] = "prom:";

bool counters_is_page(const char *source)
{
	return progress_kind_of(source) == PROGRESS_PROM && !strchr(source, '#');
}

/* ---- the text ---- */

static bool ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), n = strlen(end);

	return len >= n && !strcmp(name + len - n, end);
}

static bool is_work(const char *name, bool events)
{
	static const char *const own[] = { "process_", "python_", "go_", "promhttp_", "jvm_" };
	static const char *const no_items[] = { "_seconds", "_seconds_total", "_bytes",
						"_bytes_total", "_created" };

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strncmp(name, own[i], strlen(own[i])))
			return false;
	for (size_t i = 0; i < sizeof(no_items) / sizeof(*no_items) && !events; i++)
		if (ends_with(name, no_items[i]))
			return false;
	return true;
}

/* "# TYPE name counter"; the line ends at a line end or the text's. */
static bool read_type(const char *line, char **name, bool *events)
{
	static const char begin[] = "# TYPE ";
	const char *from = line + sizeof(begin) - 1, *type;
	size_t len, type_len;

	if (strncmp(line, begin, sizeof(begin) - 1) != 0)
		return false;
	len = strcspn(from, " \n");
	if (!len || from[len] != ' ')
		return false;
	type = from + len + 1;
	type_len = strcspn(type, " \r\n");
	*events = (type_len == 9 && !strncmp(type, "histogram", 9)) ||
		  (type_len == 7 && !strncmp(type, "summary", 7));
	if (!*events && (type_len != 7 || strncmp(type, "counter", 7) != 0))
		return false;
	*name = must(strndup(from, len));
	return true;
}

static bool is_listed(const struct counter *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			return true;
	return false;
}

struct counter *counters_list(const char *body, size_t *n)
{
	size_t most = LOOKED_THROUGH / (strlen(body) + 1);
	struct counter *list = must_calloc(COUNTERS_MOST, sizeof(*list));
	const char *next;

	*n = 0;
	most = most < COUNTERS_MOST ? most : COUNTERS_MOST;
	for (const char *line = body; *n < most; line = next + 1) {
		struct counter *c = &list[*n];

		next = strchr(line, '\n');
		if (read_type(line, &c->name, &c->events)) {
			if (is_work(c->name, c->events) && !is_listed(list, *n, c->name) &&
			    progress_prom_count(body, c->name, "", &c->value))
				(*n)++;
			else
				free(c->name);
		}
		if (!next)
			break;
	}
	return list;
}

/* ---- the page ---- */

struct counters *counters_open(const char *source, struct sb_err *err)
{
	struct counters *c = must_calloc(1, sizeof(*c));
	const char *body;

	c->url = must_strdup(source + sizeof(prefix) - 1);
	c->fetch = fetch_open(c->url, err);
	if (c->fetch && fetch_page(c->fetch, &body, err) == 0)
		c->counter = counters_list(body, &c->n);
	if (c->n)
		return c;
	if (!err->code) {
		err_set(err, SB_EFILE, "progress: %s shows no counter in Prometheus's text format",
			c->url);
		err_hint(err, "prom:http://127.0.0.1:8000/metrics is what such a page's address is "
			      "like");
	}
	counters_close(c);
	return NULL;
}

void counters_close(struct counters *c)
{
	if (!c)
		return;
	fetch_close(c->fetch);
	for (size_t i = 0; i < c->n; i++)
		free(c->counter[i].name);
	free(c->counter);
	free(c->url);
	free(c);
}

int counters_read(struct counters *c, struct sb_err *err)
{
	const char *body;
	int ret = fetch_page(c->fetch, &body, err);

	for (size_t i = 0; i < c->n && ret == 0; i++)
		if (!progress_prom_count(body, c->counter[i].name, "", &c->counter[i].value))
			c->counter[i].value = NAN;
	return ret;
}
