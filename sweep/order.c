/* SPDX-License-Identifier: MIT */
#include "order.h"

#include <string.h>

void order_init(struct order *order, size_t n_arms, bool mirrored)
{
	memset(order, 0, sizeof(*order));
	order->n_arms = n_arms;
	order->mirrored = mirrored;
}

size_t order_length(const struct order *order)
{
	return order->mirrored ? 2 * order->n_arms : order->n_arms;
}

/* The first row is 0, 1, n-1, 2, n-2, ...; the others add 1 each (Williams 1949). */
static int williams(size_t n, size_t row, size_t col)
{
	size_t first = col % 2 ? (col + 1) / 2 : (n - col / 2) % n;

	return (int)((first + row) % n);
}

/* A new square: with an odd number of arms its mirror image is needed for the balance too. */
static void draw_square(struct order *order, struct rng *rng)
{
	size_t n = order->n_arms;
	int label[ORDER_ARMS], turn[2 * ORDER_ARMS];

	order->rows = n % 2 && n > 1 ? 2 * n : n;
	order->used = 0;
	for (size_t i = 0; i < n; i++)
		label[i] = (int)i;
	for (size_t i = 0; i < order->rows; i++)
		turn[i] = (int)i;
	rng_shuffle(rng, label, n);
	rng_shuffle(rng, turn, order->rows);
	for (size_t row = 0; row < order->rows; row++) {
		size_t from = (size_t)turn[row];

		for (size_t col = 0; col < n; col++) {
			size_t c = from < n ? col : n - 1 - col;

			order->row[row][col] = label[williams(n, from % n, c)];
		}
	}
}

void order_block(struct order *order, struct rng *rng, int *seq)
{
	size_t n = order->n_arms;

	if (order->used == order->rows)
		draw_square(order, rng);
	memcpy(seq, order->row[order->used], n * sizeof(*seq));
	for (size_t i = 0; order->mirrored && i < n; i++)
		seq[n + i] = seq[n - 1 - i];
	order->used++;
}
