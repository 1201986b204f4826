#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of the tracer: the command line restores the target, and says so.
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 2
snapshot "$pid" -t
for round in 1 2 3; do
	attach "$pid" :victim_work 2us
	tracer=$(awk '/^TracerPid/ { print $2 }' "/proc/$pid/status")
	[ "$tracer" -gt 0 ] || fail 'no tracer'
	[ "$tracer" -ne "$sb_pid" ] || fail 'tracer and command line are one process'
	kill -KILL "$tracer"
	sb_wait
	[ "$rc" -ne 0 ] || fail "round $round: a killed tracer is no clean end"
	unchanged "$pid" -t
done
finish calls "$pid"
