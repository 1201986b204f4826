/* SPDX-License-Identifier: MIT */
/* ptrace to get in, jumps into stubs that spin inside the target: see inject/. */
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include "src/session/backend.h"

/* PTRACE_SEIZE on nobody: ESRCH where the system call is there, EPERM or ENOSYS where not. */
static int inject_probe(struct sb_err *err)
{
	if (ptrace(PTRACE_SEIZE, -1, 0, 0) < 0 && (errno == ENOSYS || errno == EPERM)) {
		err_sys(err, SB_EPERM, "ptrace is not available");
		err_hint(err, "in a container, start it with --cap-add SYS_PTRACE and a seccomp "
			      "profile that allows ptrace");
		return -SB_EPERM;
	}
	return 0;
}

const struct backend backend_inject = {
	.name = "inject",
	.summary = "jumps planted by ptrace, delays spent inside the target",
	.probe = inject_probe,
	.open = session_open,
	.check = session_check,
	.attach = session_attach,
	.step = session_step,
	.fd = session_fd,
	.counts = session_counts,
	.detach = session_detach,
	.result = session_result,
	.add = session_add,
	.remove = session_remove,
	.update = session_update,
	.enable = session_enable,
	.enabled = session_enabled,
	.mute = session_mute,
	.time = session_time,
	.spans = session_spans,
	.timing = session_timing,
	.targets = session_targets,
	.target = session_target,
	.state = session_state,
	.functions = session_functions,
	.lanes = session_lanes,
	.pids = session_pids,
	.list = session_list,
	.close = session_free,
};
