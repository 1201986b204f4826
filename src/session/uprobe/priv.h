/* SPDX-License-Identifier: MIT */
#ifndef SB_UPROBE_SESSION_H
#define SB_UPROBE_SESSION_H

#include "inject/page.h"
#include "inject/uprobe/kernel.h"
#include "inject/uprobe/uprobe.h"
#include "src/base/must.h"
#include "src/session/core.h"
#include "src/session/processes.h"

/*
 * The session of the uprobe backend; shared by the files of this folder only. backend.h has the
 * contracts of its table. No thread is stopped and nothing is written into a process: places in
 * files are armed (inject/uprobe/), and the kernel counts and spins for the registered processes.
 *
 * A record is one program image of one process, as in the inject backend; the BPF program knows it
 * by its row. A fork has the mappings of its parent, so it is not searched: it shares its parent's
 * `image`.
 */
struct urecord {
	pid_t pid;
	uint32_t row, generation;
	uint32_t image; /* row whose look at /proc/PID/maps is valid for this one */
	char comm[64];
	char *exe;
	bool ended;
	struct result_counts *counts; /* by target, once it has ended */
	uint64_t since_ns;
	uint64_t *spent; /* by target: its delay at the last look */
	bool rung;	 /* it has loaded libraries since the last look */
	bool belled;	 /* the dynamic linker's notice is armed in it alone, as ... */
	size_t doorbell; /* ... of uprobes_doorbell() */
	struct urecord *next;
};

/* A place in a file that is armed for a target, or a doorbell. */
struct uplace {
	size_t target;
	bool doorbell, armed;
	bool waiting; /* usession_look() arms it with the others it has found */
	uint32_t dev;
	uint64_t inode, offset;
	size_t id; /* of uprobes_arm() */
	/* Held: the kernel's name for the place is a descriptor of the image, also for other
	 * tools. */
	struct image *img;
	char *module, *symbol, *build_id;
	uint64_t address, size; /* in the first process that was searched */
	uint32_t *rows;		/* images that map it */
	size_t n_rows;
};

/* A function or a tracepoint of the kernel, as a place of a target. */
struct kplace {
	size_t target;
	char *module, *symbol;
	uint64_t address;
	const char *mechanism;
	uint32_t place; /* of uprobes_kernel() */
};

/* Recorded calls of places in the kernel. */
struct uspans_sums {
	uint64_t calls, lost, filtered;
};

/* What only this backend knows of a target. */
struct utarget {
	uint64_t root;	       /* bit of its process tree; 0: every process */
	struct page_sums past; /* of processes that have ended */
};

struct uprobe_session {
	SESSION_CORE;
	struct uprobes *u;   /* NULL: a session that only looks */
	struct utarget *own; /* by target */
	bool grown;	     /* a fork or exec has occurred since the tree was taken */
	bool deaf; /* a dynamic linker has no doorbell: its processes are searched at intervals */
	struct urecord *records;
	struct uplace *place;
	size_t n_places;
	struct upending *pending;
	size_t n_pending;
	struct kplace *kplace;
	size_t n_kplaces;
	struct uspans *spans; /* recorded calls; NULL: none are */
	struct uspans_sums traced;
	uint64_t kernel_unseen; /* hits of any process that the kernel did not hand on */
	bool kernel_ended;
	pid_t root_pid[64]; /* pid= of targets; the index is the bit */
	uint64_t next_look;
	uint64_t lost; /* lost events, as far as known */
};

static inline struct uprobe_session *usession(const struct session_core *core)
{
	return (struct uprobe_session *)core;
}

/* record.c: the record of a row; the record of a living process. NULL: none. */
struct urecord *usession_record(const struct uprobe_session *s, uint32_t row);
struct urecord *usession_record_of(const struct uprobe_session *s, pid_t pid);
struct urecord *usession_record_new(struct uprobe_session *s, pid_t pid, uint32_t row,
				    uint32_t generation);
void usession_record_free(struct urecord *rec);
void usession_end_record(struct uprobe_session *s, struct urecord *rec); /* takes its counters */
void usession_end_apart(struct uprobe_session *s); /* takes the counters of no process: row 0 */
/* Add the counts of a target: of one record; of all records and those dropped before. */
void usession_sums(const struct uprobe_session *s, const struct urecord *rec, size_t target,
		   struct page_sums *sums);
void usession_target_sums(const struct uprobe_session *s, size_t target, struct page_sums *sums);
void usession_counts_from(const struct page_sums *sums, struct result_counts *counts);

