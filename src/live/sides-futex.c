/* SPDX-License-Identifier: MIT */
#include "sides-futex.h"

#include <stdlib.h>
#include <string.h>
#include "owners.h"
#include "sides-windows.h"
#include "src/base/must.h"

struct tally {
	double *ns; /* by number */
	size_t n;
};

struct sides_futexes {
	struct owners *owners;
	struct tally *tally; /* [side * n_targets + target] */
	size_t n_targets;
	struct sides_windows *windows;
};

struct sides_futexes *sides_futexes_open(size_t n_targets)
{
	struct sides_futexes *f = must_calloc(1, sizeof(*f));

	f->owners = owners_open();
	f->tally = must_calloc(SIDE_COUNT * n_targets, sizeof(*f->tally));
	f->windows = sides_windows_open();
	f->n_targets = n_targets;
	return f;
}

void sides_futexes_close(struct sides_futexes *f)
{
	if (!f)
		return;
	owners_close(f->owners);
	sides_windows_close(f->windows);
	for (size_t i = 0; i < SIDE_COUNT * f->n_targets; i++)
		free(f->tally[i].ns);
	free(f->tally);
	free(f);
}

void sides_futexes_look(struct sides_futexes *f, const struct evidence *e,
			const struct evidence_reading *r)
{
	owners_look(f->owners, e, r);
}

/* Whose waits. */
struct whose {
	struct sides_futexes *f;
	size_t target;
	enum sweep_side side;
};

static void add(const struct whose *of, size_t number, double ns)
{
	struct tally *t = &of->f->tally[of->side * of->f->n_targets + of->target];

	sides_windows_add(of->f->windows, of->target, of->side, number, ns);
	if (number >= t->n) {
		t->ns = must(reallocarray(t->ns, number + 1, sizeof(*t->ns)));
		memset(t->ns + t->n, 0, (number + 1 - t->n) * sizeof(*t->ns));
		t->n = number + 1;
	}
	t->ns[number] += ns;
}

static uint64_t part_of(const struct evidence_thread *t, uint32_t number)
{
	for (int i = 0; t && i < EVIDENCE_FUTEX_PARTS; i++)
		if (t->futex[i].number == number)
			return t->futex[i].ns;
	return 0;
}

static void add_thread(const struct whose *of, const struct evidence_thread *was,
		       const struct evidence_thread *is)
{
	double rest = (double)is->values.of[EVIDENCE_FUTEX] -
		      (was ? (double)was->values.of[EVIDENCE_FUTEX] : 0);

	for (int i = 0; i < EVIDENCE_FUTEX_PARTS; i++) {
		const struct evidence_futex_part *part = &is->futex[i];
		uint64_t before = part->number ? part_of(was, part->number) : 0;

		if (!part->number || part->ns <= before)
			continue;
		add(of, part->number, (double)(part->ns - before));
		rest -= (double)(part->ns - before);
	}
	add(of, 0, rest > 0 ? rest : 0); /* what gave way in the window, and what has no address */
}

void sides_futexes_window(struct sides_futexes *f, const bool *treated, uint64_t end_ns)
{
	sides_windows_begin(f->windows, end_ns);
	for (size_t i = 0; i < f->n_targets; i++)
		if (treated[i])
			sides_windows_read(f->windows, i);
}

void sides_futexes_add(struct sides_futexes *f, const bool *treated, enum sweep_side side,
		       const struct evidence_thread *was, const struct evidence_thread *is)
{
	for (size_t i = 0; f && i < f->n_targets; i++)
		if (treated[i])
			add_thread(&(struct whose){ f, i, side }, was, is);
}

/* ---- the result ---- */

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* A condition variable has two addresses: one function waits for both. */
static bool is_one_place(const struct sides_futexes *f, size_t a, size_t b)
{
	const char *caller = owners_caller(f->owners, a, 0);

	if (a == b)
		return true;
	for (size_t i = 0; i < OWNERS_CALLERS; i++)
		if (!is_same(owners_caller(f->owners, a, i), owners_caller(f->owners, b, i)))
			return false;
	return caller != NULL;
}

static size_t longest(const struct tally *t, const bool *done)
{
	size_t best = 0;

	for (size_t i = 1; i < t->n; i++)
		if (!done[i] && t->ns[i] > 0 && (!best || t->ns[i] > t->ns[best]))
			best = i;
	return best;
}

static void describe(const struct sides_futexes *f, size_t number,
		     const struct evidence_reading *last, struct sides_futex *out)
{
	const char *symbol = owners_symbol(f->owners, number);

	out->pid = last->futex[number].pid;
	out->addr = last->futex[number].addr;
	out->symbol = symbol ? must_strdup(symbol) : NULL;
	for (size_t i = 0; i < SIDES_CALLERS; i++) {
		const char *caller = owners_caller(f->owners, number, i);

		out->caller[i] = caller ? must_strdup(caller) : NULL;
	}
}

static void put(struct sides_about *about, const struct sides_futex *futex)
{
	about->futex =
		must(reallocarray(about->futex, about->n_futexes + 1, sizeof(*about->futex)));
	about->futex[about->n_futexes++] = *futex;
}

/* The longest ones that are not there yet. done: by number, of either side. */
static void fill_side(const struct sides_futexes *f, const struct whose *of, bool *done,
		      const struct evidence_reading *last, struct sides_about *about)
{
	const struct tally *t = &f->tally[of->side * f->n_targets + of->target];
	const struct tally *delayed = &f->tally[of->target];
	double whole = 0;
	size_t number;

	for (size_t i = 0; i < delayed->n; i++)
		whole += delayed->ns[i];
	for (int k = 0; k < SIDES_FUTEXES && (number = longest(t, done)); k++) {
		struct sides_futex out = { .target = of->target, .number = number };

		if (number >= last->n_futexes)
			break;
		for (size_t i = 1; i < delayed->n && whole > 0; i++)
			if (is_one_place(f, number, i))
				out.place_share += delayed->ns[i] / whole;
		if (number < delayed->n && whole > 0)
			out.share = delayed->ns[number] / whole;
		done[number] = true;
		describe(f, number, last, &out);
		put(about, &out);
	}
}

static void fill_target(struct sides_futexes *f, size_t target, const struct evidence_reading *last,
			struct sides_about *about)
{
	size_t n = f->tally[target].n, others = f->tally[f->n_targets + target].n;
	bool *done = must_calloc(n > others ? n : others, sizeof(*done));

	for (int side = 0; side < SIDE_COUNT; side++)
		fill_side(f, &(struct whose){ f, target, (enum sweep_side)side }, done, last,
			  about);
	free(done);
}

void sides_futexes_fill(struct sides_futexes *f, const struct evidence_reading *last,
			struct sides_about *about)
{
	for (size_t i = 0; f && i < f->n_targets; i++)
		fill_target(f, i, last, about);
}

void sides_futexes_compare(const struct sides_futexes *f, const struct sweep_result *res,
			   struct sides_about *about)
{
	if (f)
		sides_windows_compare(f->windows, res, about);
}
