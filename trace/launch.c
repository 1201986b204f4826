/* SPDX-License-Identifier: MIT */
#include "launch.h"

#include <string.h>

static void add(struct launch_sum *sum, struct hist_pool *pool, uint64_t ns)
{
	sum->min_ns = sum->n && sum->min_ns < ns ? sum->min_ns : ns;
	sum->max_ns = sum->max_ns > ns ? sum->max_ns : ns;
	sum->total_ns += ns;
	sum->n++;
	hist_add(pool, &sum->hist, ns);
}

static void close_launch(struct launch *l, struct hist_pool *pool, const struct launch_root *root)
{
	if (l->launches++) {
		add(&l->gap, pool, root->start > l->launch_end ? root->start - l->launch_end : 0);
		l->gap_wait_ns += l->waited_ns;
	}
	l->launch_end = root->end;
	l->waited_ns = 0;
}

/* The oldest open calls are done: no later call holds them. */
static void close_first(struct launch *l, struct hist_pool *pool, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct launch_root *root = &l->open[i];

		if (root->role == LAUNCH_CALL) {
			close_launch(l, pool, root);
		} else {
			add(&l->wait, pool, root->dur);
			l->waited_ns += root->dur;
		}
		l->done_ns = root->end > l->done_ns ? root->end : l->done_ns;
	}
	l->n_open -= n;
	memmove(l->open, l->open + n, l->n_open * sizeof(*l->open));
}

void launch_add(struct launch *l, struct hist_pool *pool, enum launch_role role, uint64_t start,
		uint64_t dur)
{
	struct launch_root root = { start, start + dur, dur, role };
	bool none = !l->launches && !l->wait.n && !l->n_open;

	for (; l->n_open && l->open[l->n_open - 1].start >= start; l->n_open--)
		if (l->open[l->n_open - 1].end > root.end)
			root.end = l->open[l->n_open - 1].end;
	l->unsure += (l->n_open ? l->open[l->n_open - 1].end : l->done_ns) > start;
	l->first_ns = none || start < l->first_ns ? start : l->first_ns;
	l->last_ns = root.end > l->last_ns ? root.end : l->last_ns;
	if (l->n_open == LAUNCH_OPEN)
		close_first(l, pool, LAUNCH_OPEN / 2);
	l->open[l->n_open++] = root;
}

void launch_finish(struct launch *l, struct hist_pool *pool)
{
	close_first(l, pool, l->n_open);
}

double launch_quantile(const struct hist_pool *pool, const struct launch_sum *sum, double q)
{
	uint64_t rank = (uint64_t)(q * (double)sum->n), ns;

	rank += (double)rank < q * (double)sum->n;
	if (sum->hist.incomplete || !sum->n)
		return -1;
	ns = hist_rank(pool, &sum->hist, rank ? rank : 1);
	ns = ns < sum->min_ns ? sum->min_ns : ns;
	return (double)(ns > sum->max_ns ? sum->max_ns : ns);
}
