/* SPDX-License-Identifier: MIT */
#include "preset.h"

#include <inttypes.h>
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

bool out_preset_folds(const struct result_target *target)
{
	for (size_t i = 0; i < FOLDS; i++)
		if (target->listed && target->preset && target->outcome == folds[i].outcome)
			return true;
	return false;
}

bool out_preset_has_functions(const struct result_target *target)
{
	return !target->preset || (!out_preset_folds(target) && strpbrk(target->spec, "*?["));
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
		const char *spec = res->target[i].spec, *name = strchr(spec, ':');

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
			if (res->target[i].outcome == folds[f].outcome && is_first(res, i))
				print_fold(to, res, i, folds[f].label);
}

/* ---- the figures of CUDA ---- */

static const struct result_figure *figure(const struct result *res, const char *name)
{
	for (size_t i = 0; i < res->n_cuda; i++)
		if (!strcmp(res->cuda[i].name, name))
			return &res->cuda[i];
	return NULL;
}

static void print_figure(FILE *to, const struct result *res, const char *name, const char *label,
			 const char **unknown)
{
	const struct result_figure *f = figure(res, name);

	if (!f)
		return;
	if (f->known)
		fprintf(to, "%s %" PRIu64, label, f->n);
	else
		fprintf(to, "%s unknown", label);
	if (!f->known && !*unknown)
		*unknown = f->reason;
}

void out_cuda(FILE *to, const struct result *res)
{
	const struct result_figure *ns = figure(res, "sync_ns");
	const char *unknown = NULL;
	char buf[32];

	if (!res->n_cuda)
		return;
	print_figure(to, res, "api_calls", "cuda: API calls", &unknown);
	print_figure(to, res, "launches", ", launches", &unknown);
	print_figure(to, res, "allocations", ", allocations", &unknown);
	print_figure(to, res, "allocated_bytes", " of bytes", &unknown);
	print_figure(to, res, "transfers", ", transfers", &unknown);
	print_figure(to, res, "transferred_bytes", " of bytes", &unknown);
	print_figure(to, res, "syncs", ", waits", &unknown);
	if (ns && ns->known)
		fprintf(to, " of %s", out_time((double)ns->n, buf, sizeof(buf)));
	fputc('\n', to);
	if (!unknown)
		return;
	fputs("  unknown, since not each function of its kind was counted: ", to);
	out_shown(to, unknown);
	fputc('\n', to);
}
