/* SPDX-License-Identifier: MIT */
#ifndef SB_RECALL_H
#define SB_RECALL_H

#include "resolve.h"

/*
 * The results of requests in a file, also empty ones, kept for as long as sbinject runs. A tree of
 * processes loads the same libraries again and again, and each new library is a reason to search
 * for every target anew: to search the demangled names of a library of 300 MB takes half a second
 * each time. A file is identified by device, inode, size and both its times: a changed one is
 * searched again, whatever its build-id. No file is kept open.
 *
 * As symbol_find() and symbol_find_line(). Inlined copies that were found are a state of the image,
 * and are searched each time. With err, an error is searched for again, for its text.
 */
int recall_find(struct image *img, const struct resolve_request *req, struct symbol_list *list,
		struct sb_err *err);

#endif
