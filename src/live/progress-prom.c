/* SPDX-License-Identifier: MIT */
/* prom:URL#METRIC{labels}, by fetch.h; the text format is parsed line by line. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fetch.h"
#include "progress-priv.h"

struct prom {
	struct fetch *fetch;
	char *url, *metric, *labels;
	const char *body; /* the fetch's */
};

/* ---- the text format ---- */

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == ':';
}

/* The value of a label in `a="b",c="d"`, still escaped; false: there is no label of that name. */
static bool label_value(const char *labels, const char *end, const char *name, size_t name_len,
			const char **value, size_t *len)
{
	while (labels < end) {
		const char *key = labels;

		while (labels < end && name_char(*labels))
			labels++;
		if (labels + 1 >= end || labels[0] != '=' || labels[1] != '"')
			return false;
		*value = labels + 2;
		for (labels += 2; labels < end && *labels != '"'; labels++)
			if (*labels == '\\')
				labels++;
		*len = (size_t)(labels - *value);
		if ((size_t)(*value - 2 - key) == name_len && !strncmp(key, name, name_len))
			return true;
		while (labels < end && (*labels == '"' || *labels == ',' || *labels == ' '))
			labels++;
	}
	return false;
}

/* Does it have every wanted label with the wanted value? */
static bool labels_fit(const char *have, const char *end, const char *want)
{
	while (*want) {
		size_t name = 0, len, have_len;
		const char *value, *have_value;

		while (*want == ',' || *want == ' ')
			want++;
		while (name_char(want[name]))
			name++;
		if (!name)
			return !*want;
		if (!label_value(want, want + strlen(want), want, name, &value, &len) ||
		    !label_value(have, end, want, name, &have_value, &have_len) ||
		    have_len != len || strncmp(have_value, value, len))
			return false;
		want = value + len + 1;
	}
	return true;
}

/* A line of the metric with these labels. */
struct sample {
	const char *labels, *end; /* of the line */
	double value;
};

/* Of the line, which begins with the metric's name of that length; false: it is no such sample. */
static bool read_sample(const char *line, size_t len, const char *labels, struct sample *s)
{
	const char *at = line + len;
	char *end;

	s->labels = s->end = "";
	if (*at == '{') {
		s->labels = at + 1;
		for (at++; *at && *at != '}' && *at != '\n'; at++)
			if (*at == '"')
				for (at++; *at && *at != '"' && *at != '\n'; at++)
					at += *at == '\\' && at[1];
		if (*at != '}')
			return false;
		s->end = at++;
	}
	if (!labels_fit(s->labels, s->end, labels))
		return false;
	s->value = strtod(at, &end);
	return end != at && isfinite(s->value);
}

/* From *line on; *line is then behind it. */
static bool next_sample(const char **line, const char *metric, const char *labels, struct sample *s)
{
	size_t len = strlen(metric);

	while (*line && **line) {
		const char *at = *line + (**line == '\n');

		*line = strchr(at, '\n');
		if (!strncmp(at, metric, len) && !name_char(at[len]) &&
		    read_sample(at, len, labels, s))
			return true;
	}
	return false;
}

bool progress_prom_sum(const char *body, const char *metric, const char *labels, double *sum)
{
	bool found = false;
	struct sample s;

	*sum = 0;
	while (next_sample(&body, metric, labels, &s)) {
		*sum += s.value;
		found = true;
	}
	return found;
}

static bool sum_with(const char *body, const char *metric, const char *suffix, const char *labels,
		     double *sum)
{
	char name[512];

	snprintf(name, sizeof(name), "%s%s", metric, suffix);
	return progress_prom_sum(body, name, labels, sum);
}

/* A summary has series of its own name, too: its quantiles. */
bool progress_prom_count(const char *body, const char *metric, const char *labels, double *count)
{
	if (sum_with(body, metric, "_sum", labels, count) &&
	    sum_with(body, metric, "_count", labels, count))
		return true;
	return sum_with(body, metric, "", labels, count) ||
	       sum_with(body, metric, "_count", labels, count) ||
	       sum_with(body, metric, "_total", labels, count);
}

