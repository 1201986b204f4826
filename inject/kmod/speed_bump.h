/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SPEED_BUMP_H
#define SPEED_BUMP_H

#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/path.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/uprobes.h>
#include <linux/version.h>

/*
 * speed_bump: a module that slows functions of user space, by uprobes, driven by the files of
 * /sys/kernel/speed_bump:
 *
 *	enabled			RW	0 or 1: are the probes in?
 *	default_delay_ns	RW	of targets that are added without a delay
 *	targets			WO	one command per write: +PATH:SYMBOL [DELAY_NS] [pid=N],
 *					-PATH:SYMBOL, -*, =PATH:SYMBOL DELAY_NS
 *	targets_list		RO	PATH:SYMBOL delay_ns=N hits=M[ pid=P], one per line
 *	stats			RO	enabled, targets, total_hits, total_delay_ns
 *
 * Errors: EINVAL the command is malformed; ENOENT no such path, symbol or target; ENOEXEC the file
 * is no ELF file of 64 bits; ENAMETOOLONG; ERANGE a delay above 10 s; EEXIST; ENOSPC.
 *
 * main.c has the files, command.c parses what is written to them, symbol.c resolves names to
 * offsets, probe.c has the probes and the spin, tree.c finds descendants. sb_lock guards the list
 * of targets, and is not held while a file is opened or read, which may take arbitrarily long. A
 * hit takes no lock except, for pid=, the one of tree.c's table.
 */
enum {
	SB_MAX_TARGETS = 64, /* one bit each in tree.c */
	SB_MAX_PATH = 256,
	SB_MAX_SYMBOL = 128,
	SB_MAX_COMMAND = 512,
};

#define SB_MAX_DELAY_NS 10000000000ull

struct sb_target {
	struct list_head list;
	char *name; /* PATH:SYMBOL, as written */
	struct path path;
	loff_t offset; /* of the function's entry, in the file */
	u64 delay_ns;
	atomic64_t hits;
	pid_t pid; /* pid= as written; 0: every process */
	unsigned int bit;
	bool gone; /* a spin in progress ends */
	bool probed;
	refcount_t refs; /* the list's, and one of each delay in progress */
	struct uprobe_consumer consumer;
	struct uprobe *uprobe;
};

/* main.c */
extern struct mutex sb_lock;
extern struct list_head sb_targets;
extern bool sb_enabled;
extern u64 sb_default_delay_ns;
extern atomic64_t sb_total_hits, sb_total_delay_ns;

/* command.c; except for these two the caller holds sb_lock */
int sb_command(char *text);
int sb_parse_delay(const char *text, u64 *ns);
int sb_enable(bool on);
void sb_clear(void);
void sb_target_put(struct sb_target *t);

/* symbol.c: the offset in the file of a function's entry; -ENOENT, -ENOEXEC, ... */
int sb_symbol_offset(struct file *file, const char *symbol, loff_t *offset);

/*
 * probe.c: puts a probe in or removes it; removal waits until no thread is in its handler. Delays
 * are spent behind the handler, and hold a target: sb_probe_stop() waits for the last of them.
 */
int sb_probe(struct sb_target *t);
void sb_unprobe(struct sb_target *t);
void sb_probe_stop(void);

/* tree.c: which processes descend from the pid= of which targets. */
int sb_tree_start(void);
void sb_tree_stop(void);
int sb_tree_add(pid_t pid, unsigned int bit);
void sb_tree_remove(unsigned int bit);
bool sb_tree_has(unsigned int bit);

#endif
