/* SPDX-License-Identifier: MIT */
#ifndef SB_LANDING_H
#define SB_LANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which branches land in the first bytes of the functions to be hooked. One pass over the text's
 * bytes looks for every rel32 and rel8 value that would land in a window, wherever it stands (about
 * 2 GB/s). Each candidate is then confirmed by decoding from the start of the function that holds
 * it. A candidate in code with an unknown start counts as a landing: a refusal is cheap, a wrong
 * hook is not.
 *
 * Life cycle: create, add windows, scan each segment once, pass to plan_make(), free. Addresses are
 * of one address space (file or run-time), the same throughout.
 */
struct landing_set;

struct landing {
	uint64_t from;	   /* address of the branch instruction */
	uint64_t to;	   /* where it lands */
	uint64_t field;	   /* address of its displacement field */
	uint8_t field_len; /* 1 or 4 */
	bool call;	   /* a call, not a jump */
	bool confirmed;	   /* decoded; false: function start unknown */
};

/*
 * Not a landing: a call or a jump from another function to the first byte of the window's function.
 * Those are the ordinary calls that the hook is for. There are hundreds of thousands of them, and
 * they are not recorded.
 */

/*
 * The bounds of the function around addr, as image_function_at(). The scan calls it for each
 * candidate.
 */
typedef bool landing_bounds_fn(void *ctx, uint64_t addr, uint64_t *start, uint64_t *end);

struct landing_set *landing_new(void); /* NULL: out of memory */
void landing_free(struct landing_set *set);

/*
 * Adds a window: landings on [addr, addr + len) are recorded. Windows may overlap. Only before
 * landing_scan().
 */
int landing_add_window(struct landing_set *set, uint64_t addr, unsigned int len);

/*
 * Scans one text segment. May be called for several segments of one module. Returns 0 or
 * -SB_ENOMEM. Does not keep text.
 */
int landing_scan(struct landing_set *set, const uint8_t *text, uint64_t text_addr, size_t len,
		 landing_bounds_fn *bounds, void *ctx);

/* Copies at most cap of the landings on [addr, addr + len); returns how many there are. */
size_t landing_query(const struct landing_set *set, uint64_t addr, unsigned int len,
		     struct landing *out, size_t cap);

#endif
