/* SPDX-License-Identifier: MIT */
/* `sbinject list`: a row for each site, for refused sites and for targets without a site. */
#include "out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "grid.h"
#include "src/base/must.h"
#include "src/base/text.h"

static const struct out_col list_cols[] = {
	{ "target", OUT_NAME, 0 },    { "module", OUT_NAME, 2 }, { "symbol", OUT_NAME, 2 },
	{ "address", OUT_FIGURE, 2 }, { "size", OUT_FIGURE, 2 }, { "mechanism", OUT_TEXT, 2 },
};

/* If there are several processes. */
static const struct out_col tree_cols[] = {
	{ "target", OUT_NAME, 0 },    { "module", OUT_NAME, 2 }, { "symbol", OUT_NAME, 2 },
	{ "address", OUT_FIGURE, 2 }, { "size", OUT_FIGURE, 2 }, { "pids", OUT_TEXT, 2 },
	{ "mechanism", OUT_TEXT, 2 },
};

#define PIDS_MAX 6 /* in a row; the rest is counted */

static bool has_pids(const struct out_grid *grid)
{
	return grid->col == tree_cols;
}

static void add_pids(struct out_grid *grid, const pid_t *pids, size_t n)
{
	char text[PIDS_MAX * 12 + 40] = "-";
	size_t used = 0;

	if (!has_pids(grid))
		return;
	for (size_t i = 0; i < n && i < PIDS_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d", i ? "," : "",
					 (int)pids[i]);
	if (n > PIDS_MAX)
		snprintf(text + used, sizeof(text) - used, " and %zu more", n - PIDS_MAX);
	out_grid_add(grid, "%s", text);
}

static void add_name(struct out_grid *grid, const char *name)
{
	out_grid_add(grid, "%s", name ? name : "-");
}

static void add_address(struct out_grid *grid, uint64_t address)
{
	if (address)
		out_grid_add(grid, "0x%" PRIx64, address);
	else
		out_grid_add(grid, "-");
}

/* Of a Python function: its file and line. */
static void add_place(struct out_grid *grid, const struct result_site *site)
{
	const char *slash = site->file ? strrchr(site->file, '/') : NULL;

	if (site->file)
		out_grid_add(grid, "%s:%" PRIu64, slash ? slash + 1 : site->file, site->line);
	else
		add_address(grid, site->address);
}

static void add_site(struct out_grid *grid, const char *spec, const struct result_site *site)
{
	add_name(grid, spec);
	add_name(grid, site->module);
	add_name(grid, site->name ? site->name : site->symbol);
	add_place(grid, site);
	if (site->size)
		out_grid_add(grid, "%" PRIu64, site->size);
	else
		out_grid_add(grid, "-");
	add_pids(grid, site->pids, site->n_pids);
	if (site->untimed)
		out_grid_add(grid, "%s; not timed: %s", site->mechanism ? site->mechanism : "-",
			     site->untimed);
	else
		add_name(grid, site->mechanism);
}

/* A row whose last cell is the reason for the refusal. */
static void add_refused(struct out_grid *grid, const char *spec,
			const struct result_refused *refused)
{
	add_name(grid, spec);
	add_name(grid, refused->module);
	add_name(grid, refused->name ? refused->name : refused->symbol);
	add_address(grid, refused->address);
	out_grid_add(grid, "-");
	add_pids(grid, refused->pids, refused->n_pids);
	out_grid_add(grid, "no: %s", refused->reason ? refused->reason : "refused");
}

/* The reason why a target has no row of its own, if the target carries none. */
static const char *const nothing_texts[] = {
	[OUTCOME_PENDING] = "its module is not mapped",
	[OUTCOME_NO_MATCH] = "the module has no such function",
	[OUTCOME_REFUSED] = "no site can be hooked",
};

