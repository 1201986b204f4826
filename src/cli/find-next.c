/* SPDX-License-Identifier: MIT */
#include "find-next.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"
#include "src/live/candidates-infer.h"

/* Half-widths of kappa: one is called wide, and the other is what more time is to bring. */
#define WIDE 0.25
#define GOAL 0.2
#define MORE 2.0 /* times the time, where it is not known how much is enough */

enum { KEY_SIZE = 136 };

/* Options with a value that decide a target, and what they bring. */
static const struct {
	const char *option, *why;
} deciding[] = {
	{ "every", "each Nth call is delayed" },
	{ "--doses", "doses that tell a part of each delay from a slack" },
	{ "--guard", "windows that begin when the delay is felt" },
};
enum { DECIDING = sizeof(deciding) / sizeof(deciding[0]) };

/* How several targets are swept again together. */
enum way { LONGER, SELF_CHECK, RESPONSE, WAYS };

/* What a target's document says would decide it. */
struct remedy {
	const char *option; /* "": none */
	const char *value;  /* "": none */
	const char *why;    /* NULL: no option that decides it by itself */
	bool longer;
};

char *find_join(char *const *word)
{
	char *text = must_strdup("sbinject");

	for (; *word; word++) {
		char *quoted = candidates_word(*word), *more;

		if (asprintf(&more, "%s %s", text, quoted) < 0)
			abort();
		free(quoted);
		free(text);
		text = more;
	}
	return text;
}

void find_next_add(struct out_find *out, const char *why, char *command)
{
	if (out->n_next == FIND_NEXT_MOST) {
		free(command);
		return;
	}
	out->next[out->n_next++] = (struct out_find_next){ why, command };
}

void find_next_free(struct out_find *out)
{
	for (size_t i = 0; i < out->n_next; i++)
		free(out->next[i].command);
	out->n_next = 0;
}

static double real_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

static double half_of(const json_t *t)
{
	const json_t *ci = json_object_get(t, "kappa_ci");
	const json_t *lo = json_array_get(ci, 0), *hi = json_array_get(ci, 1);

	return json_is_number(lo) && json_is_number(hi) ?
		       (json_number_value(hi) - json_number_value(lo)) / 2 :
		       NAN;
}

static bool is_open(const json_t *t)
{
	return !strcmp(text_of(t, "verdict"), "INCONCLUSIVE");
}

static bool is_wide(const json_t *t)
{
	const char *v = text_of(t, "verdict");

	return strcmp(v, "INVALID") != 0 && half_of(t) > WIDE;
}

static struct remedy remedy_of(const json_t *t)
{
	const json_t *from = json_object_get(t, "remedy");
	struct remedy r = { text_of(from, "option"), text_of(from, "value"), NULL,
			    json_is_true(json_object_get(from, "longer")) };

	for (int i = 0; i < DECIDING && *r.value; i++)
		if (!strcmp(r.option, deciding[i].option))
			r.why = deciding[i].why;
	return r;
}

static bool is_check(const struct remedy *r)
{
	return !strcmp(r->option, "--self-check");
}

/* Only the user knows which number of lanes is right, or whether requests have a rate of their own.
 */
static bool needs_the_user(const struct find_next_about *about, const struct remedy *r)
{
	return !strcmp(r->option, "--lane") ||
	       (is_check(r) && !about->is_target && !about->response);
}

/* Where requests may have a rate of their own, how long responses take tells more than whether. */
static enum way way_of(const struct find_next_about *about, const struct remedy *r)
{
	if (!is_check(r))
		return LONGER;
	return about->response ? RESPONSE : SELF_CHECK;
}

