/* SPDX-License-Identifier: MIT */
#ifndef SB_CTL_H
#define SB_CTL_H

#include <stdbool.h>
#include <stdint.h>
#include "src/base/err.h"
#include "src/base/json.h"

/*
 * sbctl: one program for a session of sbinject and for the kernel module. Both take requests of
 * src/control/control.h; the module's side turns them into reads and writes of its sysfs files. So
 * a verb does not depend on the kind of its peer.
 */
struct ctl_peer;

/* which: NULL, the number of a session, or a process that a session has hooked (for root: a session
 * of any user). NULL selects the one session that runs, else the module. Errors: nothing runs;
 * several sessions run and none was named; it belongs to another user (SB_EPERM). */
struct ctl_peer *ctl_open(const char *which, struct sb_err *err);
struct ctl_peer *ctl_open_kmod(struct sb_err *err); /* the module, even if sessions run */
void ctl_close(struct ctl_peer *peer);

/* Sends a request and drops the reference to it. The caller owns the answer, {"ok": true, ...}.
 * NULL with the error; if the peer refused, *err has what and hint of the answer, and `error` its
 * error name ("ENOENT"). */
json_t *ctl_ask(struct ctl_peer *peer, json_t *request, struct sb_err *err, char error[16]);

/* A name in an answer, safe to show; "-" if it is missing. The caller frees. */
char *ctl_shown(const json_t *answer, const char *key);

/* Waits for the end of a session: its result, or NULL. */
json_t *ctl_wait_end(struct ctl_peer *peer);

/* The kernel module's directory ($SBINJECT_KMOD_DIR, else /sys/kernel/speed_bump), or NULL. */
const char *ctl_kmod_dir(void);
json_t *ctl_kmod_ask(const char *dir, const json_t *request);

/* A live table; runs until the user ends it. */
int ctl_watch(struct ctl_peer *peer, uint64_t interval_ns);

/* Prints one line for each session. SB_EPERM: they belong to another user. */
int ctl_sessions(bool as_json, struct sb_err *err);

#endif
