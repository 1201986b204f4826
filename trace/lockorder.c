/* SPDX-License-Identifier: MIT */
/* What each thread holds, and the orders that follow. */
#include "lockorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lockgraph.h"
#include "src/base/must.h"

/* Bounds, since a trace comes from elsewhere. */
enum {
	LOCKS_MOST = 1 << 20,
	EDGES_MOST = 1 << 19,
	GATES_MOST = 1 << 16,
	TEXTS_MOST = 1 << 16,
	FORGETS_MOST = 1 << 22,
	THREADS_MOST = 1 << 16,
	EXACT_NS = 1000,
};

/* ---- tables ---- */

static uint64_t hash_bytes(const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ at[i]) * 0x100000001b3u;
	return hash ^ hash >> 32;
}

typedef bool same_fn(const struct lockorder_graph *g, uint32_t i, const void *key);
typedef uint64_t hash_fn(const struct lockorder_graph *g, uint32_t i);

static size_t place_of(const struct lock_table *t, uint64_t hash, const struct lockorder_graph *g,
		       same_fn *same, const void *key)
{
	size_t at = hash & (t->slots - 1);

	while (t->slot[at] && !(same && same(g, t->slot[at] - 1, key)))
		at = (at + 1) & (t->slots - 1);
	return at;
}

static void grow(struct lock_table *t, const struct lockorder_graph *g, hash_fn *hash)
{
	struct lock_table to = { .slots = t->slots ? t->slots * 2 : 64, .n = t->n };

	if (t->slots && t->n < t->slots / 2)
		return;
	to.slot = must_calloc(to.slots, sizeof(*to.slot));
	for (size_t i = 0; i < t->slots; i++)
		if (t->slot[i])
			to.slot[place_of(&to, hash(g, t->slot[i] - 1), g, NULL, NULL)] = t->slot[i];
	free(t->slot);
	*t = to;
}

/* Room for entry i of an array whose entries come one by one. */
static void *room_for(void *array, size_t i, size_t size)
{
	return i & (i - 1) ? array : must_realloc(array, (i ? i * 2 : 1) * size);
}

/* ---- texts: places in code, names of locks ---- */

static uint64_t hash_of_text(const struct lockorder_graph *g, uint32_t i)
{
	return hash_bytes(g->text[i], strlen(g->text[i]));
}

static bool same_text(const struct lockorder_graph *g, uint32_t i, const void *key)
{
	return !strcmp(g->text[i], key);
}

/* Its number; 0: there is none, or no room. */
static uint32_t text_number(struct lockorder *o, const char *text)
{
	struct lockorder_graph *g = o->graph;
	size_t at;

	if (!text)
		return 0;
	grow(&g->by_text, g, hash_of_text);
	at = place_of(&g->by_text, hash_bytes(text, strlen(text)), g, same_text, text);
	if (g->by_text.slot[at])
		return g->by_text.slot[at];
	if (g->n_texts == TEXTS_MOST) {
		o->left_out++;
		return 0;
	}
	g->text = room_for(g->text, g->n_texts, sizeof(*g->text));
	g->text[g->n_texts++] = must_strdup(text);
	g->by_text.n++;
	return g->by_text.slot[at] = (uint32_t)g->n_texts;
}

/* ---- locks ---- */

static uint64_t hash_lock(uint32_t space, uint64_t address)
{
	uint64_t hash = (address ^ (uint64_t)space << 40) * 0x9e3779b97f4a7c15u;

	return hash ^ hash >> 32;
}

static uint64_t hash_of_lock(const struct lockorder_graph *g, uint32_t i)
{
	return hash_lock(g->lock[i].space, g->lock[i].address);
}

static bool same_lock(const struct lockorder_graph *g, uint32_t i, const void *key)
{
	const struct lock *as = key;

	return g->lock[i].space == as->space && g->lock[i].address == as->address;
}

