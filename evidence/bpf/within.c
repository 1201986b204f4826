/* SPDX-License-Identifier: MIT */
/* The loader of within.bpf.c. */
#include "within.h"

#include "part.h"

extern const char sb_evidence_within_image[], sb_evidence_within_image_end[];

enum program {
	ON_CONTENTION,
	ON_CONTENTION_END,
	ON_REQUEST,
	ON_REQUEST_DONE,
	ON_BIO_DONE,
	ON_OPEN,
	PROGRAMS,
};

static const struct part_program programs[PROGRAMS] = {
	[ON_CONTENTION] = { "on_contention", "contention_begin", 0, 0 },
	[ON_CONTENTION_END] = { "on_contention_end", "contention_end", 0, 0 },
	[ON_REQUEST] = { "on_request", "block_bio_queue", 0, 0 },
	[ON_REQUEST_DONE] = { "on_request_done", "block_rq_complete", 0, 0 },
	[ON_BIO_DONE] = { "on_bio_done", "block_bio_complete", 0, 0 },
	[ON_OPEN] = { "on_open", "do_filp_open", 3, 3 },
};

static const struct part_image image = { sb_evidence_within_image, sb_evidence_within_image_end,
					 programs, PROGRAMS };

struct evidence_part *evidence_within_open(const struct bpf_object *main)
{
	static const char *const shared[] = { "tasks", "rows", "control", NULL };
	struct evidence_part *p = part_open(&image);

	part_attach(p, main, shared);
	return p;
}

static const char *either(const struct evidence_part *p, enum program a, enum program b)
{
	return part_why(p, a) ? part_why(p, a) : part_why(p, b);
}

const char *evidence_within_unknown(const struct evidence_part *p, enum evidence_counter counter)
{
	if (counter == EVIDENCE_FILE_OPENS)
		return part_why(p, ON_OPEN);
	return counter <= EVIDENCE_DISK_WRITE_TIME ? either(p, ON_REQUEST, ON_REQUEST_DONE) :
						     either(p, ON_CONTENTION, ON_CONTENTION_END);
}
