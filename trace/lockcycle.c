/* SPDX-License-Identifier: MIT */
/*
 * Cycles of orders. A node is a lock between two times at which the address was forgotten; an edge
 * is an order whose two locks are each one node for as long as it was seen.
 */
#include <stdlib.h>
#include <string.h>
#include "lockgraph.h"
#include "src/base/must.h"

enum {
	STEPS_MOST = 1 << 24, /* of the search: about a second */
	FOUND_MOST = 4096,    /* cycles whose supersets are left out */
	PASSES = 64,
};

struct path {
	const struct lock_edge *edge[LOCKORDER_LENGTH];
	uint32_t n, want;
};

struct found {
	uint32_t n, node[LOCKORDER_LENGTH];
};

struct search {
	struct lockorder *o;
	struct lockorder_graph *g;
	uint32_t *first_node; /* by lock */
	uint32_t *head;	      /* by node: an edge plus 1 */
	uint32_t *into;	      /* by node: edges that lead to it */
	uint32_t n_nodes;
	uint64_t steps;
	struct found *found;
	size_t n_found;
	struct kept {
		struct lockorder_cycle *cycle;
		uint32_t n;
		const struct lock_edge *edge[LOCKORDER_LENGTH];
	} * kept;
	size_t n_kept;
};

/* ---- nodes ---- */

static int by_time(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return a < b ? -1 : a > b;
}

static void number_nodes(struct search *s)
{
	s->first_node = must_calloc(s->g->n_locks + 1, sizeof(*s->first_node));
	for (size_t i = 0; i < s->g->n_locks; i++) {
		struct lock *l = &s->g->lock[i];

		s->first_node[i] = s->n_nodes;
		s->n_nodes += l->n_forget + 1;
		if (l->n_forget)
			qsort(l->forget, l->n_forget, sizeof(*l->forget), by_time);
	}
	s->head = must_calloc((size_t)s->n_nodes + 1, sizeof(*s->head));
	s->into = must_calloc((size_t)s->n_nodes + 1, sizeof(*s->into));
}

static uint32_t node_at(const struct search *s, uint32_t lock, uint64_t ns)
{
	const struct lock *l = &s->g->lock[lock];
	uint32_t low = 0, high = l->n_forget;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (l->forget[middle] <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return s->first_node[lock] + low;
}

static bool is_odd(const struct lock *l)
{
	return l->odd || l->stranger_ns > l->taken_ns;
}

static void count_locks(struct lockorder *o)
{
	for (size_t i = 0; i < o->graph->n_locks; i++) {
		const struct lock *l = &o->graph->lock[i];
		bool taken = l->taken_ns != UINT64_MAX;

		o->odd += is_odd(l);
		o->unreleased += taken && !is_odd(l) && !l->released;
	}
}

static void choose_edges(struct search *s)
{
	for (size_t i = 0; i < s->g->n_edges; i++) {
		struct lock_edge *e = &s->g->edge[i];
		const struct lock *from = &s->g->lock[e->key.from];

		e->from_node = node_at(s, e->key.from, e->held_ns);
		e->to_node = node_at(s, e->key.to, e->first_ns);
		e->used = !is_odd(from) && from->released;
		if (e->used && (e->from_node != node_at(s, e->key.from, e->last_ns) ||
				e->to_node != node_at(s, e->key.to, e->last_ns))) {
			e->used = false;
			s->o->crossed++;
		}
	}
}

/* Leaves out, again and again, what nothing leads to or that leads to nothing. */
static void trim(struct search *s)
{
	uint32_t *from = must_calloc((size_t)s->n_nodes + 1, sizeof(*from));
	bool changed = true;

	for (unsigned int pass = 0; pass < PASSES && changed; pass++) {
		memset(from, 0, s->n_nodes * sizeof(*from));
		memset(s->into, 0, s->n_nodes * sizeof(*s->into));
		changed = false;
		for (size_t i = 0; i < s->g->n_edges; i++) {
			from[s->g->edge[i].from_node] += s->g->edge[i].used;
			s->into[s->g->edge[i].to_node] += s->g->edge[i].used;
		}
		for (size_t i = 0; i < s->g->n_edges; i++) {
			struct lock_edge *e = &s->g->edge[i];

			if (!e->used || (s->into[e->from_node] && from[e->to_node]))
				continue;
			e->used = false;
			changed = true;
		}
	}
	free(from);
}

/* The latest first, so that lists begin with the first. */
static void list_edges(struct search *s)
{
	for (size_t i = s->g->n_edges; i--;) {
		struct lock_edge *e = &s->g->edge[i];

		if (!e->used)
			continue;
		e->next = s->head[e->from_node];
		s->head[e->from_node] = (uint32_t)i + 1;
	}
}

/* ---- which edges can be taken at the same time, and wait for each other ---- */

/* The i-th lock that is held at an edge, twice its number, 1 more where it is shared. */
static uint32_t held_at(const struct search *s, const struct lock_edge *e, uint32_t i)
{
	const struct lock_gates *gates = &s->g->gates[e->key.gates];

	return i < gates->n ? gates->lock[i] : e->key.from * 2 + e->key.from_shared;
}

/* One lock that both hold lets only one of them in. */
static bool exclude(const struct search *s, const struct lock_edge *a, const struct lock_edge *b)
{
	uint32_t n = s->g->gates[a->key.gates].n, m = s->g->gates[b->key.gates].n;

	for (uint32_t i = 0; i <= n; i++)
		for (uint32_t k = 0; k <= m; k++) {
			uint32_t x = held_at(s, a, i), y = held_at(s, b, k);

			if (x / 2 == y / 2 && !(x & y & 1))
				return true;
		}
	return false;
}

/* Does the second edge's holder make the first one's thread wait? */
static bool blocks(const struct lock_edge *waits, const struct lock_edge *holds)
{
	return !(waits->key.to_shared && holds->key.from_shared);
}

static bool fits(const struct search *s, const struct path *p, const struct lock_edge *e)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (exclude(s, p->edge[i], e))
			return false;
	return !p->n || blocks(p->edge[p->n - 1], e);
}

