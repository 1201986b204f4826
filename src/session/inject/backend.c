/* SPDX-License-Identifier: MIT */
/* The backend that enters by ptrace and plants jumps into stubs, which spin inside the target: see
 * inject/. */
#include "src/session/backend.h"
#include "src/session/check.h"

const struct backend backend_inject = {
	.name = "inject",
	.summary = "jumps planted by ptrace, delays spent inside the target",
	.probe = check_ptrace,
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