/* NULL: there is no room. */
static struct lock *lock_at(struct lockorder *o, uint32_t space, uint64_t address)
{
	const struct lock fresh = { .address = address, .space = space, .taken_ns = UINT64_MAX };
	struct lockorder_graph *g = o->graph;
	size_t at;

	grow(&g->by_lock, g, hash_of_lock);
	at = place_of(&g->by_lock, hash_lock(space, address), g, same_lock, &fresh);
	if (g->by_lock.slot[at])
		return &g->lock[g->by_lock.slot[at] - 1];
	if (g->n_locks == LOCKS_MOST) {
		o->left_out++;
		return NULL;
	}
	g->lock = room_for(g->lock, g->n_locks, sizeof(*g->lock));
	g->lock[g->n_locks++] = fresh;
	g->by_lock.n++;
	g->by_lock.slot[at] = (uint32_t)g->n_locks;
	return &g->lock[g->n_locks - 1];
}

/* Too many are as one whose holder is not known: no order begins at it any more. */
static void forget(struct lockorder *o, struct lock *l, uint64_t ns)
{
	struct lockorder_graph *g = o->graph;

	if (g->n_forgets == FORGETS_MOST) {
		o->left_out++;
		l->stranger_ns = UINT64_MAX;
		return;
	}
	g->n_forgets++;
	l->forget = room_for(l->forget, l->n_forget, sizeof(*l->forget));
	l->forget[l->n_forget++] = ns;
}

/* ---- orders ---- */

static int by_number(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return a < b ? -1 : a > b;
}

static uint64_t hash_of_gates(const struct lockorder_graph *g, uint32_t i)
{
	return hash_bytes(g->gates[i].lock, g->gates[i].n * sizeof(uint32_t));
}

static bool same_gates(const struct lockorder_graph *g, uint32_t i, const void *key)
{
	const struct lock_gates *as = key;

	return g->gates[i].n == as->n &&
	       !memcmp(g->gates[i].lock, as->lock, as->n * sizeof(uint32_t));
}

/* The number of the set of what else a thread holds; 0: nothing, or there is no room. */
static uint32_t gates_number(struct lockorder *o, const struct lock_thread *t, uint32_t but)
{
	struct lockorder_graph *g = o->graph;
	uint32_t lock[LOCKS_HELD] = { 0 };
	struct lock_gates key = { .lock = lock };
	size_t at;

	for (uint32_t i = 0; i < t->n; i++)
		if (i != but && !t->held[i].maybe)
			lock[key.n++] = t->held[i].lock * 2 + t->held[i].shared;
	if (!key.n)
		return 0;
	qsort(lock, key.n, sizeof(*lock), by_number);
	grow(&g->by_gates, g, hash_of_gates);
	at = place_of(&g->by_gates, hash_bytes(lock, key.n * sizeof(*lock)), g, same_gates, &key);
	if (g->by_gates.slot[at])
		return g->by_gates.slot[at] - 1;
	if (g->n_gates == GATES_MOST)
		return UINT32_MAX;
	g->gates = room_for(g->gates, g->n_gates, sizeof(*g->gates));
	g->gates[g->n_gates].n = key.n;
	g->gates[g->n_gates].lock = must_calloc(key.n, sizeof(*lock));
	memcpy(g->gates[g->n_gates++].lock, lock, key.n * sizeof(*lock));
	g->by_gates.n++;
	g->by_gates.slot[at] = (uint32_t)g->n_gates;
	return (uint32_t)g->n_gates - 1;
}

static uint64_t hash_of_edge(const struct lockorder_graph *g, uint32_t i)
{
	return hash_bytes(&g->edge[i].key, sizeof(g->edge[i].key));
}

static bool same_edge(const struct lockorder_graph *g, uint32_t i, const void *key)
{
	return !memcmp(&g->edge[i].key, key, sizeof(g->edge[i].key));
}

