/* SPDX-License-Identifier: MIT */
#ifndef SB_CONFINE_H
#define SB_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * For a child process that reads what others wrote: takes away what it could do harm with.
 *
 * confine_rights(): the ids become those of the user nobody if they were root's, with no other
 * group; no capabilities, and no program that it could run gives it any. In a user namespace there
 * may be no other ids to take; what remains is no more than the namespace's own rights.
 */
void confine_rights(void);
/* Of system calls only those that reading and answering need; all others fail with EPERM. */
bool confine_calls(void);
bool confine_is_done(void);		     /* these calls were limited */
void confine_limit(int what, uint64_t most); /* RLIMIT_*, never raised */
/* Bytes of ordinary memory that the process has now; *resident: of all resident pages. */
uint64_t confine_data_size(uint64_t *resident);

#endif
