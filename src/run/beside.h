/* SPDX-License-Identifier: MIT */
#ifndef SB_BESIDE_H
#define SB_BESIDE_H

#include "src/session/backend.h"

/*
 * Targets in the kernel beside those of a backend that has none: a second session, of the uprobe
 * backend, with the same processes. It has no control of its own: it begins and ends with the
 * first.
 */

/* True: cfg has both kinds, and the backend has none in the kernel. *own and *kernel are cfg with
 * the one and the other; their lists are beside_free()'s, the targets are cfg's. */
bool beside_split(const struct backend *backend, const struct session_config *cfg,
		  struct session_config *own, struct session_config *kernel);
void beside_free(struct session_config *own, struct session_config *kernel);

/* Puts the targets in the kernel behind the others; each keeps its place among its kind. */
void beside_order(struct spec_list *list);

/* Adds the targets of `kernel` behind the first n of `res`, and what is known of them by process.
 * `kernel` is freed. */
void beside_merge(struct result *res, size_t n, struct result *kernel);

#endif
