/* SPDX-License-Identifier: MIT */
#include "sides-futex.h"

#include <stdlib.h>
#include <string.h>
#include "owners.h"
#include "src/base/must.h"

struct tally {
	double *ns; /* by number */
	size_t n;
};

struct sides_futexes {
	struct owners *owners;
	struct tally *tally; /* by target */
	size_t n_targets;
};

struct sides_futexes *sides_futexes_open(size_t n_targets)
{
	struct sides_futexes *f = must_calloc(1, sizeof(*f));

	f->owners = owners_open();
	f->tally = must_calloc(n_targets, sizeof(*f->tally));
	f->n_targets = n_targets;
	return f;
}

void sides_futexes_close(struct sides_futexes *f)
{
	if (!f)
		return;
	owners_close(f->owners);
	for (size_t i = 0; i < f->n_targets; i++)
		free(f->tally[i].ns);
	free(f->tally);
	free(f);
}

void sides_futexes_look(struct sides_futexes *f, const struct evidence *e,
			const struct evidence_reading *r)
{
	owners_look(f->owners, e, r);
}

static void add(struct tally *t, size_t number, double ns)
{
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

static void add_thread(struct tally *t, const struct evidence_thread *was,
		       const struct evidence_thread *is)
{
	double rest = (double)is->values.of[EVIDENCE_FUTEX] -
		      (was ? (double)was->values.of[EVIDENCE_FUTEX] : 0);

	for (int i = 0; i < EVIDENCE_FUTEX_PARTS; i++) {
		const struct evidence_futex_part *part = &is->futex[i];
		uint64_t before = part->number ? part_of(was, part->number) : 0;

		if (!part->number || part->ns <= before)
			continue;
		add(t, part->number, (double)(part->ns - before));
		rest -= (double)(part->ns - before);
	}
	add(t, 0, rest > 0 ? rest : 0); /* what gave way in the window, and what has no address */
}

void sides_futexes_add(struct sides_futexes *f, const bool *treated,
		       const struct evidence_thread *was, const struct evidence_thread *is)
{
	for (size_t i = 0; f && i < f->n_targets; i++)
		if (treated[i])
			add_thread(&f->tally[i], was, is);
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

static void fill_target(const struct sides_futexes *f, size_t target,
			const struct evidence_reading *last, struct sides_about *about)
{
	const struct tally *t = &f->tally[target];
	bool *done = must_calloc(t->n, sizeof(*done));
	double whole = 0;
	size_t number;

	for (size_t i = 0; i < t->n; i++)
		whole += t->ns[i];
	for (int k = 0; k < SIDES_FUTEXES && (number = longest(t, done)); k++) {
		struct sides_futex out = { .target = target };

		if (number >= last->n_futexes)
			break;
		for (size_t i = 1; i < t->n; i++)
			if (is_one_place(f, number, i))
				out.place_share += t->ns[i] / whole;
		out.share = t->ns[number] / whole;
		done[number] = true;
		describe(f, number, last, &out);
		about->futex = must(
			reallocarray(about->futex, about->n_futexes + 1, sizeof(*about->futex)));
		about->futex[about->n_futexes++] = out;
	}
	free(done);
}

void sides_futexes_fill(const struct sides_futexes *f, const struct evidence_reading *last,
			struct sides_about *about)
{
	for (size_t i = 0; f && i < f->n_targets; i++)
		fill_target(f, i, last, about);
}
