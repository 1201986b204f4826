/* SPDX-License-Identifier: MIT */
#ifndef SB_BELL_H
#define SB_BELL_H

#include "page.h"

/*
 * A thread of sbinject for work that must not wait until the session has time:
 *
 * - Doorbells: the dynamic linker of a process has mapped a library and waits, bounded by the
 *   lease, for an answer. The thread sleeps on the `doorbell` words of all pages (futex_waitv,
 * Linux 5.16; before that it polls every millisecond) and makes a file descriptor readable.
 *
 * - Leases: the thread renews the leases of all pages every 100 ms for as long as the session calls
 *   doorbells_alive(). A session that hangs must not delay programs for ever.
 */
struct doorbells;

struct doorbells *doorbells_open(void); /* NULL: no thread or no descriptor available */
void doorbells_close(struct doorbells *doorbells);
int doorbells_fd(
	const struct doorbells *doorbells); /* eventfd; read it before looking at the pages */

/*
 * From this call on the thread renews the leases, each time for this number of ticks, until
 * BELLS_ALIVE_MS after the session's last call of doorbells_alive().
 */
#define BELLS_ALIVE_MS 5000
void doorbells_lease(struct doorbells *doorbells, uint64_t ticks);
void doorbells_alive(struct doorbells *doorbells);

/* Starts the page's lease as well. */
void doorbells_add(struct doorbells *doorbells, struct page *page);
void doorbells_remove(struct doorbells *doorbells, struct page *page); /* before page_unmap() */

#endif
