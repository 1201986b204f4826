/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_H
#define SB_CONTROL_H

#include "evidence/evidence.h"
#include "src/session/backend.h"

/*
 * Requests to a running session, in JSON: one object a request, one object an answer, for every
 * client and every transport (the command line's socket, sbctl's, a sweep's). Acts on nothing but
 * the session. No text from outside is trusted. Nothing blocks, except "lanes" with "after", for at
 * most CONTROL_AFTER_NS.
 *
 *	{"op": "add", "words": ["TARGET", "5us", "every=2"]}
 *	{"op": "remove", "target": T, "pid": N}			pid: of a pid= target
 *	{"op": "update", "target": T, "pid": N, "delay_ns": N, "every": N}
 *	{"op": "clear"}						removes all
 *	{"op": "delay", "delay_ns": N}				sets the default of later adds;
 *								without N: reads it
 *	{"op": "enable"} {"op": "disable"}
 *	{"op": "list", "functions": B, "histogram": B}
 *			"spans": {"calls": N, ...}		of a timed target, as --json has it
 *			"untimed": N				its functions that are not timed
 *	{"op": "status"}
 *	{"op": "lanes"}						counters by thread at one instant:
 *								[index, pid, slot, hits,
 *								 injected_ns, overrun_ns, tid];
								tid 0: not known
 *			"spans": [[index, ns, calls, missed]]	of targets that are or were timed
 *			"timing": true				the last "time" is in effect
 *		"after": {"index": I, "poll_ns": N}		reads right after the next call of
 *								that target, polled at N ns
 *			"moved": true				there was such a call
 *		"times": I					the calls of that target, if
 *								they are timed
 *			"times": {"calls": N, ...}		as "spans" of "list", with histogram
 *	{"op": "arm", "targets": [{"index": I, "on": B, "delay_ns": N, "time": B}]}
 *								all at once
 *	{"op": "evidence"}					of a session with --evidence
 *			"counters": {NAME: N or null}
 *			"machine": {NAME: N or null, "unknown": {NAME: TEXT}}
 *			"cgroup": {NAME: N or null, "path": TEXT or null, "unknown": ...}
 *			"process_memory": {"begin": {NAME: N or null, "unknown": ...}, "end": null}
 *			"hardware": {"limit": TEXT or null, "counted": X, ...} or null
 *			"limit": TEXT or null			why there is no BPF
 *	{"op": "stop"}						detaches and ends
 *
 * An answer is {"ok": true, ...} or {"ok": false, "error": "ENOENT", "what": .., "hint": ..}. Error
 * names are those of sbctl: EINVAL ENOENT EEXIST ENOSPC ENOEXEC ENAMETOOLONG ERANGE EPERM EIO.
 */
#define CONTROL_MAX_REQUEST 65536
#define CONTROL_AFTER_NS    5000000u

struct control_state {
	const struct backend *backend;
	struct session_core *session;
	struct evidence *evidence; /* NULL: it was not asked for */
	uint64_t default_ns;	   /* of targets that are added without a delay */
	bool stop;		   /* a client has requested the end */
	/* Called at each change, for --events; may be NULL. what: "add", "disable", ... t: the
	 * target; with spec NULL: a delay that belongs to no target; NULL: neither. */
	void (*changed)(void *ctx, const char *what, const struct session_target *t);
	void *ctx;
};

/* The answer to one request, without a newline. The caller frees. Never NULL. */
char *control_answer(struct control_state *c, const char *request, size_t len);

#endif
