/* SPDX-License-Identifier: MIT */
/* The backend that enters by ptrace and plants jumps into stubs, which spin inside the target: see
 * inject/. */
#include "priv.h"
#include "src/session/check.h"

const struct backend backend_inject = {
	.name = "inject",
	.summary = "jumps planted by ptrace, delays spent inside the target",
	.size = sizeof(struct inject_session),
	.spare_targets = 512,
	.open = inject_open,
	.close = inject_close,
	.attach = inject_attach,
	.detach = inject_detach,
	.check_spec = inject_check_spec,
	.room = inject_room,
	.add = inject_add,
	.remove = inject_remove,
	.apply = inject_apply,
	.counts = inject_counts,
	.slowdown = inject_slowdown,
	.result = inject_result,
	.probe = check_ptrace,
	.check = inject_check,
	.step = inject_step,
	.fd = inject_fd,
	.time = inject_time,
	.spans = inject_spans,
	.timing = inject_timing,
	.times = inject_times,
	.functions = inject_functions,
	.lanes = inject_lanes,
	.pids = inject_pids,
	.list = inject_list,
};
