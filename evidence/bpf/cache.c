/* SPDX-License-Identifier: MIT */
/* The loader of cache.bpf.c. */
#include "cache.h"

#include "part.h"

extern const char sb_evidence_cache_image[], sb_evidence_cache_image_end[];

enum program {
	ON_BATCH,
	ON_PAGE,
	PROGRAMS,
};

static const struct part_program programs[PROGRAMS] = {
	[ON_BATCH] = { "on_batch", "mm_filemap_get_pages", 0, 0 },
	[ON_PAGE] = { "on_page", "mm_filemap_add_to_page_cache", 0, 0 },
};

static const struct part_image image = { sb_evidence_cache_image, sb_evidence_cache_image_end,
					 programs, PROGRAMS };

struct evidence_part *evidence_cache_open(const struct bpf_object *main)
{
	static const char *const shared[] = { "tasks", "rows", "control", NULL };
	struct evidence_part *p = part_open(&image);

	part_attach(p, main, shared);
	return p;
}

const char *evidence_cache_unknown(const struct evidence_part *p, enum evidence_counter counter)
{
	const char *page = part_why(p, ON_PAGE), *batch = part_why(p, ON_BATCH);

	if (counter == EVIDENCE_CACHE_ADDS)
		return page;
	return counter == EVIDENCE_CACHE_READS || batch ? batch : page;
}
