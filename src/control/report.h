/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_REPORT_H
#define SB_CONTROL_REPORT_H

#include <stddef.h>
#include <sys/types.h>
#include "src/result/result.h"

/*
 * The run so far as a document, "sbinject.report/1" (sbinject(1)): what `status` and `list` answer,
 * and the evidence by the groups that a report of a benchmark has: network, memory, io, cpu, locks.
 */

/* NULL: the session does not answer. len: without the newline at the end. The caller frees. */
char *report_text(pid_t session, size_t *len);

/* The same of a session that has ended, with "ended": true. */
char *report_ended(const struct result *res, pid_t session, size_t *len);

#endif
