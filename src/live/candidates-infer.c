/* SPDX-License-Identifier: MIT */
/* Samples become shares, and functions an order. */
#include "candidates-infer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/base/must.h"

#define CONFIDENCE 0.95
#define Z	   1.959964
#define LEAST	   0.01

enum { SAMPLES_LEAST = 5 };

/* Wilson's interval: right at 0 and at 1, where the blocks do not scatter at all. */
static void widen(struct ratio *r, double all)
{
	double p = r->est, z2 = Z * Z / all;
	double middle = (p + z2 / 2) / (1 + z2);
	double half = Z * sqrt(p * (1 - p) / all + z2 / (4 * all)) / (1 + z2);

	r->lo = isnan(r->lo) ? middle - half : fmin(r->lo, middle - half);
	r->hi = isnan(r->hi) ? middle + half : fmax(r->hi, middle + half);
	r->lo = fmax(0, r->lo);
	r->hi = fmin(1, r->hi);
}

static int by_samples(const void *a, const void *b)
{
	const struct candidate_tally *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples < y->samples ? 1 : -1;
	return (x->function > y->function) - (x->function < y->function);
}

size_t candidates_rank(struct candidate_tally *tally, size_t n, const double *all, size_t blocks)
{
	double sum = 0;
	size_t good = 0;

	for (size_t b = 0; b < blocks; b++)
		sum += all[b];
	for (size_t i = 0; i < n; i++) {
		tally[i].share = ratio_of(tally[i].in, all, blocks, CONFIDENCE);
		if (sum > 0)
			widen(&tally[i].share, sum);
	}
	if (n)
		qsort(tally, n, sizeof(*tally), by_samples);
	while (good < n && tally[good].samples >= SAMPLES_LEAST && tally[good].share.est >= LEAST)
		good++;
	return good;
}

char *candidates_word(const char *text)
{
	const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "_-+./:=@%,#";
	char *word = NULL;
	size_t size;
	FILE *to;

	if (*text && *text != '#' && text[strspn(text, plain)] == '\0')
		return must_strdup(text);
	to = open_memstream(&word, &size);
	if (!to)
		abort();
	fputc('\'', to);
	for (; *text; text++)
		fputs(*text == '\'' ? "'\\''" : (const char[]){ *text, '\0' }, to);
	fputc('\'', to);
	if (fclose(to) || !word)
		abort();
	return word;
}
