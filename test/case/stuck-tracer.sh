#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A tracer that does not end when asked to: the next Ctrl-C, 5 s later, ends it, and the command line
# restores the target. Until then the user can hope. The same for a sweep, where signals are read
# between windows, and there may be no more of them.
# beside others
. "$SRC/test/lib.sh"

# the tracer of a command line: not all that it watches is traced
tracer_of() {
	local child

	for child in $(cat "/proc/$1/task/$1/children"); do
		[ "$(cat "/proc/$child/comm")" != sbinject-tracer ] || echo "$child"
	done
}

# interrupt_twice NAME: its tracer stops, as one that hangs does nothing
interrupt_twice() {
	local tracer from=$EPOCHREALTIME

	wait_for 10 hooked "$pid" || fail "$1: no hook was planted"
	tracer=$(tracer_of "$sb_pid")
	[ -n "$tracer" ] || fail "$1: no tracer"
	kill -STOP "$tracer"
	kill -INT "$sb_pid"
	sleep 1
	kill -INT "$sb_pid" # too early
	sleep 5
	kill -0 "$sb_pid" || fail "$1: it ended without its tracer"
	kill -0 "$tracer" || fail "$1: the tracer was killed at once"
	kill -INT "$sb_pid"
	wait_for 10 eval '! kill -0 "$sb_pid" 2>"$T/gone"' ||
		fail "$1: it runs $(awk -v a="$EPOCHREALTIME" -v b="$from" 'BEGIN { print a - b }') s later"
	sb_wait
	[ "$rc" -ne 0 ] || fail "$1: a killed tracer is no clean end"
	told 'the tracer has not ended within 5 s'
}

start calls "$V/calls" -t 2
snapshot "$pid" -t
attach "$pid" :victim_work 2us
interrupt_twice run
unchanged "$pid" -t
finish calls "$pid"

start shapes "$V/sweep-shapes" ranks
snapshot "$pid"
sb_start sweep -p "$pid" :crit --progress :item --time 60s
interrupt_twice sweep
unchanged "$pid"
let_go "$pid"
finish shapes "$pid"
