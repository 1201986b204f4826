/* SPDX-License-Identifier: MIT */
#ifndef SB_CONFINE_H
#define SB_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Removes the rights of a child process that reads data of other users.
 *
 * confine_rights(): sets user and group id 65534 if they are root's, and drops all other groups,
 * all capabilities, and the gain of privileges by execve(2). In a user namespace that id may not
 * exist; the process then keeps the namespace's own rights and no others.
 */
void confine_rights(void);
/* Of system calls only those that reading and answering need; all others fail with EPERM. */
bool confine_calls(void);
bool confine_is_done(void);		     /* these calls were limited */
void confine_limit(int what, uint64_t most); /* RLIMIT_*, never raised */
/* Bytes of ordinary memory that the process has now; *resident: of all resident pages. */
uint64_t confine_data_size(uint64_t *resident);

#endif
