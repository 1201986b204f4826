/* SPDX-License-Identifier: MIT */
#ifndef SB_RECALL_H
#define SB_RECALL_H

#include "resolve.h"

/*
 * What a request finds in a file, and that it finds nothing, remembered for as long as sbinject
 * runs. A tree of processes loads the same libraries again and again, and each library that comes
 * is a reason to look for every target anew: to search the demangled names of a library of 300 MB
 * takes half a second each time. A file is known by device, inode, size and both its times: a
 * changed one is searched again, whatever its build-id says. Nothing is kept open.
 *
 * As symbol_find() and symbol_find_line(); what inlined copies are found is a state of the image,
 * and is searched each time. With err, an error is searched for again, for its text.
 */
int recall_find(struct image *img, const struct resolve_request *req, struct symbol_list *list,
		struct sb_err *err);

#endif
