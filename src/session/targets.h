/* SPDX-License-Identifier: MIT */
#ifndef SB_TARGETS_H
#define SB_TARGETS_H

#include "session.h"
#include "elf/resolve.h"

/*
 * The state of one target of a session, the same for every backend that finds names itself: its
 * settings, whether it is open, and the outcome of the search for it. A session holds an array of
 * targets; removed ones keep their place. Nothing here touches a process or the kernel.
 */
struct target {
	const struct spec *spec;
	struct spec *own; /* of a target that was added, or has args=yes */
	uint64_t delay_ns, every;
	bool changed;	     /* its delay was changed during the run */
	bool removed, muted; /* removed; switched off alone */
	bool again; /* it was removed and added again: its sites and figures have its number */
	bool open;  /* counted (and delayed) now */
	uint64_t opened_at; /* ns, while open */
	uint64_t active_ns; /* of earlier openings */
	bool module_seen, planted, noted;
	bool clashes;	      /* one of its functions is another target's */
	struct sb_err why;    /* last failed search */
	struct sb_err barred; /* why a process could not be hooked at all */
	enum guess guess;     /* kind of the hint in `why` */
	struct result_refused *refused;
	size_t n_refused;
	struct result_refused *untimed; /* hooked, but their calls are not timed */
	size_t n_untimed;
	struct arguments *arguments; /* args=yes: what is known of its functions; or NULL */
	char *left_out;		     /* why not all arguments are recorded; or NULL */
	bool arguments_new;	     /* they are not yet in force */
};

void target_init(struct target *t, const struct spec *spec);
void target_free(struct target *t); /* what it owns */
void target_change(struct target *t, uint64_t delay_ns, uint64_t every);

/* The index for a new target: behind the others, or its old one if it was removed before.
 * SB_EEXIST: it is a target already; SB_ENOMEM: the array is full. */
int targets_place(const struct target *list, size_t n, size_t max, const struct spec *spec,
		  size_t *index, struct sb_err *err);
/* targets_enter() puts it there, not yet searched for. targets_forget() removes a target whose
 * addition failed. */
void targets_enter(struct target *list, size_t *n, size_t index, const struct spec *spec);
void targets_forget(struct target *list, size_t *n, size_t index);

/* The target that --start-on waits for; SIZE_MAX: none, the text is a file. */
size_t targets_start_on(const struct target *list, size_t n, const char *text);

/* A place that cannot be hooked; pid 0: of no process. The texts are copied. */
void target_refuse(struct target *t, const char *module, const char *symbol, uint64_t address,
		   const char *reason, pid_t pid);

/* Searches for the target in a process and records the outcome. hints: whether a whole symbol
 * table may be read for them; this is done at the first failure of a kind. Returns as
 * resolve_target(). */
struct resolve_request target_request(const struct spec *spec);
int target_resolve(struct target *t, pid_t pid, const struct maps *maps,
		   const struct resolve_access *access, bool hints, struct resolve_result *res);

/* args=yes (own is set): the arguments of the first function become the target's values; those of
 * another function must be the same. SB_EREFUSED: they differ, or are not known. */
int target_arguments(struct target *t, const struct resolve_site *rs, struct sb_err *err);
void target_arguments_free(struct target *t);

/* For a new target that no process maps: it never will be mapped if its file does not exist
 * (SB_EFILE: in none of their roots, or in ours if there are no processes) or is not an ELF file
 * (SB_ENOELF). */
int target_check_file(const struct target *t, const pid_t *pids, size_t n, struct sb_err *err);

/*
 * Presets. target_yields(): a function of `t` belongs to an earlier row of its own preset, which is
 * as it should be. target_list_end(): a list of a preset begins at `first`; the index after its
 * last target (first itself: none begins there). target_list_lost(): nothing of that list can be
 * hooked, now or ever, for the given reason ("" where there is none).
 */
bool target_yields(struct target *t, const struct target *other);
size_t target_list_end(const struct target *list, size_t n, size_t first);
int target_list_lost(const struct target *first, const char *reason, struct sb_err *err);

/* The dynamic linker's notice of a new library, if the process has one. The caller frees res. */
bool target_find_doorbell(pid_t pid, const struct maps *maps, const struct resolve_access *access,
			  struct resolve_result *res);

/*
 * The window of a target, once the session's window has opened at window_ns (0: not yet). In order:
 * is `now` inside it; ns until that may change (UINT64_MAX: never); open or close it.
 */
bool target_in_window(const struct target *t, uint64_t window_ns, uint64_t now);
uint64_t target_until_change(const struct target *t, uint64_t window_ns, uint64_t now);
void target_switch(struct target *t, bool open, uint64_t now);

/* For sbctl: everything but the counts. */
void target_show(const struct target *t, struct session_target *out);
/* For the result. target_fill(): the settings, how long it was open, and the refusals.
 * target_outcome(): the outcome, once counts and sites are filled. target_list(), for `list`: all
 * of it, from its sites. */
void target_fill(const struct target *t, struct result_target *rt);
/* The values that a target records of its calls, without their sums. */
void target_values(const struct spec *spec, struct result_times *times);
void target_outcome(const struct target *t, struct result_target *rt);
/* False: there is no single figure of the given delay, and rt->given.reason says why. */
bool target_has_given(const struct target *t, struct result_target *rt);
void target_list(const struct target *t, struct result_target *rt);
/* Adds a site to the result; the texts are copied. */
struct result_site *target_site(struct result_target *rt, const char *module, const char *build_id,
				const char *symbol, uint64_t address, uint64_t size,
				const char *mechanism);

#endif