static void add_edge(struct lockorder *o, const struct lock_edge_key *key, uint32_t thread,
		     uint64_t held_ns, uint64_t ns)
{
	struct lockorder_graph *g = o->graph;
	struct lock_edge *e;
	size_t at;

	grow(&g->by_edge, g, hash_of_edge);
	at = place_of(&g->by_edge, hash_bytes(key, sizeof(*key)), g, same_edge, key);
	if (!g->by_edge.slot[at]) {
		if (g->n_edges == EDGES_MOST) {
			o->left_out++;
			return;
		}
		g->edge = room_for(g->edge, g->n_edges, sizeof(*g->edge));
		g->edge[g->n_edges++] = (struct lock_edge){
			.key = *key,
			.thread = thread,
			.first_ns = ns,
			.last_ns = ns,
			.held_ns = held_ns,
		};
		g->by_edge.n++;
		g->by_edge.slot[at] = (uint32_t)g->n_edges;
	}
	e = &g->edge[g->by_edge.slot[at] - 1];
	e->times++;
	e->several |= e->thread != thread;
	e->first_ns = ns < e->first_ns ? ns : e->first_ns;
	e->last_ns = ns > e->last_ns ? ns : e->last_ns;
	e->held_ns = held_ns < e->held_ns ? held_ns : e->held_ns;
}

/* ---- calls ---- */

/* A call of a thread, with its lock. */
struct taking {
	struct lock_thread *t;
	uint32_t thread, lock, at;
	uint64_t start_ns, end_ns;
	bool waits, shared, maybe;
};

/*
 * Another thread took it after this one did, and well before now: this one had released it, and the
 * trace does not have that. Times of calls are exact to less than that.
 */
static void check_held(struct lockorder_graph *g, const struct taking *c, const struct lock_held *h,
		       uint64_t now)
{
	struct lock *l = &g->lock[h->lock];

	if (!h->shared && !h->maybe && l->last_ns && l->last != c->thread &&
	    l->last_ns > h->ns + EXACT_NS && now > l->last_ns + EXACT_NS)
		l->odd = true;
}

static void add_edges(struct lockorder *o, const struct taking *c)
{
	struct lockorder_graph *g = o->graph;

	for (uint32_t i = 0; i < c->t->n; i++) {
		const struct lock_held *h = &c->t->held[i];
		struct lock_edge_key key;

		check_held(g, c, h, c->end_ns);
		/* It was destroyed meanwhile. */
		if (h->maybe || h->age != g->lock[h->lock].n_forget)
			continue;
		memset(&key, 0, sizeof(key)); /* compared as bytes */
		key.from = h->lock;
		key.to = c->lock;
		key.from_at = h->at;
		key.to_at = c->at;
		key.from_age = h->age;
		key.to_age = g->lock[c->lock].n_forget;
		key.from_shared = h->shared;
		key.to_shared = c->shared;
		key.gates = gates_number(o, c->t, i);
		if (key.gates == UINT32_MAX)
			o->left_out++;
		else
			add_edge(o, &key, c->thread, h->ns, c->end_ns);
	}
}

static struct lock_held *held_of(struct lock_thread *t, uint32_t lock)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (t->held[i].lock == lock)
			return &t->held[i];
	return NULL;
}

/* Takes it out of the set, in whose order the locks were taken. */
static void drop(struct lock_thread *t, struct lock_held *h)
{
	size_t after = (size_t)(t->held + --t->n - h);

	memmove(h, h + 1, after * sizeof(*h));
}

