/* SPDX-License-Identifier: MIT */
#ifndef SB_KERNEL_NAMES_H
#define SB_KERNEL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The names that programs have given to functions of devices, by process and handle: what a call
 * like cuModuleGetFunction was asked for, and has returned. A handle has a name from the end of
 * that call on, the first one if several ask for the same, until its module is unloaded. Nothing is
 * known of a handle from before, unless it is an address. Not thread-safe; zeros are an empty one.
 */
struct kernel_handle {
	pid_t pid;
	uint64_t handle, module;
	uint64_t from; /* ticks */
	uint32_t name; /* number of the name, from 1; 0: it has none any more */
	/* The handle is the address of a function in the program, of which others know the name
	 * (trace.c): as code was mapped at this change of the maps. */
	uint64_t change; /* 0: it is none */
	bool mapped;	 /* there is code at it */
};

struct kernel_names {
	char **name;
	size_t n_names;
	uint32_t *name_slot; /* number of a name, by hash; 0: free */
	struct kernel_handle *handle;
	size_t n, slots;
	uint32_t *slot; /* number of a handle, by hash; 0: free */
};

void kernel_names_free(struct kernel_names *k);

/* The number of a name, len bytes; *fresh: it was not known before. 0: there are too many. */
uint32_t kernel_name(struct kernel_names *k, const char *name, size_t len, bool *fresh);

/* A number without a text here; 0: there are too many. */
uint32_t kernel_name_number(struct kernel_names *k);

/* In any order: what is older than what is known of the handle changes nothing, unless it is the
 * same. */
void kernel_names_set(struct kernel_names *k, const struct kernel_handle *handle);
/* What has that name at this time; NULL: nothing is known. */
const struct kernel_handle *kernel_names_find(const struct kernel_names *k, pid_t pid,
					      uint64_t handle, uint64_t ticks);
/* At any time, whether it is an address or not; NULL: nothing was ever known of it. */
struct kernel_handle *kernel_names_address(const struct kernel_names *k, pid_t pid,
					   uint64_t address);
/* The module's handles have no names any more; module 0: those of all modules of the process. */
void kernel_names_unload(struct kernel_names *k, pid_t pid, uint64_t module);

#endif