/* find.c: searches all processes concerned. Places found before are armed already. */
void usession_look_everywhere(struct uprobe_session *s);
/* Finds the places that a process maps, and arms them unless the session only looks. row: of its
 * image, 0: none. */
void usession_look(struct uprobe_session *s, pid_t pid, uint32_t row);
/* Targets whose MODULE is a path: finds places in files that no process maps yet. */
void usession_look_files(struct uprobe_session *s);
/* Fails for a hopeless target: its module is mapped and has no such function, or none can be
 * armed. */
int usession_judge(const struct uprobe_session *s, size_t target, struct sb_err *err);

/* tree.c */
int usession_take_all(struct uprobe_session *s, struct sb_err *err);
int usession_roots(struct uprobe_session *s,
		   struct sb_err *err);			     /* pid= of targets, to processes */
uint64_t usession_root(struct uprobe_session *s, pid_t pid); /* 0: there are too many */
void usession_hear(struct uprobe_session *s);		     /* handles events of the kernel */
bool usession_running(const struct uprobe_session *s);	     /* the tree, or the launched command */

/* What follows is for the table of the backend, unless it says otherwise. */

/* kernel.c: targets in the kernel. usession_kernel_add(): finds the names and attaches, unless the
 * session only looks. SB_ENOSYMBOL, SB_EREFUSED: there is none, or none can be hooked. */
int usession_kernel_add(struct uprobe_session *s, size_t target, struct sb_err *err);
/* All of them, in the order given. Optional ones that the kernel lacks are no error. */
int usession_kernel_add_all(struct uprobe_session *s, struct sb_err *err);
void usession_kernel_remove(struct uprobe_session *s, size_t target);
void usession_kernel_sites(struct uprobe_session *s, size_t target, struct result_target *rt);
void usession_times(struct session_core *core, size_t target, struct result_times *out);
void usession_kernel_end(struct uprobe_session *s); /* once detached; ends the trace */
void usession_kernel_free(struct uprobe_session *s);

/* window.c */
void usession_apply(struct session_core *core, size_t target);
double usession_slowdown(struct session_core *core, size_t target, uint64_t now);

/* spans.c: a thread of the session's that hands the calls of a ring on to cfg->trace_fd. Places get
 * names before their first call: uspans_hold() keeps the thread from calls until uspans_go().
 * uspans_name() false: too many targets have values. uspans_close() ends it, after the last call.
 */
struct uspans;
struct uspans *uspans_open(const struct session_config *cfg, int ring, struct sb_err *err);
void uspans_hold(struct uspans *spans);
bool uspans_name(struct uspans *spans, uint32_t place, const char *name, const char *module,
		 const struct spec *spec);
void uspans_go(struct uspans *spans);
/* sums: what the programs lost and filtered; adds what the thread did. */
void uspans_close(struct uspans *spans, struct uspans_sums *sums);

/* change.c; usession_refuses() is for open() too. */
int usession_refuses(const struct spec *spec, struct sb_err *err);
int usession_check_spec(struct session_core *core, const struct spec *spec, struct sb_err *err);
int usession_add(struct session_core *core, size_t index, struct sb_err *err);
int usession_remove(struct session_core *core, size_t index, struct sb_err *err);
size_t usession_lanes(struct session_core *core, struct session_lane **lanes, uint64_t *t_ns);
size_t usession_pids(struct session_core *core, pid_t **pids);

/* result.c */
void usession_counts(struct session_core *core, size_t first, size_t n,
		     struct result_counts *counts);
void usession_result(struct session_core *core, struct result *res);
struct result *usession_list(struct session_core *core, struct sb_err *err);

/* (the rest is for this folder) */

/* lacks.c: names the optional targets that are not hooked, with the reasons, in a few lines. */
void usession_tell_lacks(const struct uprobe_session *s);

/* clash.c: a process that has a jump of sbinject's at this place of a file, or 0; has this process
 * one? */
pid_t usession_clash(uint32_t dev, uint64_t inode, uint64_t offset);
bool usession_clash_in(pid_t pid, uint32_t dev, uint64_t inode, uint64_t offset);

/* doorbell.c: is there a target that a library could bring? */
bool usession_awaits(const struct uprobe_session *s);
/* Arms the dynamic linker's notice in one process only, whose image has that row. True: it is armed
 * (or it cannot be, and the session is deaf). False: it must be armed for all. */
bool usession_ring_one(struct uprobe_session *s, const char *path, uint32_t dev, uint64_t inode,
		       uint64_t offset, pid_t pid, uint32_t row);
void usession_ring_none(struct uprobe_session *s);	 /* at the end: removes all of these */
bool usession_hears_all(const struct uprobe_session *s); /* it is armed for all */

#endif
