/* SPDX-License-Identifier: MIT */
#include "preset.h"

#include <string.h>
#include "grid.h"
#include "out.h"

enum { NAMES_MAX = 6 /* of one line; the rest is counted */ };

static const struct fold {
	enum result_outcome outcome;
	const char *label;
} folds[] = {
	{ OUTCOME_NEVER_CALLED, "never called" },
	{ OUTCOME_PENDING, "pending" },
	{ OUTCOME_NO_MATCH, "not in the library, or counted in other rows" },
};

enum { FOLDS = sizeof(folds) / sizeof(*folds) };

/* A target of --kernel. What the kernel lacks of them was named as they were hooked. */
static bool is_drivers(const struct result_target *target)
{
	return target->preset && !strcmp(target->preset, RESULT_DRIVER);
}

static bool was_named(const struct result_target *target)
{
	return is_drivers(target) &&
	       (target->outcome == OUTCOME_NO_MATCH || target->outcome == OUTCOME_REFUSED);
}

bool out_preset_folds(const struct result_target *target)
{
	if (was_named(target))
		return true;
	for (size_t i = 0; i < FOLDS; i++)
		if (target->listed && target->preset && target->outcome == folds[i].outcome)
			return true;
	return false;
}

static const char *spec_of(const struct result_target *target)
{
	return target->spec ? target->spec : "-";
}

bool out_preset_has_functions(const struct result_target *target)
{
	return !target->preset || (!out_preset_folds(target) && strpbrk(spec_of(target), "*?["));
}

static bool is_folded_as(const struct result_target *target, const char *preset,
			 enum result_outcome outcome)
{
	return target->listed && target->preset && target->outcome == outcome &&
	       !strcmp(target->preset, preset);
}

/* The line of one preset and one outcome, from its first target on. */
static void print_fold(FILE *to, const struct result *res, size_t first, const char *label)
{
	const struct result_target *t = &res->target[first];
	size_t n = 0;

	fprintf(to, "%s: ", label);
	out_shown(to, t->preset);
	fputs(": ", to);
	for (size_t i = first; i < res->n_targets; i++) {
		const char *spec = spec_of(&res->target[i]);
		const char *name = is_drivers(t) ? NULL : strchr(spec, ':');

		if (!is_folded_as(&res->target[i], t->preset, t->outcome))
			continue;
		if (n++ >= NAMES_MAX)
			continue;
		fputs(n > 1 ? ", " : "", to);
		out_shown(to, name ? name + 1 : spec);
	}
	if (n > NAMES_MAX)
		fprintf(to, " and %zu more (--json has each)", n - NAMES_MAX);
	fputc('\n', to);
}

static bool is_first(const struct result *res, size_t i)
{
	const struct result_target *t = &res->target[i];

	for (size_t k = 0; k < i; k++)
		if (is_folded_as(&res->target[k], t->preset, t->outcome))
			return false;
	return true;
}

void out_preset_notices(FILE *to, const struct result *res)
{
	for (size_t i = 0; i < res->n_targets; i++)
		for (size_t f = 0; f < FOLDS && out_preset_folds(&res->target[i]); f++)
			if (res->target[i].outcome == folds[f].outcome && is_first(res, i) &&
			    !was_named(&res->target[i]))
				print_fold(to, res, i, folds[f].label);
}
