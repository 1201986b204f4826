/* SPDX-License-Identifier: MIT */
#ifndef SB_BELL_H
#define SB_BELL_H

#include "page.h"

/*
 * A thread that nothing holds up, for what must not wait until the session has time:
 *
 * - Doorbells: the dynamic linker of some process has mapped a library and waits, bounded by the
 *   lease, for an answer. The thread sleeps on the `bell` words of all pages (futex_waitv, Linux
 *   5.16; looked at every millisecond where that is missing) and makes a file descriptor readable.
 *
 * - Leases: it renews those of all pages every 100 ms, for as long as the session shows now and
 * then that it is alive: a session that hangs must not go on delaying programs for ever.
 */
struct bells;

struct bells *bells_open(void); /* NULL: no thread or descriptor to be had */
void bells_close(struct bells *bells);
int bells_fd(const struct bells *bells); /* eventfd; read it before looking at the pages */

/* Leases are renewed from here on, each for so many ticks, until BELLS_ALIVE_MS after the session
 * has last called bells_alive(). */
#define BELLS_ALIVE_MS 5000
void bells_lease(struct bells *bells, uint64_t ticks);
void bells_alive(struct bells *bells);

/* The page's lease begins, too. */
void bells_add(struct bells *bells, struct page *page);
void bells_remove(struct bells *bells, struct page *page); /* before page_unmap() */

#endif
