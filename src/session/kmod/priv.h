/* SPDX-License-Identifier: MIT */
#ifndef SB_KMOD_PRIV_H
#define SB_KMOD_PRIV_H

#include "src/session/core.h"

/* The session of the kmod backend; shared by the files of this folder only. */

/* PATH:SYMBOL in the module's form. A target is open while its lines are in the list. */
struct line {
	char *name, *module, *symbol, *build_id;
	uint64_t address, size;
	bool in;       /* it is in the list now */
	uint64_t past; /* hits of earlier times in the list */
};

/* What only this backend knows of a target. */
struct ktarget {
	struct line *line;
	size_t n_lines;
};

struct kmod_session {
	SESSION_CORE;
	struct ktarget *own;   /* by target */
	uint64_t delay_before; /* the module's total at the start */
};

static inline struct kmod_session *ksession(const struct session_core *core)
{
	return (struct kmod_session *)core;
}

/* lines.c */
int ksession_check_spec(const struct spec *spec, struct sb_err *err);
/* Finds the lines of a target, in the module's own form. */
int ksession_find(struct kmod_session *s, size_t target, struct sb_err *err);
void ksession_free_lines(struct ktarget *own);
/* Adds the lines that are not in the list; the others get the delay. */
int ksession_put_in(struct kmod_session *s, size_t target, struct sb_err *err);
void ksession_take_out(struct kmod_session *s, size_t target); /* keeps its hits so far */
pid_t ksession_whom(const struct kmod_session *s, size_t target);
void ksession_counts_of(struct kmod_session *s, struct result_counts *counts); /* of all targets */

#endif
