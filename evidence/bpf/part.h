/* SPDX-License-Identifier: MIT */
#ifndef SB_EVIDENCE_PART_H
#define SB_EVIDENCE_PART_H

#include <stdbool.h>

struct bpf_object;

/*
 * An object of programs beside the main one, which adds to the same rows. A kernel that has no
 * place for one of them, or permits tracepoints and no programs at its functions, lacks the
 * counters of that program and no others.
 */
enum { PART_PROGRAMS = 16 };

struct part_program {
	const char *name, *at;	  /* in the object; the tracepoint or the kernel's function */
	unsigned int least, most; /* parameters of the function; both 0: a tracepoint */
};

struct part_image {
	const char *start, *end;
	const struct part_program *program; /* at most PART_PROGRAMS; tracepoints first */
	unsigned int n;
};

struct evidence_part;

/* Looks which places the running kernel has; loads nothing. */
struct evidence_part *part_open(const struct part_image *image);
void part_close(struct evidence_part *p); /* NULL is harmless */

/* NULL: the place of the program is there (before part_attach()), or it is attached (after). Else
 * why not. */
const char *part_why(const struct evidence_part *p, unsigned int i);
/* The program is not to be attached, for this reason. */
void __attribute__((format(printf, 3, 4)))
part_leave(struct evidence_part *p, unsigned int i, const char *fmt, ...);

/* main: loaded, it outlives this; its maps of the names in `shared`, which ends with NULL, are
 * those of this object. Never fails: what cannot be attached has a reason. */
void part_attach(struct evidence_part *p, const struct bpf_object *main, const char *const *shared);

#endif
