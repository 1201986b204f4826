/* SPDX-License-Identifier: MIT */
/* Stacks of `sbinject report`: lines for flame graph tools, and a flame graph. */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"
#include "src/base/text.h"

enum {
	DEPTH_MAX = 1000, /* of lines; what is deeper counts there as [deeper] */
	ROWS_MAX = 250,	  /* of the picture */
	WIDTH = 1200,
	ROW = 17,
	MARGIN = 10,
	HEAD = 36,
	COLUMN = 7, /* about the width of a character */
};

#define LEAST 0.2 /* a narrower frame is not drawn */

/*
 * A walk over the stacks, parents first, without recursion. `from` is where the frame begins among
 * the frames of its row, in ns.
 */
typedef void visit_fn(void *ctx, uint32_t node, size_t depth, uint64_t from, bool deepest);

struct step {
	uint32_t node;
	uint64_t from;
};

static void walk(const struct sum *sum, size_t depth_max, visit_fn *visit, void *ctx)
{
	const struct stacks_node *node = sum->stacks.node;
	struct step *at = must_calloc(depth_max + 1, sizeof(*at));
	size_t depth = 0;

	at[0] = (struct step){ sum->stack_list, 0 };
	for (;;) {
		uint32_t i = at[depth].node;

		if (i) {
			bool deepest = depth + 1 == depth_max;

			visit(ctx, i, depth, at[depth].from, deepest);
			at[depth].node = node[i].next;
			if (node[i].child && !deepest) {
				at[depth + 1] = (struct step){ node[i].child, at[depth].from };
				at[depth].from += node[i].all_ns;
				depth++;
			} else {
				at[depth].from += node[i].all_ns;
			}
		} else if (depth-- == 0) {
			break;
		}
	}
	free(at);
}

/* ---- lines ---- */

struct folding {
	FILE *to;
	const struct sum *sum;
	char *path; /* of the frame of the last visit */
	size_t room;
	size_t end[DEPTH_MAX]; /* of each frame of the path */
};

/* A frame's name in a line: ';' separates frames there, and a line is one. */
static char *folded_name(const struct sum *sum, uint32_t key)
{
	char *frame = out_report_frame(sum, key), *shown = text_show(frame);

	for (char *c = shown; *c; c++)
		*c = *c == ';' ? ':' : *c;
	free(frame);
	return shown;
}

static void fold(void *ctx, uint32_t i, size_t depth, uint64_t from, bool deepest)
{
	struct folding *f = ctx;
	const struct stacks_node *node = &f->sum->stacks.node[i];
	size_t at = depth ? f->end[depth - 1] : 0, len;
	char *name = folded_name(f->sum, node->key);

	(void)from;
	len = strlen(name);
	if (at + len + 2 > f->room) {
		f->room = 2 * (at + len + 2);
		f->path = must_realloc(f->path, f->room);
	}
	if (depth)
		f->path[at++] = ';';
	memcpy(f->path + at, name, len + 1);
	f->end[depth] = at + len;
	free(name);
	if (node->own_ns)
		fprintf(f->to, "%s %" PRIu64 "\n", f->path, node->own_ns);
	if (deepest && node->child)
		fprintf(f->to, "%s;[deeper] %" PRIu64 "\n", f->path, node->all_ns - node->own_ns);
}

void out_report_folded(FILE *to, const struct sum *sum)
{
	struct folding *f = must_calloc(1, sizeof(*f));

	f->to = to;
	f->sum = sum;
	walk(sum, DEPTH_MAX, fold, f);
	free(f->path);
	free(f);
}

/* ---- the picture ---- */

struct picture {
	FILE *to;
	const struct sum *sum;
	uint64_t whole;
	size_t rows;
};

static double x_of(const struct picture *p, uint64_t ns)
{
	return p->whole ? (double)ns / (double)p->whole * (WIDTH - 2 * MARGIN) : 0;
}

static void count_rows(void *ctx, uint32_t i, size_t depth, uint64_t from, bool deepest)
{
	struct picture *p = ctx;

	(void)from;
	(void)deepest;
	if (x_of(p, p->sum->stacks.node[i].all_ns) >= LEAST && depth + 1 > p->rows)
		p->rows = depth + 1;
}

