/* SPDX-License-Identifier: MIT */
#include "sweep-headline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "out.h"
#include "sweep-gain.h"
#include "src/base/must.h"
#include "sweep/verdict.h"

enum { NAMES = 3, GAINS = 3 };

/* The parts of an answer, in their order. */
enum part { LIMITS, FELT, PARTLY, SPARE, HIDES, UNCALLED, UNKNOWN, PARTS };

static const enum part parts[VERDICT_COUNT] = {
	[VERDICT_CRITICAL] = LIMITS,	  [VERDICT_PARTIAL] = PARTLY,
	[VERDICT_SLACK] = SPARE,	  [VERDICT_HIDDEN] = HIDES,
	[VERDICT_INCONCLUSIVE] = UNKNOWN, [VERDICT_NOT_CALLED] = UNCALLED,
	[VERDICT_INVALID] = UNKNOWN,
};

/* The sentence about one target, and the one about several. */
static const struct {
	const char *one, *several;
} sayings[PARTS] = {
	[LIMITS] = { "limits the program: time spent there is felt in full",
		     "limit the program: time spent there is felt in full" },
	[FELT] = { "limits the program, in part or in full: time spent there is felt",
		   "limit the program, in part or in full: time spent there is felt" },
	[PARTLY] = { "limits the program in part: a part of the time spent there is felt",
		     "limit the program in part: a part of the time spent there is felt" },
	[SPARE] = { "does not matter as it is: more time there is hidden at first, and felt beyond "
		    "a slack",
		    "do not matter as they are: more time there is hidden at first, and felt "
		    "beyond a slack" },
	[HIDES] = { "does not matter: more time there is hidden",
		    "do not matter: more time there is hidden" },
	[UNCALLED] = { "was not called", "were not called" },
	[UNKNOWN] = { "is not known to matter or not", "are not known to matter or not" },
};

static enum part part_of(const struct sweep_result *res, const struct sweep_target *t)
{
	bool full = t->verdict == VERDICT_PARTIAL && verdict_may_be_full(t, res->threshold);

	return full ? FELT : parts[t->verdict];
}

struct answer {
	const struct sweep_result *res;
	size_t *order; /* by what there is to win */
	size_t n, of[PARTS];
	struct out_headline *out;
};

const char *out_sweep_unit(const struct sweep_result *res, const struct out_sweep_about *about)
{
	if (about->response)
		return "response";
	return res->runs && about->progress && !strcmp(about->progress, "end") ? "run" : "item";
}

static void add(struct answer *a, char *line)
{
	if (a->out->n < OUT_HEADLINES)
		a->out->line[a->out->n++] = line;
	else
		free(line);
}

static FILE *begin(char **text, size_t *size)
{
	return must(open_memstream(text, size));
}

/* "a, b, c and 115 more" */
static void put_names(FILE *f, const struct answer *a, enum part part)
{
	size_t named = 0, all = a->of[part];
	size_t most = all == NAMES + 1 ? all : NAMES;

	for (size_t i = 0; i < a->n && named < most; i++) {
		const struct sweep_target *t = &a->res->target[a->order[i]];

		if (part_of(a->res, t) != part)
			continue;
		fputs(!named ? "" : named + 1 == all ? " and " : ", ", f);
		fputs(t->spec, f);
		named++;
	}
	if (all > named)
		fprintf(f, " and %zu more", all - named);
}

static void say(struct answer *a, enum part part)
{
	char *text;
	size_t size;
	FILE *f;

	if (!a->of[part])
		return;
	f = begin(&text, &size);
	put_names(f, a, part);
	fprintf(f, " %s.", a->of[part] > 1 ? sayings[part].several : sayings[part].one);
	fclose(f);
	add(a, text);
}

/* Without anything that limits: is that a finding, or is it not known? */
static void say_none(struct answer *a)
{
	const char *line = a->of[UNKNOWN] || !(a->of[SPARE] || a->of[HIDES]) ?
				   "What limits the program is not known." :
				   "What limits the program is something else than what was swept.";

	add(a, must_strdup(line));
}

static void say_gains(struct answer *a, const char *unit)
{
	char gain[32], item[32], *text;
	size_t said = 0, size;

	for (size_t i = 0; i < a->n && said < GAINS; i++) {
		const struct sweep_target *t = &a->res->target[a->order[i]];
		double share = out_sweep_gain_share(t).est * 100;
		FILE *f;

		if (!isfinite(share) || part_of(a->res, t) > PARTLY)
			continue;
		f = begin(&text, &size);
		fprintf(f, "Making %s free would save at most %s of ", t->spec,
			out_time(t->gain_ceiling_ns.est, gain, sizeof(gain)));
		out_time(out_sweep_item_ns(t), item, sizeof(item));
		if (t->judged)
			fprintf(f, "p%.3g's %s", t->judged->share * 100, item);
		else
			fprintf(f, "%s a%s %s", item, *unit == 'i' ? "n" : "", unit);
		fprintf(f, " (%.*f %%).", share < 10 ? 1 : 0, share);
		fclose(f);
		add(a, text);
		said++;
	}
}

void out_sweep_headline(const struct sweep_result *res, const struct out_sweep_about *about,
			struct out_headline *out)
{
	struct answer a = { .res = res, .n = out_sweep_shown(res, about), .out = out };

	memset(out, 0, sizeof(*out));
	a.order = out_sweep_by_gain(res, a.n);
	for (size_t i = 0; i < a.n; i++)
		a.of[part_of(res, &res->target[i])]++;
	if (res->gates.unproven) {
		add(&a, must_strdup("What limits the program is not known: windows that were alike "
				    "differed, so that this sweep proves nothing."));
	} else {
		if (!a.of[LIMITS] && !a.of[FELT] && !a.of[PARTLY])
			say_none(&a);
		for (int part = LIMITS; part < SPARE; part++)
			say(&a, (enum part)part);
		say_gains(&a, out_sweep_unit(res, about));
		for (int part = SPARE; part < PARTS; part++)
			say(&a, (enum part)part);
	}
	free(a.order);
}

void out_headline_free(struct out_headline *headline)
{
	for (size_t i = 0; i < headline->n; i++)
		free(headline->line[i]);
	headline->n = 0;
}
