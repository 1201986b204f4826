/* SPDX-License-Identifier: MIT */
#ifndef SB_BELL_H
#define SB_BELL_H

#include "page.h"

/*
 * Waiting for doorbells: the dynamic linker of some process has mapped a library and waits,
 * bounded by the lease, for an answer. One thread sleeps on the `bell` words of all pages
 * (futex_waitv, Linux 5.16; looked at every millisecond where that is missing) and makes a
 * file descriptor readable.
 */
struct bells;

struct bells *bells_open(void); /* NULL: no thread or descriptor to be had */
void bells_close(struct bells *bells);
int bells_fd(const struct bells *bells); /* eventfd; read it before looking at the pages */

void bells_add(struct bells *bells, struct page *page);
void bells_remove(struct bells *bells, struct page *page); /* before page_unmap() */

#endif
