/* SPDX-License-Identifier: MIT */
#include "slowest.h"

#include <stdlib.h>
#include "callstack.h"
#include "src/base/must.h"

void slowest_free(struct sum_slow *slow)
{
	free(slow->stack);
	for (uint32_t k = 0; k < slow->span.n_values; k++)
		free((char *)slow->value[k].text);
}

static bool is_slower(const struct sum_slow *a, const struct sum_slow *b)
{
	return a->span.dur_ns != b->span.dur_ns ? a->span.dur_ns > b->span.dur_ns :
						  a->span.start_ns < b->span.start_ns;
}

/* A heap with the fastest of the slowest on top. */
static void sink_down(struct sum *s, size_t i)
{
	for (;;) {
		size_t least = i;

		for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < s->n_slow; k++)
			if (is_slower(&s->slow[least], &s->slow[k]))
				least = k;
		if (least == i)
			return;
		s->slow[s->n_slow] = s->slow[i];
		s->slow[i] = s->slow[least];
		s->slow[least] = s->slow[s->n_slow];
		i = least;
	}
}

static void lift_up(struct sum *s, size_t i)
{
	while (i && is_slower(&s->slow[(i - 1) / 2], &s->slow[i])) {
		struct sum_slow up = s->slow[(i - 1) / 2];

		s->slow[(i - 1) / 2] = s->slow[i];
		s->slow[i] = up;
		i = (i - 1) / 2;
	}
}

/* What is only borrowed for the time of the call. */
static void keep_texts(struct sum_slow *slow, const struct trace_span *span)
{
	slow->stack = callstack_copy(span->stack);
	for (uint32_t k = 0; k < span->n_values; k++)
		slow->value[k].text = span->value[k].text ? must_strdup(span->value[k].text) : NULL;
}

void slowest_add(struct sum *s, struct sum_thread *t, const struct trace_span *span, uint64_t own,
		 unsigned int lane)
{
	struct sum_slow slow = { .span = *span,
				 .own_ns = own,
				 .caller_kind = TRACE_CALL,
				 .lane = lane,
				 .orphan = true };
	size_t i = s->n_slow;

	if (!s->options.slowest)
		return;
	slow.span.value = NULL;
	slow.span.kernel = NULL;
	slow.span.stack = NULL;
	for (uint32_t k = 0; k < span->n_values; k++)
		slow.value[k] = span->value[k];
	if (i == s->options.slowest) {
		if (!is_slower(&slow, &s->slow[0]))
			return;
		if (s->slow[0].orphan)
			s->thread[s->slow[0].span.thread - 1].orphans--;
		slowest_free(&s->slow[0]);
		keep_texts(&slow, span);
		s->slow[0] = slow;
		sink_down(s, 0);
	} else {
		keep_texts(&slow, span);
		s->slow[s->n_slow++] = slow;
		lift_up(s, i);
	}
	t->orphans++;
	if (span->start_ns > t->orphan_last)
		t->orphan_last = span->start_ns;
}

static int slower_first(const void *a, const void *b)
{
	return is_slower(a, b) ? -1 : is_slower(b, a);
}

void slowest_sort(struct sum *s)
{
	qsort(s->slow, s->n_slow, sizeof(*s->slow), slower_first);
}
