#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A trap while signals are blocked must not reset the target's signal state.
# beside others
. "$SRC/test/lib.sh"

start signals "$V/signals"
snapshot "$pid" -t
attach "$pid" :signal_fn 20us libc.so.6:nanosleep 0 --mechanism int3
sleep 1
sb_stop
ended 0
unchanged "$pid" -t
finish signals "$pid"
more hits "$(j targets.0.hits)" 50

# Signals of every kind, with breakpoints of ours in the handlers.
for mode in queued child job fault timer; do
	start "$mode" "$V/kinds" "$mode"
	sb -p "$pid" :kinds_fn 1us --for 200ms --mechanism int3 --json "$T/run.json"
	ended 0 "$mode"
	more "hits of $mode" "$(j targets.0.hits)" 2
	let_go "$pid"
	finish "$mode" "$pid"
done

# Whose use of SIGTRAP a trap would reset is refused. Its own handler blocks that for moments.
as_before() { (unchanged "$pid" -t); }
for mode in breakpoint step blocked ignored; do
	start "$mode" "$V/kinds" "$mode"
	snapshot "$pid" -t
	refuses 3 'SIGTRAP' -p "$pid" :kinds_fn 1us --for 100ms --mechanism int3
	wait_for 10 as_before || unchanged "$pid" -t
	finish "$mode" "$pid"
done