/* ---- what is found ---- */

static bool has_node(const struct path *p, uint32_t node)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->edge[i]->from_node == node)
			return true;
	return false;
}

/* A part of it is a cycle already, or all of it by other edges. */
static bool is_known(struct search *s, const struct path *p)
{
	s->steps += s->n_found;
	for (size_t i = 0; i < s->n_found; i++) {
		uint32_t in = 0;

		while (in < s->found[i].n && has_node(p, s->found[i].node[in]))
			in++;
		if (in == s->found[i].n)
			return true;
	}
	return false;
}

static bool same_places(const struct kept *k, const struct path *p, uint32_t turn)
{
	for (uint32_t i = 0; i < p->n; i++) {
		const struct lock_edge_key *a = &k->edge[i]->key;
		const struct lock_edge_key *b = &p->edge[(i + turn) % p->n]->key;

		if (!a->from_at || !a->to_at || a->from_at != b->from_at || a->to_at != b->to_at)
			return false;
	}
	return true;
}

static struct kept *find_alike(const struct search *s, const struct path *p)
{
	for (size_t i = 0; i < s->n_kept; i++)
		for (uint32_t turn = 0; s->kept[i].n == p->n && turn < p->n; turn++)
			if (same_places(&s->kept[i], p, turn))
				return &s->kept[i];
	return NULL;
}

static const char *text_at(const struct lockorder_graph *g, uint32_t number)
{
	return number ? g->text[number - 1] : NULL;
}

/* The same order at the same places: under other locks, or read before and after a LOCK_FORGET. */
static bool is_same_order(const struct lock_edge *a, const struct lock_edge *b)
{
	return a->to_node == b->to_node && a->key.from_at == b->key.from_at &&
	       a->key.to_at == b->key.to_at && a->key.from_shared == b->key.from_shared &&
	       a->key.to_shared == b->key.to_shared;
}

static void add_same(const struct search *s, const struct lock_edge *e, struct lockorder_step *to)
{
	for (uint32_t i = s->head[e->from_node]; i; i = s->g->edge[i - 1].next) {
		const struct lock_edge *same = &s->g->edge[i - 1];

		if (same == e || !is_same_order(same, e))
			continue;
		to->times += same->times;
		to->several |= same->several || same->thread != e->thread;
		to->first_ns = same->first_ns < to->first_ns ? same->first_ns : to->first_ns;
		to->last_ns = same->last_ns > to->last_ns ? same->last_ns : to->last_ns;
	}
}

static void fill_step(const struct search *s, const struct lock_edge *e, struct lockorder_step *to)
{
	const struct lockorder_graph *g = s->g;
	const struct lock *from = &g->lock[e->key.from], *taken = &g->lock[e->key.to];

	*to = (struct lockorder_step){
		.held = from->address,
		.taken = taken->address,
		.held_name = text_at(g, from->name),
		.taken_name = text_at(g, taken->name),
		.held_at = text_at(g, e->key.from_at),
		.taken_at = text_at(g, e->key.to_at),
		.held_shared = e->key.from_shared,
		.taken_shared = e->key.to_shared,
		.times = e->times,
		.first_ns = e->first_ns,
		.last_ns = e->last_ns,
		.thread = e->thread,
		.several = e->several,
	};
	add_same(s, e, to);
}

