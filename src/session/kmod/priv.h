/* SPDX-License-Identifier: MIT */
#ifndef SB_KMOD_PRIV_H
#define SB_KMOD_PRIV_H

#include "src/session/targets.h"

/* The session of the kmod backend; shared by the files of this folder only. */

/* PATH:SYMBOL in the module's form. A target is open while its lines are in the list. */
struct line {
	char *name, *module, *symbol, *build_id;
	uint64_t address, size;
	bool in;       /* it is in the list now */
	uint64_t past; /* hits of earlier times in the list */
};

struct session {
	const struct session_config *cfg;
	struct target *target;
	size_t n_targets, max_targets;
	bool enabled, armed, detached;
	uint64_t attached_ns, started_real, ended_real;
	uint64_t delay_before; /* the module's total at the start */
	double wall_s;
};

/* lines.c */
int ksession_check_spec(const struct spec *spec, struct sb_err *err);
/* Finds the lines of a target (t->line), in the module's own form. */
int ksession_find(struct session *s, struct target *t, struct sb_err *err);
void ksession_free_lines(struct target *t);
int ksession_put_in(struct session *s, struct target *t, struct sb_err *err);
void ksession_take_out(struct target *t); /* keeps its hits so far */
pid_t ksession_whom(const struct session *s, const struct target *t);
void ksession_counts_of(struct session *s, struct result_counts *counts); /* of all targets */

/* change.c; see session.h */
int ksession_add(struct session *s, const struct spec *spec, size_t *index, struct sb_err *err);
int ksession_remove(struct session *s, size_t index, struct sb_err *err);
void ksession_update(struct session *s, size_t index, uint64_t delay_ns, uint64_t every);
void ksession_enable(struct session *s, bool on);
bool ksession_enabled(const struct session *s);
void ksession_mute(struct session *s, size_t index, bool mute);
size_t ksession_targets(const struct session *s);
void ksession_target(struct session *s, size_t index, struct session_target *out);
void ksession_state(const struct session *s, size_t index, struct session_target *out);
size_t ksession_lanes(struct session *s, struct session_lane **lanes, uint64_t *t_ns);
size_t ksession_pids(struct session *s, pid_t **pids);

#endif
