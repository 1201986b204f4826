/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_H
#define SB_CONTROL_H

#include "src/session/backend.h"

/*
 * What may be asked of a running session, as JSON: one object a request, one object an answer,
 * whoever asks and over whatever line (the command line's own socket, sbctl's, a sweep's). Pure but
 * for the session it is about; no text from outside is trusted, and nothing blocks but "lanes" with
 * "after", for CONTROL_AFTER_NS at most.
 *
 *	{"op": "add", "words": ["TARGET", "5us", "every=2"]}
 *	{"op": "remove", "target": T, "pid": N}			pid: of a pid= target
 *	{"op": "update", "target": T, "pid": N, "delay_ns": N, "every": N}
 *	{"op": "clear"}						removes all
 *	{"op": "delay", "delay_ns": N}				the default of later adds; without
 *N: asks
 *	{"op": "enable"} {"op": "disable"}
 *	{"op": "list"} {"op": "status"}
 *	{"op": "lanes"}						counters by thread at one instant:
 *								[index, pid, slot, hits,
 *injected_ns, overrun_ns]
 *			"spans": [[index, ns, calls, missed]]	of targets that are timed, or were
 *			"timing": true				what "time" asked for is in force
 *		"after": {"index": I, "poll_ns": N}		read right after that target's next
 *								call, looked for so often
 *			"moved": true				there was one in the time
 *	{"op": "arm", "targets": [{"index": I, "on": B, "delay_ns": N, "time": B}]}
 *								all in one go
 *	{"op": "stop"}						detach and end
 *
 * An answer is {"ok": true, ...} or {"ok": false, "error": "ENOENT", "what": .., "hint": ..}. Error
 * names are those of sbctl: EINVAL ENOENT EEXIST ENOSPC ENOEXEC ENAMETOOLONG ERANGE EPERM EIO.
 */
#define CONTROL_MAX_REQUEST 65536
#define CONTROL_AFTER_NS    5000000u

struct control_state {
	const struct backend *backend;
	struct session *session;
	uint64_t default_ns; /* of targets that are added without a delay */
	bool stop;	     /* somebody has asked for the end */
	/* Told of each change, for --events; may be NULL. what: "add", "disable", ...; t: of which
	 * target, or (its spec is NULL) a delay that is no target's; NULL: neither. */
	void (*changed)(void *ctx, const char *what, const struct session_target *t);
	void *ctx;
};

/* The answer to one request, without newline; the caller frees. Never NULL. */
char *control_answer(struct control_state *c, const char *request, size_t len);

#endif
