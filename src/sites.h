/* SPDX-License-Identifier: MIT */
#ifndef SB_SITES_H
#define SB_SITES_H

#include "../elf/resolve.h"
#include "../inject/plan.h"

/*
 * From resolved names to plans. The plans of an image are made once, in the file's own
 * addresses, with one landing scan for all sites that are asked for together, and moved to
 * where the image is loaded: a hundred processes with one libc cost one scan.
 */
struct image_plans; /* a cache, by image */

struct found_site {
	size_t target;	   /* index */
	struct image *img; /* counted reference */
	uint64_t bias, addr, func, size;
	char *name;
	bool bell, start; /* a doorbell; that of an interpreter */
	struct plan plan; /* run-time addresses */
	enum plan_refusal why;
	char detail[64];
};

/* What a process has of all targets. */
struct found {
	struct found_site *site;
	size_t count;
};

struct image_plans *plans_new(void);
void plans_free(struct image_plans *plans);

/* Fills plan, why and detail of every site that has none yet. All by int3, or all by jump. */
void plans_make(struct image_plans *plans, struct found *found, bool int3);

void found_add(struct found *found, const struct found_site *site); /* takes the references */
void found_free(struct found *found);

#endif
