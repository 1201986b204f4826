/* SPDX-License-Identifier: MIT */
#include "rng.h"

#include <math.h>

static uint64_t splitmix(uint64_t *x)
{
	uint64_t z = *x += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void rng_seed(struct rng *rng, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		rng->s[i] = splitmix(&seed);
}

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

uint64_t rng_u64(struct rng *rng)
{
	uint64_t *s = rng->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

/*
 * Lemire's multiplication; values that would be favoured are discarded: those whose lower half is
 * below 2^32 mod n. That is less than n, so few values need the division.
 */
uint32_t rng_below(struct rng *rng, uint32_t n)
{
	uint64_t m = (rng_u64(rng) >> 32) * n;

	if ((uint32_t)m < n) {
		uint32_t least = -n % n;

		while ((uint32_t)m < least)
			m = (rng_u64(rng) >> 32) * n;
	}
	return (uint32_t)(m >> 32);
}

double rng_uniform(struct rng *rng)
{
	return ((double)(rng_u64(rng) >> 11) + 0.5) * 0x1p-53;
}

double rng_normal(struct rng *rng)
{
	double r = sqrt(-2 * log(rng_uniform(rng)));

	return r * cos(2 * M_PI * rng_uniform(rng));
}

void rng_shuffle(struct rng *rng, int *v, size_t n)
{
	for (size_t i = n; i > 1; i--) {
		size_t j = rng_below(rng, (uint32_t)i);
		int t = v[i - 1];

		v[i - 1] = v[j];
		v[j] = t;
	}
}
