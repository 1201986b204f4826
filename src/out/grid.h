/* SPDX-License-Identifier: MIT */
#ifndef SB_OUT_TEXT_H
#define SB_OUT_TEXT_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Shared by the writers of tables: a grid whose columns are as wide as their contents, and the test
 * whether a stream takes colour. On a terminal, long names lose their middle so that lines fit.
 * Cells are made safe to show (text.h) as they are added.
 *
 *	struct out_grid grid = { .col = cols, .n_cols = 3 };
 *	out_grid_add(&grid, "%s", name);	row by row, each cell in its turn
 *	out_grid_print(&grid, to);		prints head and rows, and frees the cells
 */
enum out_kind {
	OUT_TEXT,
	OUT_NAME,   /* of any length: cut if the terminal is narrower than the table */
	OUT_FIGURE, /* right-aligned */
};

struct out_col {
	const char *head;
	enum out_kind kind;
	unsigned int gap; /* blanks before it */
};

struct out_grid {
	const struct out_col *col;
	size_t n_cols;
	char **cell;
	size_t n_cells;
};

void out_grid_add(struct out_grid *grid, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void out_grid_print(struct out_grid *grid, FILE *to);

/* The width of the terminal behind a stream; without a terminal, COLUMNS, or 80. */
size_t out_columns(FILE *to);

/* Prints a name from outside in a form that is safe to show. */
void out_shown(FILE *to, const char *name);

/*
 * A target's name as all tables and notices show it, with the process that pid= limits it to: two
 * targets may differ by that alone. The caller frees out_target_name().
 */
struct result_target;
char *out_target_name(const struct result_target *target);
void out_target(FILE *to, const struct result_target *target);

/* Does the stream take escapes: a terminal, not a dumb one, and NO_COLOR unset or empty? */
bool out_has_colour(FILE *to);

#endif
