/* SPDX-License-Identifier: MIT */
#ifndef SB_UPROBE_SESSION_H
#define SB_UPROBE_SESSION_H

#include "inject/uprobe/uprobe.h"
#include "src/base/must.h"
#include "src/session/processes.h"
#include "src/session/targets.h"
#include "src/session/warnings.h"

/*
 * The session of the uprobe backend; shared by the files of this folder only. What
 * the functions promise is written at session.h. Nobody is stopped and nothing is written into a
 * process: places in files are armed (inject/uprobe/), and the kernel counts and spins for the
 * processes that are entered there.
 *
 * A record is one program image of one process, as in the other backend; it is known to the
 * kernel's side by its row. A fork has the mappings of its parent, so it is not looked at: it
 * shares its parent's `image`.
 */
struct urecord {
	pid_t pid;
	uint32_t row, generation;
	uint32_t image; /* the row whose look at /proc/PID/maps speaks for this one */
	char comm[64];
	char *exe;
	bool ended;
	struct result_counts *counts; /* by target, once it has ended */
	uint64_t since_ns;
	uint64_t *spent; /* by target: what it had been delayed at the last look */
	bool rung;	 /* it has loaded libraries since it was looked at */
	bool belled;	 /* the dynamic linker's notice is armed in it alone, as ... */
	size_t bell;	 /* ... of uprobes_bell() */
	struct urecord *next;
};

/* A place in a file that is armed for a target, or a doorbell. */
struct uplace {
	size_t target;
	bool bell, armed;
	bool waiting; /* for usession_look() to arm what it has found together */
	uint32_t dev;
	uint64_t inode, offset;
	size_t id; /* of uprobes_arm() */
	/* Held: the kernel names the place by a descriptor of the image's, to other tools, too. */
	struct image *img;
	char *module, *symbol, *build_id;
	uint64_t address, size; /* in the first process that was looked at */
	uint32_t *rows;		/* images that map it */
	size_t n_rows;
};

struct session {
	const struct session_config *cfg;
	struct uprobes *u; /* NULL: only looking */
	struct target *target;
	size_t n_targets, max_targets;
	bool enabled, armed, detached;
	bool grown; /* it has forked or execed since it was taken */
	bool deaf;  /* a dynamic linker has no doorbell: its processes are looked at now and then */
	struct urecord *records;
	struct uplace *place;
	size_t n_places;
	struct upending *pending;
	size_t n_pending;
	pid_t root_pid[64]; /* pid= of targets; the index is the bit */
	uint64_t attached_ns, window_ns, delays_ns, last_slow, next_look;
	uint64_t started_real, ended_real;
	double wall_s;
	size_t start_on_target; /* SIZE_MAX: none */
	bool slow_measuring, slow_warned;
	uint64_t lost; /* events, as known so far */
	struct warnings warnings;
};

#define usession_warn(s, ...) warnings_add(&(s)->warnings, __VA_ARGS__)

/* session/uprobe/record.c: by the row of its image, by a living process; NULL: none. */
struct urecord *usession_record(const struct session *s, uint32_t row);
struct urecord *usession_record_of(const struct session *s, pid_t pid);
struct urecord *usession_record_new(struct session *s, pid_t pid, uint32_t row,
				    uint32_t generation);
void usession_record_free(struct urecord *rec);
void usession_end_record(struct session *s, struct urecord *rec); /* takes its counters */
/* Adds what a record has counted of a target; the sum over all records and what ended before. */
void usession_sums(const struct session *s, const struct urecord *rec, size_t target,
		   struct page_sums *sums);
void usession_target_sums(const struct session *s, size_t target, struct page_sums *sums);
void usession_counts_from(const struct page_sums *sums, struct result_counts *counts);

/* session/uprobe/find.c: everybody who is meant; what was found before is armed already. */
void usession_look_everywhere(struct session *s);
/* What of the targets a process maps, armed unless the session only looks. row: its
 * image's, 0: nobody's. */
void usession_look(struct session *s, pid_t pid, uint32_t row);
/* Targets whose MODULE is a path, in files that nobody needs to have mapped. */
void usession_look_files(struct session *s);
/* A target that is hopeless: its module is mapped and has no such function, or none can be armed.
 */
int usession_judge(const struct session *s, size_t target, struct sb_err *err);

/* session/uprobe/tree.c */
int usession_take_all(struct session *s, struct sb_err *err);
int usession_roots(struct session *s, struct sb_err *err); /* pid= of targets, into processes */
uint64_t usession_root(struct session *s, pid_t pid);	   /* 0: there are too many */
void usession_hear(struct session *s);			   /* what the kernel told */
bool usession_running(const struct session *s); /* of the tree, or the launched command */

/* session/uprobe/window.c */
void usession_apply(struct session *s, size_t target);
uint64_t usession_windows(struct session *s, uint64_t now); /* ns until the next change */
bool usession_slow(struct session *s, uint64_t now, struct sb_err *err);
void usession_close_windows(struct session *s);

/* session/uprobe/change.c: what the kernel's side cannot do, whatever the process; see session.h */
int usession_check_spec(const struct session *s, const struct spec *spec, struct sb_err *err);
int usession_add(struct session *s, const struct spec *spec, size_t *index, struct sb_err *err);
int usession_remove(struct session *s, size_t index, struct sb_err *err);
void usession_update(struct session *s, size_t index, uint64_t delay_ns, uint64_t every);
void usession_enable(struct session *s, bool on);
bool usession_enabled(const struct session *s);
void usession_mute(struct session *s, size_t index, bool mute);
size_t usession_targets(const struct session *s);
void usession_target(struct session *s, size_t index, struct session_target *out);
void usession_state(const struct session *s, size_t index, struct session_target *out);
size_t usession_lanes(struct session *s, struct session_lane **lanes, uint64_t *t_ns);
size_t usession_pids(struct session *s, pid_t **pids);

/* session/uprobe/result.c */
void usession_counts(struct session *s, struct result_counts *counts, double *t_s);
struct result *usession_result(struct session *s);
struct result *usession_list(struct session *s, struct sb_err *err);

/* session/uprobe/clash.c: a process that has a jump of sbinject's at this place of a file, or 0;
 * has one?
 */
pid_t usession_clash(uint32_t dev, uint64_t inode, uint64_t offset);
bool usession_clash_in(pid_t pid, uint32_t dev, uint64_t inode, uint64_t offset);

/* session/uprobe/bell.c: is there a target that a library could bring? */
bool usession_awaits(const struct session *s);
/* The dynamic linker's notice armed in one process only, whose image has that row: true, it is (or
 * cannot be, and the session is deaf); false: it is to be armed for all. */
bool usession_ring_one(struct session *s, const char *path, uint32_t dev, uint64_t inode,
		       uint64_t offset, pid_t pid, uint32_t row);
void usession_ring_none(struct session *s);	  /* at the end: none rings any more */
bool usession_hears_all(const struct session *s); /* it is armed for all */

#endif