/* The order that was taken first comes first. */
static void fill_cycle(const struct search *s, const struct path *p, struct lockorder_cycle *c)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i < p->n; i++)
		if (p->edge[i]->first_ns < p->edge[first]->first_ns)
			first = i;
	*c = (struct lockorder_cycle){ .n = p->n, .one_thread = true };
	c->pid = s->g->space[s->g->lock[p->edge[0]->key.from].space];
	for (uint32_t i = 0; i < p->n; i++) {
		const struct lock_edge *e = p->edge[(first + i) % p->n];

		fill_step(s, e, &c->step[i]);
		c->one_thread &= !c->step[i].several && e->thread == p->edge[0]->thread;
	}
}

/* The same cycle, as far as it is known of one thread alone: others may do it, too. */
static void improve(struct search *s, const struct path *p)
{
	struct lockorder_cycle other;

	for (size_t i = 0; i < s->n_kept; i++) {
		struct kept *k = &s->kept[i];
		uint32_t in = 0;

		while (k->n == p->n && in < k->n && has_node(p, k->edge[in]->from_node))
			in++;
		if (k->n != p->n || in < k->n || !k->cycle->one_thread)
			continue;
		fill_cycle(s, p, &other);
		if (other.one_thread)
			return;
		other.alike = k->cycle->alike;
		*k->cycle = other;
		memcpy(k->edge, p->edge, sizeof(k->edge));
		return;
	}
}

static void keep(struct search *s, const struct path *p)
{
	struct found *found = &s->found[s->n_found];
	struct kept *alike = find_alike(s, p), *k;

	for (found->n = 0; found->n < p->n; found->n++)
		found->node[found->n] = p->edge[found->n]->from_node;
	s->n_found++;
	if (alike) {
		alike->cycle->alike++;
		return;
	}
	if (s->n_kept == LOCKORDER_CYCLES) {
		s->o->cycles_left_out++;
		return;
	}
	k = &s->kept[s->n_kept];
	k->cycle = &s->o->cycle[s->n_kept++];
	k->n = p->n;
	memcpy(k->edge, p->edge, sizeof(k->edge));
	fill_cycle(s, p, k->cycle);
}

/* ---- the search ---- */

static bool is_over(struct search *s)
{
	if (s->steps++ < STEPS_MOST && s->n_found < FOUND_MOST)
		return false;
	s->o->unsearched = true;
	return true;
}

/* Paths of p->want edges back to their first node, which is the lowest of their nodes: so a cycle
 * is met once. */
static void extend(struct search *s, struct path *p)
{
	uint32_t start = p->edge[0]->from_node, at = p->edge[p->n - 1]->to_node;

	for (uint32_t i = s->head[at]; i; i = s->g->edge[i - 1].next) {
		const struct lock_edge *e = &s->g->edge[i - 1];
		bool last = p->n + 1 == p->want;

		if (is_over(s))
			return;
		if (last ? e->to_node != start : e->to_node <= start || has_node(p, e->to_node))
			continue;
		if (!fits(s, p, e) || (last && !blocks(e, p->edge[0])))
			continue;
		p->edge[p->n++] = e;
		if (!last)
			extend(s, p);
		else if (is_known(s, p))
			improve(s, p);
		else
			keep(s, p);
		p->n--;
	}
}

static void search(struct search *s, uint32_t want)
{
	for (uint32_t node = 0; node < s->n_nodes; node++)
		for (uint32_t i = s->head[node]; i; i = s->g->edge[i - 1].next) {
			struct path p = { .edge = { &s->g->edge[i - 1] }, .n = 1, .want = want };

			if (is_over(s))
				return;
			if (s->g->edge[i - 1].to_node > node)
				extend(s, &p);
		}
}

static int by_weight(const void *x, const void *y)
{
	const struct lockorder_cycle *a = x, *b = y;

	if (a->one_thread != b->one_thread)
		return a->one_thread - b->one_thread;
	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	return by_time(&a->step[0].first_ns, &b->step[0].first_ns);
}

void lockcycle_find(struct lockorder *o)
{
	struct search s = { .o = o, .g = o->graph };

	count_locks(o);
	number_nodes(&s);
	choose_edges(&s);
	trim(&s);
	list_edges(&s);
	o->cycle = must_calloc(LOCKORDER_CYCLES, sizeof(*o->cycle));
	s.kept = must_calloc(LOCKORDER_CYCLES, sizeof(*s.kept));
	s.found = must_calloc(FOUND_MOST, sizeof(*s.found));
	for (uint32_t want = 2; want <= LOCKORDER_LENGTH && !o->unsearched; want++)
		search(&s, want);
	o->n_cycles = s.n_kept;
	qsort(o->cycle, o->n_cycles, sizeof(*o->cycle), by_weight);
	free(s.first_node);
	free(s.head);
	free(s.into);
	free(s.kept);
	free(s.found);
}
