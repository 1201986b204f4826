/* SPDX-License-Identifier: MIT */
#ifndef SB_CTL_H
#define SB_CTL_H

#include <stdbool.h>
#include <stdint.h>
#include "src/base/err.h"
#include "src/base/json.h"

/*
 * sbctl: one program for whatever is running, a session of sbinject's or the kernel module. Each is
 * spoken to by requests of src/control/control.h; the module's side makes reads and writes of its
 * sysfs files of them. So a verb does not know whom it speaks to.
 */
struct ctl_peer;

/* which: NULL, a session's number, or a process that a session has hooked (for root: of whatever
 * user). Errors: none runs, several do and none was named, it is another user's (SB_EPERM). */
struct ctl_peer *ctl_open(const char *which, struct sb_err *err);
struct ctl_peer *ctl_open_kmod(struct sb_err *err); /* the module, whatever runs */
void ctl_close(struct ctl_peer *peer);

/* The answer (owned by the caller), never NULL without the error: {"ok": true, ...}. On an answer
 * that says no, *err has what and hint, and error its name ("ENOENT"). */
json_t *ctl_ask(struct ctl_peer *peer, json_t *request, struct sb_err *err, char error[16]);

/* A name of an answer, safe to show; "-" where it is not there. The caller frees. */
char *ctl_shown(const json_t *answer, const char *key);

/* What a session says when it has ended: the result, or NULL. */
json_t *ctl_wait_end(struct ctl_peer *peer);

/* The kernel module's directory ($SBINJECT_KMOD_DIR, else /sys/kernel/speed_bump), if it is there.
 */
const char *ctl_kmod_dir(void);
json_t *ctl_kmod_ask(const char *dir, const json_t *request);

/* A live table until the user ends it. */
int ctl_watch(struct ctl_peer *peer, uint64_t interval_ns);

/* One line a session. SB_EPERM: they are another user's. */
int ctl_sessions(bool as_json, struct sb_err *err);

#endif
