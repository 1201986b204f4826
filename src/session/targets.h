/* SPDX-License-Identifier: MIT */
#ifndef SB_TARGETS_H
#define SB_TARGETS_H

#include "session.h"
#include "elf/resolve.h"
#include "inject/page.h"

/*
 * What one target of a session is doing, the same for every backend that finds names itself: how it
 * was asked for, whether it is open, and what came of looking for it. A session holds an array of
 * them; those that were removed keep their place. Nothing here touches a process or the kernel.
 */
struct target {
	const struct spec *spec;
	struct spec *own; /* of one that was added */
	uint64_t delay_ns, every;
	bool changed;		/* its delay, while it ran */
	bool removed, muted;	/* taken out; switched off by itself */
	bool again;		/* it had been here before: its sites and figures have its number */
	bool open;		/* counted (and delayed) now */
	bool timed, timed_once; /* how long its calls take is asked for, or was */
	uint64_t opened_at;	/* ns, while open */
	uint64_t active_ns;	/* of earlier openings */
	bool module_seen, planted, noted;
	bool clashes;	       /* one of its functions is another target's */
	struct sb_err why;     /* last failure to find it */
	struct sb_err barred;  /* what kept a process from being hooked at all */
	enum guess guess;      /* what its hint is */
	struct page_sums past; /* of processes that ended */
	struct result_refused *refused;
	size_t n_refused;
	size_t sites_ok, sites_refused; /* as session_check() found */
	uint64_t root;			/* uprobe: whom it is for; 0: every process */
	struct line *line;		/* kmod: what it is in the module\'s list */
	size_t n_lines;
};

void target_init(struct target *t, const struct spec *spec);
void target_free(struct target *t); /* what it owns */
void target_change(struct target *t, uint64_t delay_ns, uint64_t every);

/* Where one that is to be added goes: behind the others, or where it was before it was removed.
 * SB_EEXIST: it is there; SB_ENOMEM: there is no room. */
int targets_place(const struct target *list, size_t n, size_t max, const struct spec *spec,
		  size_t *index, struct sb_err *err);
/* Puts it there, not looked for yet; and takes back one that never came to anything. */
void targets_enter(struct target *list, size_t *n, size_t index, const struct spec *spec);
void targets_forget(struct target *list, size_t *n, size_t index);

/* The one that --start-on waits for; SIZE_MAX: none, it is a file. */
size_t targets_start_on(const struct target *list, size_t n, const char *text);

/* Looks for it in a process, and notes what came of it. hints: may a whole symbol table be read for
 * them? They are, at the first failure of a kind. As resolve_target(). */
struct resolve_request target_request(const struct spec *spec);
int target_resolve(struct target *t, pid_t pid, const struct maps *maps,
		   const struct resolve_access *access, bool hints, struct resolve_result *res);

/* One that is added and that nobody maps: no process will where its file is not there (SB_EFILE, in
 * none of their roots; our own without any) or is no ELF file (SB_ENOELF). */
int target_check_file(const struct target *t, const pid_t *pids, size_t n, struct sb_err *err);

/* The dynamic linker's notice of a new library, where the process has one. The caller frees res. */
bool target_find_bell(pid_t pid, const struct maps *maps, const struct resolve_access *access,
		      struct resolve_result *res);

/*
 * Its window, once the session's own has opened at window_ns (0: not yet): is it within; ns until
 * that changes, UINT64_MAX: never; and opening or closing it.
 */
bool target_in_window(const struct target *t, uint64_t window_ns, uint64_t now);
uint64_t target_until_change(const struct target *t, uint64_t window_ns, uint64_t now);
void target_switch(struct target *t, bool open, uint64_t now);

/* For sbctl: all but its counts and whether it is pending. */
void target_show(const struct target *t, struct session_target *out);
/* For the result: what was asked, how long it was open, and refusals; then, with counts and sites,
 * what came of it. For `list`: all of it, from its sites. */
void target_fill(const struct target *t, uint64_t now, struct result_target *rt);
void target_outcome(const struct target *t, const struct page_sums *sums, struct result_target *rt);
/* False: there is no one figure of what was given, and it says why. */
bool target_has_given(const struct target *t, const struct page_sums *sums,
		      struct result_given *given);
void target_list(const struct target *t, struct result_target *rt);

#endif