static bool bound_of(const struct sample *s, double *le)
{
	const char *value;
	size_t len;
	char *end;

	if (!label_value(s->labels, s->end, "le", 2, &value, &len))
		return false;
	*le = strtod(value, &end);
	return end == value + len && !isnan(*le);
}

static int by_bound(const void *a, const void *b)
{
	const struct progress_bucket *x = a, *y = b;

	return (x->le > y->le) - (x->le < y->le);
}

void progress_prom_buckets(const char *body, const char *metric, const char *labels,
			   struct progress_value *value)
{
	struct progress_bucket *bucket = value->bucket;
	struct sample s;
	char name[512];
	size_t i;
	double le;

	value->n_buckets = 0;
	snprintf(name, sizeof(name), "%s_bucket", metric);
	while (next_sample(&body, name, labels, &s)) {
		if (!bound_of(&s, &le))
			continue;
		for (i = 0; i < value->n_buckets && bucket[i].le != le; i++)
			;
		if (i == PROGRESS_BUCKETS) {
			value->n_buckets = 0;
			return;
		}
		if (i == value->n_buckets)
			bucket[value->n_buckets++] = (struct progress_bucket){ le, 0 };
		bucket[i].count += s.value;
	}
	if (value->n_buckets)
		qsort(bucket, value->n_buckets, sizeof(*bucket), by_bound);
}

/* ---- the source ---- */

static char *cut(const char *from, size_t len)
{
	char *copy = strndup(from, len);

	if (!copy)
		abort();
	return copy;
}

static int prom_open(struct progress *p, struct sb_err *err)
{
	/* The first one: a label's value may contain another. */
	const char *hash = strchr(p->rest, '#'), *brace = hash ? strchr(hash, '{') : NULL;
	size_t metric = hash ? strcspn(hash + 1, "{") : 0;
	struct prom *prom;

	if (!metric || hash == p->rest || (brace && brace[strlen(brace) - 1] != '}')) {
		err_set(err, SB_EUSAGE, "'%s' names no metric", p->text);
		err_hint(err, "prom:http://127.0.0.1:8000/metrics#vllm:generation_tokens_total, "
			      "with {label=\"value\"} behind it to choose; sbinject find looks "
			      "for one on the page");
		return -SB_EUSAGE;
	}
	prom = p->own = calloc(1, sizeof(*prom));
	if (!prom)
		abort();
	prom->url = cut(p->rest, (size_t)(hash - p->rest));
	prom->metric = cut(hash + 1, metric);
	prom->labels = brace ? cut(brace + 1, strlen(brace) - 2) : cut("", 0);
	prom->fetch = fetch_open(prom->url, err);
	return prom->fetch ? 0 : -(int)err->code;
}

static int prom_read(struct progress *p, struct progress_value *value, struct sb_err *err)
{
	struct prom *prom = p->own;

	if (fetch_page(prom->fetch, &prom->body, err) < 0)
		return -SB_EFILE;
	if (p->response) {
		progress_prom_buckets(prom->body, prom->metric, prom->labels, value);
		if (sum_with(prom->body, prom->metric, "_sum", prom->labels, &value->sum) &&
		    sum_with(prom->body, prom->metric, "_count", prom->labels, &value->count))
			return 0;
		return err_set(err, SB_EFILE,
			       "response: %s has no histogram or summary '%s' with these labels",
			       prom->url, prom->metric);
	}
	if (progress_prom_count(prom->body, prom->metric, prom->labels, &value->count))
		return 0;
	return err_set(err, SB_EFILE, "progress: %s has no metric '%s' with these labels",
		       prom->url, prom->metric);
}

static void prom_close(struct progress *p)
{
	struct prom *prom = p->own;

	if (!prom)
		return;
	fetch_close(prom->fetch);
	free(prom->url);
	free(prom->metric);
	free(prom->labels);
	free(prom);
}

const struct progress_ops progress_prom = { prom_open, prom_read, prom_close, 50000000 };
