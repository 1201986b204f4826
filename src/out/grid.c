/* SPDX-License-Identifier: MIT */
#include "grid.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "out.h"
#include "src/base/caps.h"
#include "src/base/text.h"

#define BOLD  "\x1b[1m"
#define PLAIN "\x1b[0m"

bool out_has_colour(FILE *to)
{
	const char *no_colour = caps_env("NO_COLOR"), *term = caps_env("TERM");

	return isatty(fileno(to)) && !(no_colour && *no_colour) && term &&
	       strcmp(term, "dumb") != 0;
}

size_t out_columns(FILE *to)
{
	const char *columns = caps_env("COLUMNS");
	struct winsize size;
	long n = columns ? strtol(columns, NULL, 10) : 0;

	if (!ioctl(fileno(to), TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	return n > 0 ? (size_t)n : 80;
}

void out_shown(FILE *to, const char *name)
{
	char *shown = text_show(name);

	fputs(shown, to);
	free(shown);
}

char *out_target_name(const struct result_target *target)
{
	const char *spec = target->spec ? target->spec : "-";
	char *name;

	if ((target->pid ? asprintf(&name, "%s pid=%d", spec, (int)target->pid) :
			   asprintf(&name, "%s", spec)) < 0)
		abort();
	return name;
}

void out_target(FILE *to, const struct result_target *target)
{
	char *name = out_target_name(target);

	out_shown(to, name);
	free(name);
}

void out_grid_add(struct out_grid *grid, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	/* The size is a power of two: it grows whenever the count reaches one. */
	if (!(grid->n_cells & (grid->n_cells - 1)))
		grid->cell = reallocarray(grid->cell, grid->n_cells ? grid->n_cells * 2 : 1,
					  sizeof(*grid->cell));
	if (!grid->cell)
		abort();
	grid->cell[grid->n_cells++] = text_show(text);
	free(text);
}

enum {
	NAME_LEAST = 40, /* a name up to this width is shown whole, whatever the width of lines */
	NAME_MOST =
		160, /* a wider name shifts only its own line: names of templates have no limit */
};

static size_t column_width(const struct out_grid *grid, size_t col, bool terminal)
{
	size_t width = strlen(grid->col[col].head);
	bool name = grid->col[col].kind == OUT_NAME && !terminal;

	for (size_t i = col; i < grid->n_cells; i += grid->n_cols) {
		size_t cell = text_width(grid->cell[i]);

		cell = name && cell > NAME_MOST ? NAME_MOST : cell;
		width = cell > width ? cell : width;
	}
	return width;
}

/* The widest of the names that may still be cut; n_cols: there is none. */
static size_t widest_name(const struct out_grid *grid, const size_t *width)
{
	size_t widest = grid->n_cols;

	for (size_t col = 0; col < grid->n_cols; col++)
		if (grid->col[col].kind == OUT_NAME && width[col] > NAME_LEAST &&
		    (widest == grid->n_cols || width[col] > width[widest]))
			widest = col;
	return widest;
}

static void cut_column(struct out_grid *grid, size_t col, size_t width)
{
	for (size_t i = col; i < grid->n_cells; i += grid->n_cols) {
		char *cut = text_middle(grid->cell[i], width);

		free(grid->cell[i]);
		grid->cell[i] = cut;
	}
}

/* Lines that wrap on a terminal make no table: cut the longest names. */
static void fit(struct out_grid *grid, FILE *to, size_t *width)
{
	size_t total = 0, most, col;

	if (!isatty(fileno(to)))
		return;
	for (col = 0; col < grid->n_cols; col++)
		total += width[col] + grid->col[col].gap;
	for (most = out_columns(to); total > most; total--) {
		col = widest_name(grid, width);
		if (col == grid->n_cols)
			break;
		width[col]--;
	}
	for (col = 0; col < grid->n_cols; col++)
		if (grid->col[col].kind == OUT_NAME)
			cut_column(grid, col, width[col]);
}

/* Prints one cell. The last column is not padded, so that no line ends in blanks. */
static void print_cell(FILE *to, const struct out_grid *grid, size_t col, const char *text,
		       size_t width)
{
	size_t taken = text_width(text);
	int pad = taken < width ? (int)(width - taken) : 0, gap = (int)grid->col[col].gap;
	bool last = col + 1 == grid->n_cols;

	if (grid->col[col].kind == OUT_FIGURE)
		fprintf(to, "%*s%s", gap + pad, "", text);
	else
		fprintf(to, "%*s%s%*s", gap, "", text, last ? 0 : pad, "");
}

static void print_head(FILE *to, const struct out_grid *grid, const size_t *width)
{
	bool colour = out_has_colour(to);

	fputs(colour ? BOLD : "", to);
	for (size_t col = 0; col < grid->n_cols; col++)
		print_cell(to, grid, col, grid->col[col].head, width[col]);
	fputs(colour ? PLAIN "\n" : "\n", to);
}

void out_grid_print(struct out_grid *grid, FILE *to)
{
	size_t *width = calloc(grid->n_cols, sizeof(*width));

	if (!width)
		abort();
	for (size_t col = 0; col < grid->n_cols; col++)
		width[col] = column_width(grid, col, isatty(fileno(to)));
	fit(grid, to, width);
	print_head(to, grid, width);
	for (size_t i = 0; i < grid->n_cells; i++) {
		size_t col = i % grid->n_cols;

		print_cell(to, grid, col, grid->cell[i], width[col]);
		if (col + 1 == grid->n_cols)
			fputc('\n', to);
		free(grid->cell[i]);
	}
	free(grid->cell);
	free(width);
	grid->cell = NULL;
	grid->n_cells = 0;
}

/* Figures */

struct unit {
	const char *name;
	double ns;
	int digits; /* significant ones */
};

static const struct unit units[] = {
	{ "ns", 1, 3 },
	{ "us", 1e3, 3 },
	{ "ms", 1e6, 4 },
	{ "s", 1e9, 4 },
};

#define N_UNITS (sizeof(units) / sizeof(units[0]))

/*
 * The decimals that show v with so many significant digits after rounding: 9.996 has one decimal of
 * three digits (10.0), not two. -1: v has more digits before the point.
 */
static int decimals_of(double v, int digits)
{
	double limit = 10, scale;

	for (int decimals = digits - 1; decimals >= 0; decimals--, limit *= 10) {
		scale = pow(10, decimals);
		if (round(v * scale) / scale < limit)
			return decimals;
	}
	return -1;
}

/* Is v 1000 or more when shown with so many digits? Then the next unit is due. */
static bool overflows(double v, int digits)
{
	double scale = pow(10, digits - 3);

	return round(v * scale) >= 1000 * scale;
}

char *out_time(double ns, char *buf, size_t size)
{
	const struct unit *unit = units, *last = &units[N_UNITS - 1];
	double v = fabs(ns);
	int decimals;

	/* 999.6ns is 1.00us, and 999.96ms is 1.000s. */
	while (unit < last && overflows(v / unit->ns, unit->digits))
		unit++;
	v /= unit->ns;
	decimals = decimals_of(v, unit->digits);
	if (!isfinite(ns))
		snprintf(buf, size, "-");
	else if (v == 0)
		snprintf(buf, size, "0");
	else
		snprintf(buf, size, "%s%.*f%s", ns < 0 ? "-" : "", decimals < 0 ? 0 : decimals, v,
			 unit->name);
	return buf;
}

char *out_rate(double per_s, char *buf, size_t size)
{
	int decimals = decimals_of(fabs(per_s), 3);

	if (!isfinite(per_s))
		snprintf(buf, size, "-");
	else if (per_s == 0)
		snprintf(buf, size, "0");
	else
		snprintf(buf, size, "%.*f", decimals < 0 ? 0 : decimals, per_s);
	return buf;
}
