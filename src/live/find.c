/* SPDX-License-Identifier: MIT */
/* `sbinject find`: a session that counts the candidates, read slice by slice. */
#include "find.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "find-choose.h"
#include "inject/clock.h"
#include "later.h"
#include "read.h"
#include "src/base/must.h"

enum { PUMP_MS = 20 };
#define COUNT_MOST 9e15 /* a page may hold any number */

static struct find_rates *rates_of(const struct explain_result *res, struct spec_list *list)
{
	struct find_rates *rates = must_calloc(1, sizeof(*rates));

	rates->point = rates->counter_point = rates->response_point = rates->unhooked = FIND_NONE;
	rates->rate = must_calloc(res->n_candidates, sizeof(*rates->rate));
	for (size_t i = 0; i < res->n_candidates; i++) {
		const struct explain_candidate *c = &res->candidate[i];
		char *words[2] = { c->target, (char[]){ "0" } };
		struct sb_err err = { 0 };

		if (!c->hookable || spec_parse_words(words, 2, list, &err) < 0)
			continue;
		rates->rate[rates->n++] = (struct find_rate){ .target = must_strdup(c->target),
							      .share = c->share.est,
							      .multiple_of = FIND_NONE };
	}
	return rates;
}

static void name_counters(struct find_rates *rates, const struct counters *page)
{
	rates->counter = must_calloc(page->n, sizeof(*rates->counter));
	rates->n_counters = page->n;
	for (size_t i = 0; i < page->n; i++) {
		struct find_rate *r = &rates->counter[i];

		if (asprintf(&r->target, "prom:%s#%s", page->url, page->counter[i].name) < 0)
			abort();
		r->share = NAN;
		r->multiple_of = FIND_NONE;
		r->events = page->counter[i].events;
	}
}

/* What each counter has grown by since it was `was`, which becomes what it is now. */
static int read_counters(struct find_rates *rates, struct counters *page, size_t slice, double *was,
			 struct sb_err *err)
{
	int ret = page ? counters_read(page, err) : 0;

	for (size_t i = 0; page && i < page->n && ret == 0; i++) {
		double is = page->counter[i].value, more = is - was[i];

		if (slice < FIND_SLICES)
			rates->counter[i].hits[slice] = more > 0 && more < COUNT_MOST ?
								(uint64_t)llround(more) :
								0;
		was[i] = is;
	}
	return ret;
}

/* False: the user, or the end of the target, has ended it. */
static bool wait_until(struct client *client, uint64_t until)
{
	while (clock_ns() < until)
		if (!client_pump(client, PUMP_MS) || client_interrupted(client))
			return false;
	return true;
}

/* Those that run now: where processes follow one another, at most instants there is one. */
static void look_for_later(struct find_rates *rates, struct later *later,
			   const struct session_config *cfg)
{
	if (rates->unhooked == FIND_NONE)
		return;
	later->unhooked = 0;
	later_count(later, cfg);
	if ((int)later->unhooked > rates->unhooked)
		rates->unhooked = (int)later->unhooked;
}

/* What is read at each edge. */
struct edges {
	struct sweep_reader *reader;
	struct counters *page; /* NULL: none */
	struct sweep_reading last;
	double *counted; /* by the page */
	uint64_t at_ns;
};

/* slice: that ends here; FIND_SLICES: none. */
static int edge(struct edges *e, struct find_rates *rates, size_t slice, struct sb_err *err)
{
	struct sweep_reading now = { 0 };
	uint64_t at = clock_ns();
	int ret = sweep_reading_take(e->reader, &now, err);

	if (ret == 0 && slice < FIND_SLICES) {
		for (size_t i = 0; i < rates->n; i++)
			rates->rate[i].hits[slice] = now.hits[i] - e->last.hits[i];
		rates->slice_s[slice] = (double)(at - e->at_ns) / 1e9;
	}
	sweep_reading_free(&e->last);
	e->last = now;
	e->at_ns = at;
	if (ret == 0)
		ret = read_counters(rates, e->page, slice, e->counted, err);
	if (ret == 0 && slice < FIND_SLICES)
		rates->slices = slice + 1;
	return ret;
}

static void count(struct find_rates *rates, struct edges *e, struct client *client,
		  const struct session_config *cfg, uint64_t time_ns, struct later *later,
		  struct sb_err *err)
{
	int ret = edge(e, rates, FIND_SLICES, err);
	uint64_t start = e->at_ns;

	for (size_t s = 0; s < FIND_SLICES && ret == 0; s++) {
		if (!wait_until(client, start + time_ns / FIND_SLICES * (s + 1)))
			break;
		ret = edge(e, rates, s, err);
		look_for_later(rates, later, cfg);
	}
	sweep_reading_free(&e->last);
}

struct find_rates *find_count(struct sweep_job *job, const struct explain_result *res,
			      struct counters *page, uint64_t time_ns, struct sb_err *err)
{
	struct session_config *cfg = &job->opt->session;
	struct find_rates *rates = rates_of(res, &cfg->targets);
	struct edges edges = { .page = page };
	struct client *client = NULL;
	struct later later = { 0 };

	/* A breakpoint needs a tracer. */
	cfg->follow = job->opt->follow || cfg->mechanism == MECHANISM_INT3;
	if (!cfg->follow && job->backend == &backend_inject) {
		rates->unhooked = 0;
		later_open(&later, cfg);
	}
	if (page) {
		name_counters(rates, page);
		edges.counted = must_calloc(page->n, sizeof(*edges.counted));
	}
	if (rates->n)
		client = client_open(job->opt, job->backend, false, &job->outcome);
	if (client) {
		job->progress_index = DRIVE_NONE;
		edges.reader = sweep_reader_new(job, client, rates->n);
		count(rates, &edges, client, cfg, time_ns, &later, err);
		client_detach(client);
		rates->ended = rates->slices < FIND_SLICES || client_interrupted(client);
		sweep_reader_free(edges.reader);
		client_close(client);
	} else if (rates->n) {
		*err = job->outcome.error;
	}
	free(edges.counted);
	later_close(&later);
	result_free(job->outcome.result);
	job->outcome = (struct client_outcome){ 0 };
	spec_list_cut(&cfg->targets, 0);
	find_choose(rates);
	if (rates->n && !err->code)
		return rates;
	find_rates_free(rates);
	return NULL;
}
