/* SPDX-License-Identifier: MIT */
/* `sbinject find`: a session that counts the candidates, read slice by slice. */
#include "find.h"

#include <stdlib.h>
#include "find-choose.h"
#include "inject/clock.h"
#include "later.h"
#include "read.h"
#include "src/base/must.h"

enum { PUMP_MS = 20 };

static struct find_rates *rates_of(const struct explain_result *res, struct spec_list *list)
{
	struct find_rates *rates = must_calloc(1, sizeof(*rates));

	rates->point = rates->unhooked = FIND_NONE;
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

static int count(struct find_rates *rates, struct sweep_reader *reader, struct client *client,
		 const struct session_config *cfg, uint64_t time_ns, struct later *later,
		 struct sb_err *err)
{
	struct sweep_reading a = { 0 }, b = { 0 };
	uint64_t start = clock_ns(), was = start, is;
	int ret = sweep_reading_take(reader, &a, err);

	for (size_t s = 0; s < FIND_SLICES && ret == 0; s++) {
		if (!wait_until(client, start + time_ns / FIND_SLICES * (s + 1)))
			break;
		is = clock_ns();
		ret = sweep_reading_take(reader, &b, err);
		for (size_t i = 0; i < rates->n && ret == 0; i++)
			rates->rate[i].hits[s] = b.hits[i] - a.hits[i];
		if (ret == 0) {
			rates->slice_s[s] = (double)(is - was) / 1e9;
			rates->slices = s + 1;
		}
		was = is;
		look_for_later(rates, later, cfg);
		sweep_reading_free(&a);
		a = b;
		b = (struct sweep_reading){ 0 };
	}
	sweep_reading_free(&a);
	return ret;
}

struct find_rates *find_count(struct sweep_job *job, const struct explain_result *res,
			      uint64_t time_ns, struct sb_err *err)
{
	struct session_config *cfg = &job->opt->session;
	struct find_rates *rates = rates_of(res, &cfg->targets);
	struct sweep_reader *reader;
	struct client *client = NULL;
	struct later later = { 0 };

	/* A breakpoint needs a tracer. */
	cfg->follow = job->opt->follow || cfg->mechanism == MECHANISM_INT3;
	if (!cfg->follow && job->backend == &backend_inject) {
		rates->unhooked = 0;
		later_open(&later, cfg);
	}
	if (rates->n)
		client = client_open(job->opt, job->backend, false, &job->outcome);
	if (client) {
		job->progress_index = DRIVE_NONE;
		reader = sweep_reader_new(job, client, rates->n);
		count(rates, reader, client, cfg, time_ns, &later, err);
		client_detach(client);
		rates->ended = rates->slices < FIND_SLICES || client_interrupted(client);
		sweep_reader_free(reader);
		client_close(client);
	} else if (rates->n) {
		*err = job->outcome.error;
	}
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
