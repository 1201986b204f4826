#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# Threads that hit an int3 just as they are stopped for the detach: the stop comes first, the SIGTRAP
# behind it must not outlive the hook. Also where job control has stopped them.
# limit: 120 s
. "$SRC/test/lib.sh"

start calls "$V/calls" -t 32
snapshot "$pid" -t
for ((i = 0; i < 20; i++)); do
	sb -p "$pid" :victim_work 0 --for 5ms --mechanism int3
	ended 0 "round $i"
	kill -0 "$pid" 2>/dev/null || fail "round $i: the target died"
done
for ((i = 0; i < 6; i++)); do
	attach "$pid" :victim_work 0 --mechanism int3
	kill -STOP "$pid"
	sb_stop
	ended 0 "stopped, round $i"
	[ "$(ps -o state= -p "$pid")" = T ] || fail "round $i: it is not stopped any more"
	kill -CONT "$pid"
done
unchanged "$pid" -t
finish calls "$pid"