static const char *why_nothing(const struct result_target *target)
{
	size_t i = (size_t)target->outcome;
	bool known = i < sizeof(nothing_texts) / sizeof(nothing_texts[0]) && nothing_texts[i];

	if (target->reason && *target->reason)
		return target->reason;
	return known ? nothing_texts[i] : "nothing matched";
}

static void add_target(struct out_grid *grid, const struct result_target *target)
{
	struct result_refused nothing = { .reason = (char *)why_nothing(target) };

	for (size_t i = 0; i < target->n_sites; i++)
		add_site(grid, target->spec, &target->site[i]);
	for (size_t i = 0; i < target->n_refused; i++)
		add_refused(grid, target->spec, &target->refused[i]);
	if (!target->n_sites && !target->n_refused)
		add_refused(grid, target->spec, &nothing);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Functions, of the sites that are their exits, or their entries. */
static size_t count_functions(const struct result_target *target)
{
	uint64_t *entry = must_calloc(target->n_sites + 1, sizeof(*entry));
	size_t n = 0;

	for (size_t i = 0; i < target->n_sites; i++)
		entry[i] = target->site[i].function ? target->site[i].function :
						      target->site[i].address;
	qsort(entry, target->n_sites, sizeof(*entry), by_value);
	for (size_t i = 0; i < target->n_sites; i++)
		n += !i || entry[i] != entry[i - 1];
	free(entry);
	return n;
}

static size_t count_timed(const struct result_target *target)
{
	size_t n = 0;

	for (size_t i = 0; i < target->n_sites; i++)
		n += !target->site[i].untimed;
	return n;
}

/* Of a target at exits, or of a timed one: of how many of its functions that can be done. */
static void print_share(FILE *to, const struct result_target *target)
{
	char spec[TEXT_QUOTE_SIZE];
	size_t n, all;

	if ((!target->at && !target->timed) || target->n_sites + target->n_refused < 2)
		return;
	n = target->timed ? count_timed(target) : count_functions(target);
	all = (target->timed ? target->n_sites : n) + target->n_refused;
	fprintf(to, "%s: %zu of %zu functions can be %s (%.1f %%)\n",
		text_quote(target->spec, spec, sizeof(spec)), n, all,
		target->timed ? "timed" : "hooked at all exits", 100.0 * (double)n / (double)all);
}

/* What is recorded of each call. */
static void print_values(FILE *to, const struct result_target *target)
{
	char spec[TEXT_QUOTE_SIZE];

	if (!target->times.n_values)
		return;
	fprintf(to,
		"%s: of each call that is timed:", text_quote(target->spec, spec, sizeof(spec)));
	for (size_t i = 0; i < target->times.n_values; i++) {
		const struct result_value *v = &target->times.value[i];

		fprintf(to, "%s %s (", i ? "," : "", v->name);
		if (v->position)
			fprintf(to, "argument %u", v->position);
		if (v->type == VALUE_STR)
			fputs("@exit", to);
		else if (v->memory || v->offset)
			fprintf(to, "%c%u", v->memory ? '@' : '+', v->offset);
		fprintf(to, "%s%s%s)",
			v->position	      ? ", " :
			v->type == VALUE_CODE ? "its caller, " :
						"returned, ",
			value_type_name(v->type), v->summed ? ", summed" : "");
	}
	fputc('\n', to);
}

void out_list(FILE *to, const struct result *res)
{
	struct out_grid grid = { list_cols, sizeof(list_cols) / sizeof(list_cols[0]), NULL, 0 };

	if (res->n_processes > 1) {
		grid.col = tree_cols;
		grid.n_cols++;
	}
	for (size_t i = 0; i < res->n_targets; i++)
		add_target(&grid, &res->target[i]);
	out_grid_print(&grid, to);
	for (size_t i = 0; i < res->n_targets; i++)
		print_share(to, &res->target[i]);
	for (size_t i = 0; i < res->n_targets; i++)
		print_values(to, &res->target[i]);
}