/* The words of the sweep with those targets alone that `keep` has, another --time, and `extra`. */
static char *command_of(const struct find_next_about *about, const bool *keep, const char *every,
			double time_s, char *const extra[3])
{
	char *word[64], time[32], key[KEY_SIZE];
	size_t n = 0, target = 0;
	char **from = about->word;
	bool kept = false;

	snprintf(time, sizeof(time), "%.0fs", ceil(time_s));
	snprintf(key, sizeof(key), "every=%s", every ? every : "");
	word[n++] = *from++;
	for (; *from && strncmp(*from, "--", 2) != 0; from++) {
		if (strncmp(*from, "every=", 6) != 0)
			kept = keep[target++];
		else if (every)
			continue;
		if (kept)
			word[n++] = *from;
		if (kept && every && strncmp(*from, "every=", 6) != 0)
			word[n++] = key;
	}
	for (int i = 0; i < 3 && extra && extra[i]; i++)
		word[n++] = extra[i];
	for (; *from && n < 60; from++) {
		word[n++] = *from;
		if (!strcmp(*from, "--time") && from[1]) {
			word[n++] = time;
			from++;
		}
	}
	word[n] = NULL;
	return find_join(word);
}

/* One target by itself, with the option that decides it. */
static void add_remedy(const struct find_next_about *about, struct out_find *out, size_t i,
		       const struct remedy *r)
{
	bool keep[FIND_SWEPT_MOST] = { false }, is_key = strncmp(r->option, "--", 2) != 0;
	char *extra[3] = { (char *)(uintptr_t)r->option, (char *)(uintptr_t)r->value, NULL };

	keep[i] = true;
	find_next_add(out, r->why,
		      command_of(about, keep, is_key ? r->value : NULL,
				 r->longer ? MORE * about->time_s : about->time_s,
				 is_key ? NULL : extra));
}

/* How long another sweep takes for this target, by the noise of this one; NAN: not known. */
static double enough_for(const struct find_next_about *about, const json_t *doc, const json_t *t)
{
	double half = half_of(t);

	if (is_open(t))
		return real_of(doc, "time_needed_s");
	return about->time_s * (half / GOAL) * (half / GOAL);
}

static const char *why_again(enum way way, bool early)
{
	if (way == RESPONSE)
		return "how much longer responses take, if the load has a rate of its own";
	if (way == SELF_CHECK)
		return "whether the load has a rate of its own";
	return early ? FIND_NEXT_WHOLE : "more time, for what is not decided or not sharp";
}

static void add_again(const struct find_next_about *about, struct out_find *out, const json_t *doc,
		      const bool *keep, enum way way)
{
	bool early = json_is_true(json_object_get(doc, "ended_early"));
	const json_t *targets = json_object_get(doc, "targets");
	const char *option[WAYS] = { NULL, "--self-check", "--response" };
	char *extra[3] = { (char *)(uintptr_t)option[way],
			   way == RESPONSE ? (char *)(uintptr_t)about->response : NULL, NULL };
	double time_s = 0;

	for (size_t i = 0; i < json_array_size(targets); i++)
		if (keep[i])
			time_s = fmax(time_s, enough_for(about, doc, json_array_get(targets, i)));
	if (early)
		time_s = about->time_s;
	else if (!(time_s > about->time_s))
		time_s = MORE * about->time_s;
	find_next_add(out, why_again(way, early), command_of(about, keep, NULL, time_s, extra));
}

void find_next(const struct find_next_about *about, struct out_find *out)
{
	json_t *doc = about->document ? json_loads(about->document, 0, NULL) : NULL;
	const json_t *targets = json_object_get(doc, "targets"), *t;
	bool keep[WAYS][FIND_SWEPT_MOST] = { { false } }, any[WAYS] = { false };
	size_t i;

	json_array_foreach((json_t *)targets, i, t)
	{
		struct remedy r = remedy_of(t);

		if (i >= FIND_SWEPT_MOST || !(is_open(t) || is_wide(t)) ||
		    needs_the_user(about, &r))
			continue;
		if (r.why)
			add_remedy(about, out, i, &r);
		else
			any[way_of(about, &r)] = keep[way_of(about, &r)][i] = true;
	}
	for (int way = 0; way < WAYS; way++)
		if (any[way])
			add_again(about, out, doc, keep[way], (enum way)way);
	json_decref(doc);
}

bool find_ended_early(const char *document)
{
	json_t *doc = document ? json_loads(document, 0, NULL) : NULL;
	bool early = json_is_true(json_object_get(doc, "ended_early"));

	json_decref(doc);
	return early;
}
