#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# SIGKILL of both: the target runs on; `recover` restores it; a clean one needs nothing.
# limit: 90 s
# quick
# beside others
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 2 -r
snapshot "$pid" -t
sb recover -p "$pid"
ended 0
cat "$T/sb.out" "$T/sb.err" | grep -qi 'nothing to restore' || fail 'recover of a clean one says nothing'
for _ in 1 2 3; do
	attach "$pid" :victim_work 2us
	tracer=$(awk '/^TracerPid/ { print $2 }' "/proc/$pid/status")
	kill -STOP "$sb_pid" # so that it cannot restore between the two
	kill -KILL "$tracer" "$sb_pid"
	wait "$sb_pid" 2>/dev/null
	sleep 0.7
	kill -0 "$pid" || fail 'the target died'
	more 'calls a second under a lapsed lease' "$(rate calls)" 10
	hooked "$pid" || fail 'no process was there to unhook it, and yet it is'
	sb recover -p "$pid"
	ended 0
	unchanged "$pid" -t
done
sb -p "$pid" :victim_work 1us --for 200ms
ended 0 'an attach after a recovery'
unchanged "$pid" -t
finish calls "$pid"
