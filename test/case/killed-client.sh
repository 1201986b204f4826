#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of the command line: the tracer lets the target go, clean.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 2
snapshot "$pid" -t
clean() { "$TOOL/textcheck" "$pid" && grep -q '^TracerPid:	0$' "/proc/$pid/status"; }
for round in 1 2 3; do
	attach "$pid" :victim_work 2us
	kill -KILL "$sb_pid"
	wait "$sb_pid" 2>/dev/null
	wait_for 10 clean || fail "round $round: the target stays hooked"
	unchanged "$pid" -t
done
finish calls "$pid"
