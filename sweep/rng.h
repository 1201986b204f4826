/* SPDX-License-Identifier: MIT */
#ifndef SWEEP_RNG_H
#define SWEEP_RNG_H

#include <stddef.h>
#include <stdint.h>

/*
 * The one source of randomness: xoshiro256** (Blackman and Vigna 2018), seeded by splitmix64. The
 * same seed gives the same numbers on every machine, so that a recorded seed repeats a design.
 */
struct rng {
	uint64_t s[4];
};

void rng_seed(struct rng *rng, uint64_t seed);
uint64_t rng_u64(struct rng *rng);
uint32_t rng_below(struct rng *rng, uint32_t n); /* uniform in [0, n), n >= 1 */
double rng_uniform(struct rng *rng);		 /* in (0, 1) */
double rng_normal(struct rng *rng);
void rng_shuffle(struct rng *rng, int *v, size_t n);

#endif
