/* SPDX-License-Identifier: MIT */
#include "report-locks.h"

#include <inttypes.h>
#include "grid.h"
#include "src/base/json.h"
#include "trace/lockorder.h"

enum { CYCLES_MAX = 10 };

/* ---- text ---- */

static void print_lock(FILE *to, uint64_t address, const char *name, bool shared)
{
	fprintf(to, "0x%" PRIx64, address);
	if (name) {
		fputs(" (", to);
		out_shown(to, name);
		fputc(')', to);
	}
	if (shared)
		fputs(" to read", to);
}

static void print_place(FILE *to, const char *at)
{
	fputs(" at ", to);
	out_shown(to, at ? at : "an unknown place");
}

static void print_thread(FILE *to, const struct sum *sum, const struct lockorder_step *s)
{
	const struct sum_thread *t = &sum->thread[s->thread - 1];

	fprintf(to, "; %" PRIu64 " time%s, thread %" PRId32, s->times, s->times == 1 ? "" : "s",
		t->tid);
	if (t->name) {
		fputs(" (", to);
		out_shown(to, t->name);
		fputc(')', to);
	}
	fputs(s->several ? " and others\n" : "\n", to);
}

static void print_cycle(FILE *to, const struct sum *sum, const struct lockorder_cycle *c)
{
	fprintf(to, "\nlock order: process %" PRId32 ", ", c->pid);
	if (c->n == 2)
		fputs("two locks in opposite orders", to);
	else
		fprintf(to, "%" PRIu32 " locks in a circle", c->n);
	fputs(c->one_thread ? ", all by one thread: a deadlock if another one does the same\n" :
			      ": a deadlock is possible\n",
	      to);
	for (uint32_t i = 0; i < c->n; i++) {
		const struct lockorder_step *s = &c->step[i];

		fputs("  ", to);
		print_lock(to, s->held, s->held_name, s->held_shared);
		print_place(to, s->held_at);
		fputs(", then ", to);
		print_lock(to, s->taken, s->taken_name, s->taken_shared);
		print_place(to, s->taken_at);
		print_thread(to, sum, s);
	}
	if (c->alike)
		fprintf(to, "  and %" PRIu64 " more of other locks, taken at these places\n",
			c->alike);
}

static void print_count(FILE *to, uint64_t n, const char *one, const char *many)
{
	if (n)
		fprintf(to, "lock order: %" PRIu64 " %s\n", n, n == 1 ? one : many);
}

static void print_limits(FILE *to, const struct lockorder *o)
{
	print_count(to, o->odd, "lock is left out as a held one: who held it is not known",
		    "locks are left out as held ones: who held them is not known");
	print_count(to, o->unreleased,
		    "lock is left out as a held one: no release of it was recorded",
		    "locks are left out as held ones: no release of them was recorded");
	print_count(to, o->unknown, "call is left out: its lock or its thread is not known",
		    "calls are left out: their lock or their thread is not known");
	print_count(to, o->crossed,
		    "order is left out: a lock ended meanwhile and its memory was used again",
		    "orders are left out: a lock ended meanwhile and its memory was used again");
	print_count(to, o->left_out, "time there was no room for a lock, an order or a place",
		    "times there was no room for a lock, an order or a place");
	if (o->unsearched)
		fputs("lock order: there may be more: the search was given up\n", to);
}

void out_report_locks(FILE *to, const struct sum *sum)
{
	const struct lockorder *o = sum->lockorder;

	if (!o)
		return;
	if (o->missing) {
		fprintf(to, "\nthe orders of locks are not known: %s\n", o->missing);
		return;
	}
	for (size_t i = 0; i < o->n_cycles && i < CYCLES_MAX; i++)
		print_cycle(to, sum, &o->cycle[i]);
	if (o->n_cycles > CYCLES_MAX)
		fprintf(to, "  and %zu more (--json has them)\n", o->n_cycles - CYCLES_MAX);
	if (!o->n_cycles)
		fprintf(to,
			"\nlock order: no two threads can wait for each other by the %zu order%s "
			"in which %zu lock%s were taken in this trace\n",
			o->orders, o->orders == 1 ? "" : "s", o->locks, o->locks == 1 ? "" : "s");
	print_limits(to, o);
}

/* ---- JSON ---- */

static json_t *number(uint64_t n)
{
	return json_must(json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n));
}

static json_t *lock_json(uint64_t address, const char *name, bool shared, const char *at)
{
	char text[VALUE_TEXT_SIZE];
	json_t *o = json_must(json_object());

	json_put(o, "lock", json_string(value_text(VALUE_PTR, address, text, sizeof(text))));
	json_put(o, "name", name ? json_name(name) : json_null());
	json_put(o, "shared", json_boolean(shared));
	json_put(o, "at", at ? json_name(at) : json_null());
	return o;
}

static json_t *step_json(const struct sum *sum, const struct lockorder_step *s)
{
	const struct sum_thread *t = &sum->thread[s->thread - 1];
	json_t *o = json_must(json_object());

	json_put(o, "first", lock_json(s->held, s->held_name, s->held_shared, s->held_at));
	json_put(o, "then", lock_json(s->taken, s->taken_name, s->taken_shared, s->taken_at));
	json_put(o, "times", number(s->times));
	json_put(o, "first_ns", number(s->first_ns - sum->begin_ns));
	json_put(o, "last_ns", number(s->last_ns - sum->begin_ns));
	json_put(o, "tid", json_integer(t->tid));
	json_put(o, "thread", json_name(t->name));
	json_put(o, "several_threads", json_boolean(s->several));
	return o;
}

static json_t *cycle_json(const struct sum *sum, const struct lockorder_cycle *c)
{
	json_t *o = json_must(json_object()), *orders = json_must(json_array());

	for (uint32_t i = 0; i < c->n; i++)
		json_add(orders, step_json(sum, &c->step[i]));
	json_put(o, "pid", json_integer(c->pid));
	json_put(o, "orders", orders);
	json_put(o, "one_thread", json_boolean(c->one_thread));
	json_put(o, "alike", number(c->alike));
	return o;
}

static json_t *limits_json(const struct lockorder *o)
{
	json_t *limits = json_must(json_object());

	json_put(limits, "calls", number(o->calls));
	json_put(limits, "locks", number(o->locks));
	json_put(limits, "orders", number(o->orders));
	json_put(limits, "calls_unknown", number(o->unknown));
	json_put(limits, "locks_odd", number(o->odd));
	json_put(limits, "locks_unreleased", number(o->unreleased));
	json_put(limits, "orders_crossed", number(o->crossed));
	json_put(limits, "no_room", number(o->left_out));
	json_put(limits, "cycles_left_out", number(o->cycles_left_out));
	json_put(limits, "search_complete", json_boolean(!o->unsearched));
	return limits;
}

void out_report_locks_json(json_t *doc, const struct sum *sum)
{
	const struct lockorder *o = sum->lockorder;
	json_t *list;

	if (!o)
		return;
	if (o->missing) {
		json_put(doc, "lock_order", json_null());
		json_put(doc, "lock_order_reason", json_string(o->missing));
		return;
	}
	list = json_must(json_array());
	for (size_t i = 0; i < o->n_cycles; i++)
		json_add(list, cycle_json(sum, &o->cycle[i]));
	json_put(doc, "lock_order", list);
	json_put(doc, "locks", limits_json(o));
}