static void take(struct lockorder *o, const struct taking *c)
{
	struct lock *l = &o->graph->lock[c->lock];
	struct lock_held *h = held_of(c->t, c->lock);

	if (c->maybe && h)
		return;
	if (!c->maybe && c->end_ns < l->taken_ns)
		l->taken_ns = c->end_ns;
	if (h && (h->maybe || h->age != l->n_forget)) {
		drop(c->t, h);
		h = NULL;
	}
	if (h)
		check_held(o->graph, c, h, c->end_ns);
	if (!c->shared && !c->maybe && c->end_ns >= l->last_ns) {
		l->last = c->thread;
		l->last_ns = c->end_ns;
	}
	if (h) { /* a recursive lock */
		h->depth++;
		return;
	}
	if (c->waits && !c->maybe)
		add_edges(o, c);
	if (c->t->n == LOCKS_HELD) {
		o->left_out++;
		c->t->lost++;
		return;
	}
	c->t->held[c->t->n++] = (struct lock_held){ .lock = c->lock,
						    .at = c->at,
						    .depth = 1,
						    .age = l->n_forget,
						    .shared = c->shared,
						    .maybe = c->maybe,
						    .ns = c->end_ns };
}

static void release(struct lockorder *o, const struct taking *c)
{
	struct lock *l = &o->graph->lock[c->lock];
	struct lock_held *h = held_of(c->t, c->lock);

	if (h) {
		check_held(o->graph, c, h, c->start_ns);
		l->released |= !h->maybe;
		if (!--h->depth)
			drop(c->t, h);
	} else if (c->t->lost) {
		c->t->lost--;
	} else if (c->start_ns >= l->stranger_ns) {
		l->stranger_ns = c->start_ns;
	}
}

/* It waits for the lock again while it holds the others, also those that it took later. */
static void wait_again(struct lockorder *o, const struct taking *c)
{
	struct lock_held *h = held_of(c->t, c->lock);

	if (h && h->depth > 1) /* a recursive one, which pthread_cond_wait() does not release */
		return;
	o->graph->lock[c->lock].released |= h != NULL;
	if (h)
		drop(c->t, h);
	take(o, c);
}

static void act(struct lockorder *o, enum lock_op op, struct taking *c)
{
	c->waits = op == LOCK_TAKE || op == LOCK_SHARE || op == LOCK_WAIT;
	o->unknown += c->maybe;
	c->shared = op == LOCK_SHARE || op == LOCK_TRY_SHARE;
	if (op == LOCK_RELEASE)
		release(o, c);
	else if (op == LOCK_WAIT)
		wait_again(o, c);
	else
		take(o, c);
}

static const struct trace_value *value_of(const struct trace_span *span, const char *name)
{
	for (uint32_t i = 0; i < span->n_values; i++)
		if (!strcmp(span->value[i].name, name))
			return &span->value[i];
	return NULL;
}

static const char *text_of(const struct trace_span *span, const char *name)
{
	const struct trace_value *v = value_of(span, name);

	return v && v->known && v->type == VALUE_STR ? v->text : NULL;
}

static const char *place_in(const struct trace_span *span)
{
	const char *at = text_of(span, "at");

	return !at && span->stack && span->stack->n ? span->stack->frame[0] : at;
}

/* False: the thread has not the lock when the call has ended. */
static bool succeeds(enum lock_op op, const struct trace_span *span)
{
	const struct trace_value *result = value_of(span, "result");

	return !result || !result->known || result->value == 0 || result->value == EOWNERDEAD ||
	       (op == LOCK_WAIT && result->value == ETIMEDOUT);
}

/* A call that ends with a jump to another function, as pthread_mutex_timedlock() does, returns
 * nothing itself. If its lock is released later by its thread, it was taken. */
static bool is_unsure(enum lock_op op, const struct trace_span *span)
{
	const struct trace_value *result = value_of(span, "result");

	return result && !result->known && op != LOCK_RELEASE && op != LOCK_FORGET;
}

static struct lock_thread *thread_of(struct lockorder *o, uint32_t id)
{
	struct lockorder_graph *g = o->graph;
	uint32_t i = idmap_get(&g->thread_of, id);

