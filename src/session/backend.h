/* SPDX-License-Identifier: MIT */
#ifndef SB_BACKEND_H
#define SB_BACKEND_H

#include "session.h"

/*
 * Ways to make a function slower, as one table. The tracer drives the chosen backend through these
 * functions and knows nothing else about it. session.h describes their contracts; its functions are
 * those of the inject backend.
 */
struct backend {
	const char *name;
	const char *summary;
	/* Can this machine run it at all? 0, or negative with the reason and the remedy. */
	int (*probe)(struct sb_err *err);
	struct session *(*open)(const struct session_config *cfg, struct sb_err *err);
	int (*check)(struct session *s, struct sb_err *err);
	int (*attach)(struct session *s, struct sb_err *err);
	enum session_end (*step)(struct session *s, int *next_ms, struct sb_err *err);
	int (*fd)(const struct session *s);
	void (*counts)(struct session *s, struct result_counts *counts, double *t_s);
	void (*detach)(struct session *s);
	struct result *(*result)(struct session *s);
	/* Changes of a running session: see session.h. */
	int (*add)(struct session *s, const struct spec *spec, size_t *index, struct sb_err *err);
	int (*remove)(struct session *s, size_t index, struct sb_err *err);
	void (*update)(struct session *s, size_t index, uint64_t delay_ns, uint64_t every);
	void (*enable)(struct session *s, bool on);
	bool (*enabled)(const struct session *s);
	void (*mute)(struct session *s, size_t index, bool mute);
	/* All three NULL: the backend cannot measure how long calls take. */
	void (*time)(struct session *s, size_t index, bool on);
	void (*spans)(struct session *s, size_t index, struct result_spans *spans);
	bool (*timing)(const struct session *s);
	size_t (*targets)(const struct session *s);
	void (*target)(struct session *s, size_t index, struct session_target *out);
	void (*state)(const struct session *s, size_t index, struct session_target *out);
	/* NULL: the backend cannot count by function. */
	size_t (*functions)(struct session *s, size_t index, struct session_function **list);
	size_t (*lanes)(struct session *s, struct session_lane **lanes, uint64_t *t_ns);
	size_t (*pids)(struct session *s, pid_t **pids);
	struct result *(*list)(struct session *s, struct sb_err *err);
	void (*close)(struct session *s);
	/* Removes what a dead tracer has left outside of processes. May be NULL. */
	void (*recover)(void);
	uint64_t delay_max_ns; /* 0: the limit of the grammar */
};

extern const struct backend backend_inject, backend_uprobe, backend_kmod;

#endif
