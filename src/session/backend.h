/* SPDX-License-Identifier: MIT */
#ifndef SB_BACKEND_H
#define SB_BACKEND_H

#include "session.h"

/*
 * Ways to make a function slower, as one table. The tracer drives whichever was chosen through
 * these functions and knows no more of it; what they promise is written at session.h, whose
 * functions are the first backend.
 */
struct backend {
	const char *name;
	const char *summary;
	/* Can this machine do it at all? 0, or negative with the reason and the remedy. */
	int (*probe)(struct sb_err *err);
	struct session *(*open)(const struct session_config *cfg, struct sb_err *err);
	int (*check)(struct session *s, struct sb_err *err);
	int (*attach)(struct session *s, struct sb_err *err);
	enum session_end (*step)(struct session *s, int *next_ms, struct sb_err *err);
	int (*fd)(const struct session *s);
	void (*counts)(struct session *s, struct result_counts *counts, double *t_s);
	void (*detach)(struct session *s);
	struct result *(*result)(struct session *s);
	/* Changes while it runs: see session.h. */
	int (*add)(struct session *s, const struct spec *spec, size_t *index, struct sb_err *err);
	int (*remove)(struct session *s, size_t index, struct sb_err *err);
	void (*update)(struct session *s, size_t index, uint64_t delay_ns, uint64_t every);
	void (*enable)(struct session *s, bool on);
	bool (*enabled)(const struct session *s);
	void (*mute)(struct session *s, size_t index, bool mute);
	/* All three NULL: it cannot tell how long calls take. */
	void (*time)(struct session *s, size_t index, bool on);
	void (*spans)(struct session *s, size_t index, struct result_spans *spans);
	bool (*timing)(const struct session *s);
	size_t (*targets)(const struct session *s);
	void (*target)(struct session *s, size_t index, struct session_target *out);
	void (*state)(const struct session *s, size_t index, struct session_target *out);
	/* NULL: it cannot count by function. */
	size_t (*functions)(struct session *s, size_t index, struct session_function **list);
	size_t (*lanes)(struct session *s, struct session_lane **lanes, uint64_t *t_ns);
	size_t (*pids)(struct session *s, pid_t **pids);
	struct result *(*list)(struct session *s, struct sb_err *err);
	void (*close)(struct session *s);
	/* NULL, or takes out what a tracer that died has left outside of processes. */
	void (*recover)(void);
	uint64_t delay_max_ns; /* 0: what the grammar allows */
};

extern const struct backend backend_inject, backend_uprobe, backend_kmod;

#endif
