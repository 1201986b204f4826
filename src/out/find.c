/* SPDX-License-Identifier: MIT */
/* The steps of `find` and its answer, as text. */
#include "find.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "grid.h"
#include "out.h"
#include "src/base/json.h"

void out_find_step(FILE *to, int step, const char *title, const char *command)
{
	fprintf(to, "%s%d. %s\n", step > 1 ? "\n" : "", step, title);
	if (command) {
		fputs("   $ ", to);
		out_shown(to, command);
		fputc('\n', to);
	}
	fflush(to);
}

static const struct out_col rate_cols[] = {
	{ "function", OUT_NAME, 0 },
	{ "calls/s", OUT_FIGURE, 2 },
	{ "scatter", OUT_FIGURE, 2 },
	{ "as progress", OUT_TEXT, 2 },
};

static void add_use(struct out_grid *grid, const struct find_rates *rates, int i)
{
	const struct find_rate *r = &rates->rate[i];

	if (i == rates->point && !rates->n_counters)
		out_grid_add(grid, "proposed");
	else if (!r->calls)
		out_grid_add(grid, "no: not called");
	else if (r->multiple_of != FIND_NONE)
		out_grid_add(grid, "no: %.0f calls to each of %s",
			     round((double)r->calls / (double)rates->rate[r->multiple_of].calls),
			     rates->rate[r->multiple_of].target);
	else if (!r->steady)
		out_grid_add(grid, "no: not regular");
	else
		out_grid_add(grid, "possible");
}

static const struct out_col counter_cols[] = {
	{ "counter", OUT_NAME, 0 },
	{ "per s", OUT_FIGURE, 2 },
	{ "scatter", OUT_FIGURE, 2 },
	{ "as progress", OUT_TEXT, 2 },
};

/* Those that grew. */
static void print_counters(FILE *to, const struct find_rates *rates)
{
	struct out_grid grid = { counter_cols, sizeof(counter_cols) / sizeof(counter_cols[0]), NULL,
				 0 };

	for (size_t i = 0; i < rates->n_counters; i++) {
		const struct find_rate *r = &rates->counter[i];

		if (!r->calls)
			continue;
		out_grid_add(&grid, "%s", strchr(r->target, '#') + 1);
		out_grid_add(&grid, isnan(r->per_s) ? "-" : "%.4g", r->per_s);
		out_grid_add(&grid, isnan(r->scatter) ? "-" : "%.0f%%", 100 * r->scatter);
		out_grid_add(&grid, "%s",
			     (int)i == rates->counter_point ? "proposed" :
			     r->steady			    ? "possible" :
							      "no: not regular");
	}
	fputc('\n', to);
	out_grid_print(&grid, to);
}

void out_find_rates(FILE *to, const struct find_rates *rates)
{
	struct out_grid grid = { rate_cols, sizeof(rate_cols) / sizeof(rate_cols[0]), NULL, 0 };

	for (size_t i = 0; i < rates->n; i++) {
		const struct find_rate *r = &rates->rate[i];

		out_grid_add(&grid, "%s", r->target);
		out_grid_add(&grid, isnan(r->per_s) ? "-" : "%.4g", r->per_s);
		out_grid_add(&grid, isnan(r->scatter) ? "-" : "%.0f%%", 100 * r->scatter);
		add_use(&grid, rates, (int)i);
	}
	out_grid_print(&grid, to);
	for (size_t i = 0; i < rates->n; i++)
		if (rates->rate[i].cost > FIND_COST_MOST) {
			out_shown(to, rates->rate[i].target);
			fprintf(to,
				" is left out: a hook of it takes about %.0f%% of the time by "
				"itself, at 10 ns a call\n",
				100 * rates->rate[i].cost);
		}
	if (rates->n_counters)
		print_counters(to, rates);
}

/* ---- the answer ---- */

static double real_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

enum answer { LIMITS, NOTHING, OPEN };

static enum answer answer_of(const json_t *t)
{
	const char *v = json_string_value(json_object_get(t, "verdict"));

	if (!v)
		return OPEN;
	if (!strcmp(v, "CRITICAL") || !strcmp(v, "PARTIAL"))
		return LIMITS;
	return !strcmp(v, "HIDDEN") || !strcmp(v, "SLACK") ? NOTHING : OPEN;
}

static void print_target(FILE *to, const json_t *t, enum answer answer)
{
	const json_t *ci = json_object_get(t, "kappa_ci");
	double item = real_of(t, "plain_ns"), gain = real_of(t, "gain_ceiling_ns");
	double kappa = real_of(t, "kappa");
	const char *reason = json_string_value(json_object_get(t, "reason"));

	fputs("  ", to);
	out_shown(to, json_string_value(json_object_get(t, "spec")));
	if (isfinite(kappa))
		fprintf(to, ": of a delay %.0f%% [%.0f%%, %.0f%%] reaches the time of an item",
			100 * kappa, 100 * json_number_value(json_array_get(ci, 0)),
			100 * json_number_value(json_array_get(ci, 1)));
	if (answer == LIMITS && isfinite(gain) && item > 0)
		fprintf(to, "; without the function an item would take at most %.1f%% less",
			fmin(100, 100 * gain / item));
	else if (answer == LIMITS)
		fputs("; how much there is to win is not known: its own time is not", to);
	if (answer == OPEN)
		fprintf(to, ": %s%s%s", json_string_value(json_object_get(t, "verdict")),
			reason && *reason ? ", " : "", reason ? reason : "");
	fputc('\n', to);
}

static bool any_open(const json_t *targets)
{
	const json_t *t;
	size_t i;

	json_array_foreach((json_t *)targets, i, t)
	{
		if (answer_of(t) == OPEN)
			return true;
	}
	return false;
}

static void print_answers(FILE *to, const json_t *targets, enum answer answer, const char *title)
{
	const json_t *t;
	size_t i, n = 0;

	json_array_foreach((json_t *)targets, i, t)
	{
		if (answer_of(t) != answer)
			continue;
		if (!n++)
			fprintf(to, "%s\n", title);
		print_target(to, t, answer);
	}
	if (!n && answer == LIMITS)
		fprintf(to, "what limits the program: %s\n",
			any_open(targets) ? "not known" :
					    "none of these functions, as far as was measured");
}

void out_find_page(FILE *to, const struct out_find *find)
{
	json_t *doc = find->sweep ? json_loads(find->sweep, 0, NULL) : NULL;
	const json_t *targets = json_object_get(doc, "targets");

	fputs("\nThe answer\n", to);
	if (find->progress) {
		fputs(find->is_call ? "an item is a call of " : "an item is one more of ", to);
		out_shown(to, find->progress);
		fputs(find->given ? "\n" : ": proposed, check that it is; else --progress\n", to);
	}
	if (targets) {
		print_answers(to, targets, LIMITS, "what limits the program:");
		print_answers(to, targets, NOTHING, "what does not matter, though it takes time:");
		print_answers(to, targets, OPEN, "not decided:");
	} else {
		fprintf(to, "no sweep: %s\n", find->why ? find->why : "it gave no result");
	}
	if (find->rates && find->rates->unhooked > 0)
		fprintf(to, "not hooked: %s that began after the attach\n",
			find->rates->unhooked > 1 ? "processes" : "a process");
	if (find->ended_early)
		fputs("ended early: this is what is known so far\n", to);
	if (find->n_next)
		fputs("what to do next:\n", to);
	for (size_t i = 0; i < find->n_next; i++) {
		fprintf(to, "  %s\n    $ ", find->next[i].why);
		out_shown(to, find->next[i].command);
		fputc('\n', to);
	}
	json_decref(doc);
}
