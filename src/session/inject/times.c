/* SPDX-License-Identifier: MIT */
/* How long calls took: from ticks by process to nanoseconds of a target. */
#include <stdlib.h>
#include "priv.h"
#include "src/base/must.h"

static uint64_t ns(const struct inject_session *s, double ticks)
{
	return (uint64_t)(clock_to_ns(&s->clk, ticks) + 0.5);
}

/* Of living and ended processes. The caller frees. */
static struct page_spans *spans_of(const struct inject_session *s, size_t target)
{
	struct page_spans *spans = must_calloc(1, sizeof(*spans));

	if (s->own[target].past_spans)
		*spans = *s->own[target].past_spans;
	for (const struct record *rec = s->records; rec; rec = rec->next)
		if (!rec->ended)
			record_spans(rec, target, spans);
	return spans;
}

/* The target may be counting meanwhile, and writes the two one after the other. */
static uint64_t missed(const struct page_spans *spans)
{
	return spans->begun > spans->calls ? spans->begun - spans->calls : 0;
}

/*
 * Of a native function, every counted hit is a call: also one whose exits could not be hooked, in a
 * process for whose times there is no space, or that was never seen. Hits are read last.
 */
static uint64_t missed_of(struct inject_session *s, size_t target, const struct page_spans *spans)
{
	struct page_sums sums;

	if (s->target[target].spec->kind == SPEC_PYTHON)
		return missed(spans);
	session_target_sums(s, target, &sums);
	return sums.hits > spans->calls ? sums.hits - spans->calls : 0;
}

/* Hits of a time when it was not timed are missed, too: only differences mean something. */
void inject_spans(struct session_core *core, size_t target, struct result_spans *out)
{
	struct inject_session *s = session_of(core);
	struct page_spans *spans;

	*out = (struct result_spans){ 0 };
	if (!s->own[target].timed && !s->own[target].timed_once)
		return;
	spans = spans_of(s, target);

	*out = (struct result_spans){
		.ns = ns(s, (double)spans->outer_ticks),
		.calls = spans->calls,
		.missed = missed_of(s, target, spans),
	};
	free(spans);
}

static void add_bucket(const struct inject_session *s, struct result_times *out, uint64_t from,
		       uint64_t to, uint64_t calls)
{
	out->bucket = must_realloc(out->bucket, (out->n_buckets + 1) * sizeof(*out->bucket));
	out->bucket[out->n_buckets++] = (struct result_bucket){
		.from_ns = ns(s, (double)from),
		.to_ns = ns(s, (double)to),
		.calls = calls,
	};
}

static void fill_buckets(const struct inject_session *s, const struct page_spans *spans,
			 struct result_times *out)
{
	for (unsigned int i = 0; i < SB_PAGE_SPAN_BUCKETS; i++)
		if (spans->bucket[i])
			add_bucket(s, out, page_span_bucket(i), page_span_bucket(i + 1),
				   spans->bucket[i]);
}

void times_of_site(struct inject_session *s, const struct site_record *site,
		   struct result_times *out)
{
	struct sb_page_function f;

	*out = (struct result_times){ .known = each_times(s, site->each, &f) };
	if (!out->known)
		return;
	out->own_known = !f.apart;
	out->calls = f.calls;
	out->inclusive_ns = ns(s, (double)f.ticks);
	out->exclusive_ns = out->own_known ? ns(s, (double)f.own_ticks) : 0;
	out->min_ns = ns(s, (double)~f.inv_least);
	out->max_ns = ns(s, (double)f.most);
	out->p50_ns = ns(s, page_function_quantile(&f, 0.5));
	out->p90_ns = ns(s, page_function_quantile(&f, 0.9));
	out->p99_ns = ns(s, page_function_quantile(&f, 0.99));
	for (unsigned int i = 0; i < SB_PAGE_BUCKETS; i++)
		if (f.bucket[i])
			add_bucket(s, out, page_function_bucket(i), page_function_bucket(i + 1),
				   f.bucket[i]);
}

void inject_times(struct session_core *core, size_t target, struct result_times *out)
{
	struct inject_session *s = session_of(core);
	struct page_spans *spans;

	*out = (struct result_times){ .known = s->target[target].spec->timed };
	if (!out->known)
		return;
	spans = spans_of(s, target);
	out->own_known = !spans->apart;
	out->calls = spans->calls;
	out->missed = missed_of(s, target, spans);
	out->inclusive_ns = ns(s, (double)spans->ticks);
	out->exclusive_ns = out->own_known ? ns(s, (double)spans->own_ticks) : 0;
	out->min_ns = ns(s, (double)spans->least);
	out->max_ns = ns(s, (double)spans->most);
	out->p50_ns = ns(s, page_span_quantile(spans, 0.5));
	out->p90_ns = ns(s, page_span_quantile(spans, 0.9));
	out->p99_ns = ns(s, page_span_quantile(spans, 0.99));
	values_times(s->target[target].spec, spans, out);
	fill_buckets(s, spans, out);
	free(spans);
}
