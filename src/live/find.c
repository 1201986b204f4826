/* SPDX-License-Identifier: MIT */
/* `sbinject find`: a session that counts the candidates, read slice by slice. */
#include "find.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "find-choose.h"
#include "inject/clock.h"
#include "later.h"
#include "read.h"
#include "src/base/must.h"

enum { PUMP_MS = 20, FIRST_LOOK_MS = 100 };
#define COUNT_MOST 9e15 /* a page may hold any number */

/* If it can be hooked, and is not there already. */
static void add_rate(struct find_rates *rates, const struct explain_candidate *c,
		     struct spec_list *list)
{
	char *words[2] = { c->target, (char[]){ "0" } };
	struct sb_err err = { 0 };

	for (size_t i = 0; i < rates->n; i++)
		if (!strcmp(rates->rate[i].target, c->target))
			return;
	if (!c->hookable || spec_parse_words(words, 2, list, &err) < 0)
		return;
	rates->rate[rates->n++] = (struct find_rate){ .target = must_strdup(c->target),
						      .share = c->share.est,
						      .multiple_of = FIND_NONE };
}

static struct find_rates *rates_of(const struct explain_result *res, struct spec_list *list)
{
	struct find_rates *rates = must_calloc(1, sizeof(*rates));

	rates->point = rates->counter_point = rates->response_point = rates->unhooked = FIND_NONE;
	rates->rate = must_calloc(res->n_candidates + res->n_waits, sizeof(*rates->rate));
	for (size_t i = 0; i < res->n_candidates; i++)
		add_rate(rates, &res->candidate[i], list);
	for (size_t i = 0, n = rates->n; i < res->n_waits; i++) {
		add_rate(rates, &res->wait[i], list);
		if (rates->n > n)
			rates->rate[rates->n - 1].waits = true;
		n = rates->n;
	}
	spec_list_cut(list, 0);
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

/* How many of the rates are hooked: those that are left out come last. */
static size_t hooked(const struct find_rates *rates)
{
	size_t n = 0;

	while (n < rates->n && !rates->rate[n].left_out)
		n++;
	return n;
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
		for (size_t i = 0, n = hooked(rates); i < n; i++)
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

/* Puts those that are left out behind the others; both keep their order. */
static void put_last(struct find_rates *rates)
{
	struct find_rate *sorted = must_calloc(rates->n, sizeof(*sorted));
	size_t n = 0;

	for (int out = 0; out < 2; out++)
		for (size_t i = 0; i < rates->n; i++)
			if (rates->rate[i].left_out == out)
				sorted[n++] = rates->rate[i];
	free(rates->rate);
	rates->rate = sorted;
}

/* False: the user, or the end of the target, has ended it, or there is an error. */
static bool look_first(struct find_rates *rates, struct edges *e, struct client *client,
		       struct sb_err *err)
{
	struct sweep_reading now = { 0 };
	double s;

	if (edge(e, rates, FIND_SLICES, err) < 0 ||
	    !wait_until(client, e->at_ns + FIRST_LOOK_MS * 1000000ull) ||
	    sweep_reading_take(e->reader, &now, err) < 0)
		return false;
	s = (double)(clock_ns() - e->at_ns) / 1e9;
	for (size_t i = 0, n = hooked(rates); i < n; i++) {
		struct find_rate *r = &rates->rate[i];

		r->calls = now.hits[i] - e->last.hits[i];
		r->per_s = (double)r->calls / s;
		r->cost = find_hook_cost(r->per_s);
		r->scatter = NAN;
		r->left_out = r->cost > FIND_COST_MOST;
	}
	sweep_reading_free(&now);
	put_last(rates);
	return true;
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
}

/* True: again, since a hook of some is left out; these would change what the others are called. */
static bool count_hooked(struct sweep_job *job, struct find_rates *rates, struct edges *e,
			 uint64_t time_ns, struct later *later, struct sb_err *err)
{
	struct session_config *cfg = &job->opt->session;
	struct client *client;
	size_t n = hooked(rates);
	bool goes_on, again = false;

	for (size_t i = 0; i < n; i++)
		spec_parse_words((char *[]){ rates->rate[i].target, (char[]){ "0" } }, 2,
				 &cfg->targets, err);
	client = client_open(job->opt, job->backend, false, &job->outcome);
	if (!client) {
		*err = job->outcome.error;
		return false;
	}
	job->progress_index = DRIVE_NONE;
	e->reader = sweep_reader_new(job, client, n);
	goes_on = look_first(rates, e, client, err);
	again = goes_on && hooked(rates) < n;
	if (goes_on && !again)
		count(rates, e, client, cfg, time_ns, later, err);
	client_detach(client);
	rates->ended = (!again && rates->slices < FIND_SLICES) || client_interrupted(client);
	sweep_reading_free(&e->last);
	e->last = (struct sweep_reading){ 0 };
	sweep_reader_free(e->reader);
	client_close(client);
	result_free(job->outcome.result);
	job->outcome = (struct client_outcome){ 0 };
	spec_list_cut(&cfg->targets, 0);
	return again && !rates->ended;
}

struct find_rates *find_count(struct sweep_job *job, const struct explain_result *res,
			      struct counters *page, uint64_t time_ns, struct sb_err *err)
{
	struct session_config *cfg = &job->opt->session;
	struct find_rates *rates = rates_of(res, &cfg->targets);
	struct edges edges = { .page = page };
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
	while (hooked(rates) && count_hooked(job, rates, &edges, time_ns, &later, err))
		;
	free(edges.counted);
	later_close(&later);
	find_choose(rates);
	if (rates->n && !err->code)
		return rates;
	find_rates_free(rates);
	return NULL;
}
