/* SPDX-License-Identifier: MIT */
#ifndef SB_FETCH_H
#define SB_FETCH_H

#include <stddef.h>
#include "src/base/err.h"

/*
 * A process of its own does HTTP, since a server's answer goes through libcurl. It has user and
 * group id 65534 if sbinject runs as root, no capabilities, and limits on memory. It ends with the
 * process that opened it.
 */
struct fetch;

enum { FETCH_MOST = 64 << 20, FETCH_MS = 2000 };

/* NULL: libcurl is not there (SB_EFILE), or no process could be started (SB_ENOMEM) */
struct fetch *fetch_open(const char *url, struct sb_err *err);
/*
 * NULL and the answer's text, which is the fetch's until its next use; or why there is none, also
 * the fetch's. *status: that of HTTP; 0: no answer.
 */
const char *fetch_text(struct fetch *f, const char **text, long *status);
/* The same, and the reason as an error, SB_EFILE. */
int fetch_page(struct fetch *f, const char **text, struct sb_err *err);
void fetch_close(struct fetch *f);

#endif
