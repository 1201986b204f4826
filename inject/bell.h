/* SPDX-License-Identifier: MIT */
#ifndef SB_BELL_H
#define SB_BELL_H

#include "page.h"

/*
 * A thread of sbinject for work that must not wait until the session has time:
 *
 * - Doorbells: the dynamic linker of a process has mapped a library and waits, bounded by the
 *   lease, for an answer. The thread sleeps on the `bell` words of all pages (futex_waitv, Linux
 *   5.16; before that it polls every millisecond) and makes a file descriptor readable.
 *
 * - Leases: the thread renews the leases of all pages every 100 ms for as long as the session calls
 *   bells_alive(). A session that hangs must not delay programs for ever.
 */
struct bells;

struct bells *bells_open(void); /* NULL: no thread or no descriptor available */
void bells_close(struct bells *bells);
int bells_fd(const struct bells *bells); /* eventfd; read it before looking at the pages */

/*
 * From this call on the thread renews the leases, each time for this number of ticks, until
 * BELLS_ALIVE_MS after the session's last call of bells_alive().
 */
#define BELLS_ALIVE_MS 5000
void bells_lease(struct bells *bells, uint64_t ticks);
void bells_alive(struct bells *bells);

/* Starts the page's lease as well. */
void bells_add(struct bells *bells, struct page *page);
void bells_remove(struct bells *bells, struct page *page); /* before page_unmap() */

#endif
