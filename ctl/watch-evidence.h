/* SPDX-License-Identifier: MIT */
#ifndef SB_CTL_WATCH_EVIDENCE_H
#define SB_CTL_WATCH_EVIDENCE_H

#include <stdio.h>
#include "ctl.h"

/* The counters of a session's evidence, as rates between two looks. */
struct evidence_page;

struct evidence_page *evidence_page_new(void); /* never NULL */
void evidence_page_free(struct evidence_page *page);

/* A session without evidence is no error: the page then says so, with the remedy. */
void evidence_page_look(struct evidence_page *page, struct ctl_peer *peer);

/* A line each; what is not known is "-". */
void evidence_page_write(const struct evidence_page *page, FILE *to);

#endif