/* Text of XML. What XML does not allow at all is not in a result of text_show(), but for two
 * characters, U+FFFE and U+FFFF. */
static void put_xml(FILE *to, const char *shown)
{
	static const char *const escapes[256] = {
		['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
	};

	for (; *shown; shown++) {
		if (!strncmp(shown, "\xef\xbf\xbe", 3) || !strncmp(shown, "\xef\xbf\xbf", 3)) {
			fputc('?', to);
			shown += 2;
		} else if (escapes[(unsigned char)*shown]) {
			fputs(escapes[(unsigned char)*shown], to);
		} else {
			fputc(*shown, to);
		}
	}
}

/* A colour of its own for each function: warm for native ones, green for Python, grey for delays.
 */
static void put_colour(const struct picture *p, uint32_t key)
{
	uint32_t hash = key / 2 * 2654435761u >> 16;
	bool python = key != STACKS_OTHERS && p->sum->function[key / 2 - 1].code == TRACE_PYTHON;

	if (key == STACKS_OTHERS || key % 2)
		fprintf(p->to, "hsl(220,8%%,%u%%)", 70 + hash % 10);
	else
		fprintf(p->to, "hsl(%u,%u%%,%u%%)", (python ? 95 : 15) + hash % 40,
			65 + hash / 41 % 20, 62 + hash / 823 % 12);
}

static void put_label(const struct picture *p, const char *shown, double x, double y, double width)
{
	size_t columns = (size_t)(width / COLUMN), n;
	char *part;

	if (columns < 3)
		return;
	part = text_middle(shown, columns);
	n = text_clip(part, columns);
	part[n] = '\0';
	fprintf(p->to, "<text x=\"%.1f\" y=\"%.1f\">", x + 3, y + ROW - 5);
	put_xml(p->to, part);
	fputs("</text>", p->to);
	free(part);
}

static void put_frame(void *ctx, uint32_t i, size_t depth, uint64_t from, bool deepest)
{
	struct picture *p = ctx;
	const struct stacks_node *node = &p->sum->stacks.node[i];
	double x = MARGIN + x_of(p, from), width = x_of(p, node->all_ns);
	double y = HEAD + (double)(p->rows - depth - 1) * ROW;
	char *frame, *shown;

	(void)deepest;
	if (width < LEAST)
		return;
	frame = out_report_frame(p->sum, node->key);
	shown = text_show(frame);
	fputs("<g><title>", p->to);
	put_xml(p->to, shown);
	fprintf(p->to,
		": %.3f us with its calls (%.2f %%), %.3f us own, %" PRIu32 " calls</title>"
		"<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"",
		(double)node->all_ns / 1e3, 100.0 * (double)node->all_ns / (double)p->whole,
		(double)node->own_ns / 1e3, node->n, x, y, width, ROW - 1);
	put_colour(p, node->key);
	fputs("\"/>", p->to);
	put_label(p, shown, x, y, width);
	fputs("</g>\n", p->to);
	free(shown);
	free(frame);
}

void out_report_flame(FILE *to, const struct sum *sum, const char *file)
{
	struct picture p = { .to = to, .sum = sum };
	char *shown = text_show(file);
	size_t height;

	for (uint32_t i = sum->stack_list; i; i = sum->stacks.node[i].next)
		p.whole += sum->stacks.node[i].all_ns;
	walk(sum, ROWS_MAX, count_rows, &p);
	height = HEAD + p.rows * ROW + MARGIN;
	fprintf(to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" "
		"viewBox=\"0 0 %d %zu\" font-family=\"monospace\" font-size=\"11\">\n"
		"<rect width=\"%d\" height=\"%zu\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"22\" "
		"font-size=\"14\">own time of calls: ",
		WIDTH, height, WIDTH, height, WIDTH, height, MARGIN);
	put_xml(to, shown);
	fputs("</text>\n", to);
	if (p.whole)
		walk(sum, ROWS_MAX, put_frame, &p);
	fputs("</svg>\n", to);
	free(shown);
}
