/* SPDX-License-Identifier: MIT */
/*
 * The second page of the live table: what the machine did with the session's threads since the look
 * before. A time is a share: of one thread's time, so three threads that sleep make 300 %.
 */
#include <stdlib.h>
#include <string.h>
#include "watch-evidence.h"

struct counter {
	char *name;
	double value, rate; /* a second; < 0: not known, or read once only */
};

struct evidence_page {
	struct counter *counter;
	size_t n;
	double t_ns;
	char *why; /* NULL: it could be read */
};

struct evidence_page *evidence_page_new(void)
{
	struct evidence_page *page = calloc(1, sizeof(*page));

	if (!page)
		abort();
	return page;
}

void evidence_page_free(struct evidence_page *page)
{
	for (size_t i = 0; i < page->n; i++)
		free(page->counter[i].name);
	free(page->counter);
	free(page->why);
	free(page);
}

static struct counter *counter_of(struct evidence_page *page, const char *name)
{
	struct counter *c;

	for (size_t i = 0; i < page->n; i++)
		if (!strcmp(page->counter[i].name, name))
			return &page->counter[i];
	page->counter = realloc(page->counter, (page->n + 1) * sizeof(*page->counter));
	if (!page->counter)
		abort();
	c = &page->counter[page->n++];
	*c = (struct counter){ .name = strdup(name), .value = -1, .rate = -1 };
	if (!c->name)
		abort();
	return c;
}

static void take(struct counter *c, const json_t *value, double dt_s)
{
	double now = json_is_integer(value) ? (double)json_integer_value(value) : -1;

	c->rate = dt_s > 0 && now >= c->value && c->value >= 0 ? (now - c->value) / dt_s : -1;
	c->value = now;
}

/* What is counted for no thread, by the name of its object and its own; without the reasons of what
 * is not known. */
static void take_rows(struct evidence_page *page, const char *object, json_t *rows, double dt_s)
{
	const char *name;
	json_t *value;
	char full[64];

	json_object_foreach(rows, name, value)
	{
		snprintf(full, sizeof(full), "%s_%s", object, name);
		if (json_is_integer(value) || json_is_null(value))
			take(counter_of(page, full), value, dt_s);
	}
}

void evidence_page_look(struct evidence_page *page, struct ctl_peer *peer)
{
	struct sb_err err = { 0 };
	char error[16];
	json_t *answer = ctl_ask(peer, json_pack("{s:s}", "op", "evidence"), &err, error), *value;
	double now, dt_s;
	const char *name;

	free(page->why);
	page->why = NULL;
	if (!answer) {
		if (asprintf(&page->why, "%s%s%s", err.what, *err.hint ? ": " : "", err.hint) < 0)
			abort();
		return;
	}
	now = (double)json_integer_value(json_object_get(answer, "t_ns"));
	dt_s = page->t_ns > 0 ? (now - page->t_ns) / 1e9 : 0;
	json_object_foreach(json_object_get(answer, "counters"), name, value)
		take(counter_of(page, name), value, dt_s);
	take_rows(page, "machine", json_object_get(answer, "machine"), dt_s);
	take_rows(page, "cgroup", json_object_get(answer, "cgroup"), dt_s);
	page->t_ns = now;
	json_decref(answer);
}

static bool is_time(const char *name)
{
	size_t len = strlen(name);

	return len > 3 && !strcmp(name + len - 3, "_ns");
}

/* As of now, and no sum. */
static bool is_gauge(const char *name)
{
	size_t len = strlen(name);

	return (len > 14 && !strcmp(name + len - 14, "_current_bytes")) ||
	       (len > 3 && !strcmp(name + len - 3, "_hz"));
}

void evidence_page_write(const struct evidence_page *page, FILE *to)
{
	fprintf(to, "%-34s %14s\n", "evidence", "now");
	if (page->why)
		fprintf(to, "%s\n", page->why);
	for (size_t i = 0; i < page->n && !page->why; i++) {
		const struct counter *c = &page->counter[i];
		bool time = is_time(c->name);
		int len = (int)strlen(c->name) - (time ? 3 : 0);

		if (is_gauge(c->name) && c->value >= 0)
			fprintf(to, "%-34s %12.0f\n", c->name, c->value);
		else if (c->rate < 0)
			fprintf(to, "%-34.*s %14s\n", len, c->name, "-");
		else if (time)
			fprintf(to, "%-34.*s %12.1f %%\n", len, c->name, c->rate / 1e7);
		else
			fprintf(to, "%-34s %12.0f/s\n", c->name, c->rate);
	}
}
