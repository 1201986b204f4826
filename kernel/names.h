/* SPDX-License-Identifier: MIT */
#ifndef SB_KERNEL_NAMES_H
#define SB_KERNEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "src/base/err.h"
#include "src/base/value.h"

/*
 * The functions and tracepoints of the running kernel, and how each can be hooked. Sources:
 * /proc/kallsyms, the kernel's and its modules' types (BTF), and tracefs, which is mounted for this
 * process alone and nowhere in its tree of files. Nothing is changed, but for one attempt to attach
 * a program to bpf_fentry_test1(), which the kernel has for such attempts.
 */
enum kernel_way { KERNEL_WAY_NONE, KERNEL_WAY_FENTRY, KERNEL_WAY_KPROBE, KERNEL_WAY_TRACEPOINT };

enum { KERNEL_ARGUMENTS = 11 };

/* What a function or a tracepoint takes and returns, as the kernel describes it. */
struct kernel_proto {
	bool known;
	uint8_t n; /* arguments, at most KERNEL_ARGUMENTS */
	/* VALUE_TYPES: no integer, and no pointer. */
	enum value_type argument[KERNEL_ARGUMENTS], returned;
};

struct kernel_name {
	char *name;
	char *module; /* "vmlinux", a module; of a tracepoint, its subsystem */
	uint64_t address;
	enum kernel_way way;
	bool by_address; /* others have the name: a kprobe is put at the address */
	char why[160];	 /* of KERNEL_WAY_NONE */
	struct kernel_proto proto;
};

struct kernel_list {
	struct kernel_name *name; /* sorted */
	size_t n;
};

/*
 * Functions that a name or a glob means. None: SB_ENOSYMBOL, with the nearest names. The caller
 * frees, also after a failure.
 */
int kernel_functions(const char *pattern, struct kernel_list *out, struct sb_err *err);
/* Tracepoints; a subsystem "raw" has those that tracefs does not show. */
int kernel_tracepoints(const char *subsystem, const char *pattern, struct kernel_list *out,
		       struct sb_err *err);
void kernel_list_free(struct kernel_list *names);

/* From one to the other, the sources are read once for all names: a tenth of a second for each
 * otherwise. What the kernel gains meanwhile is not seen. Pairs may be nested. */
void kernel_names_hold(void);
void kernel_names_release(void);

/* Is a program at the kernel's functions permitted? False, with the reason. */
bool kernel_fentry_works(char *why, size_t size);
bool kernel_has_kprobes(void);

#endif
