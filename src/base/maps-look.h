/* SPDX-License-Identifier: MIT */
#ifndef SB_MAPS_LOOK_H
#define SB_MAPS_LOOK_H

#include "maps.h"

/*
 * Single mappings of a live process, where its whole map is not needed: to print it takes the
 * kernel milliseconds in a process with a thousand mappings. Since Linux 6.11 the kernel finds one
 * by its address (PROCMAP_QUERY); before, the first question reads the whole map, which then
 * answers all others.
 */
struct maps_look {
	pid_t pid;
	int fd;
	bool whole;  /* maps is valid */
	bool failed; /* a question could not be answered; it stays set */
	struct maps maps;
	struct map_entry entry;
	char path[4096];
};

void maps_look_open(struct maps_look *look, pid_t pid);

/* The entry that holds addr, valid until the next call, or NULL: none, or `failed`. */
const struct map_entry *maps_look_at(struct maps_look *look, uint64_t addr);

void maps_look_close(struct maps_look *look);

#endif