	if (i)
		return &g->thread[i - 1];
	if (g->n_threads == THREADS_MOST)
		return NULL;
	g->thread = room_for(g->thread, g->n_threads, sizeof(*g->thread));
	g->thread[g->n_threads++] = (struct lock_thread){ 0 };
	idmap_put(&g->thread_of, id, (uint32_t)g->n_threads);
	return &g->thread[g->n_threads - 1];
}

/* A new space, which is the process's from now on. */
static uint32_t add_space(struct lockorder_graph *g, int32_t pid)
{
	g->space = room_for(g->space, g->n_spaces, sizeof(*g->space));
	g->space[g->n_spaces++] = pid;
	idmap_put(&g->space_of, (uint32_t)pid, (uint32_t)g->n_spaces);
	return (uint32_t)g->n_spaces - 1;
}

void lockorder_process(struct lockorder *o, int32_t pid)
{
	add_space(o->graph, pid);
}

static uint32_t space_of(struct lockorder *o, int32_t pid)
{
	uint32_t i = idmap_get(&o->graph->space_of, (uint32_t)pid);

	return i ? i - 1 : add_space(o->graph, pid);
}

/* What was released may have been any lock. */
static void lose_track(struct lockorder *o, enum lock_op op, struct lock_thread *t)
{
	o->unknown++;
	if (t && (op == LOCK_RELEASE || op == LOCK_WAIT))
		*t = (struct lock_thread){ 0 };
}

void lockorder_call(struct lockorder *o, enum lock_op op, int32_t pid, bool known,
		    const struct trace_span *span)
{
	const struct trace_value *address = value_of(span, "lock");
	struct taking c = { .thread = span->thread,
			    .start_ns = span->start_ns,
			    .end_ns = span->start_ns + span->dur_ns };
	struct lock *l;

	if (op == LOCK_NONE || span->kind != TRACE_CALL || !address)
		return;
	c.t = known ? thread_of(o, span->thread) : NULL;
	if (!address->known || (!c.t && op != LOCK_FORGET)) {
		lose_track(o, op, c.t);
		return;
	}
	if (!succeeds(op, span))
		return;
	c.maybe = is_unsure(op, span);
	o->calls++;
	l = address->value ? lock_at(o, space_of(o, pid), address->value) : NULL;
	if (!l)
		return;
	if (op == LOCK_FORGET) {
		forget(o, l, span->start_ns);
		return;
	}
	if (!l->name)
		l->name = text_number(o, text_of(span, "name"));
	c.lock = (uint32_t)(l - o->graph->lock);
	c.at = op == LOCK_RELEASE ? 0 : text_number(o, place_in(span));
	act(o, op, &c);
}

/* ---- the end ---- */

struct lockorder *lockorder_new(void)
{
	struct lockorder *o = must_calloc(1, sizeof(*o));

	o->graph = must_calloc(1, sizeof(*o->graph));
	o->graph->gates = must_calloc(1, sizeof(*o->graph->gates));
	o->graph->n_gates = 1;
	return o;
}

void lockorder_finish(struct lockorder *o, const char *missing)
{
	o->locks = o->graph->n_locks;
	o->orders = o->graph->n_edges;
	o->missing = missing;
	if (!missing)
		lockcycle_find(o);
}

void lockorder_free(struct lockorder *o)
{
	struct lockorder_graph *g = o ? o->graph : NULL;

	if (!o)
		return;
	for (size_t i = 0; i < g->n_locks; i++)
		free(g->lock[i].forget);
	for (size_t i = 0; i < g->n_gates; i++)
		free(g->gates[i].lock);
	for (size_t i = 0; i < g->n_texts; i++)
		free(g->text[i]);
	free(g->lock);
	free(g->edge);
	free(g->gates);
	free(g->text);
	free(g->space);
	free(g->thread);
	free(g->by_lock.slot);
	free(g->by_edge.slot);
	free(g->by_gates.slot);
	free(g->by_text.slot);
	idmap_free(&g->space_of);
	idmap_free(&g->thread_of);
	free(g);
	free(o->cycle);
	free(o);
}
