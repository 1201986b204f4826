#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# `recover` of several processes, of which one has ended and one is hooked by a session that lives:
# the others are restored all the same, and what is wrong with the one is said.
. "$SRC/test/lib.sh"

left_hooked() { # PID
	attach "$1" :victim_work 0
	tracer=$(awk '/^TracerPid/ { print $2 }' "/proc/$1/status")
	kill -STOP "$sb_pid" # so that it cannot restore between the two
	kill -KILL "$tracer" "$sb_pid"
	wait "$sb_pid" 2>/dev/null
}

start first "$V/calls"
first=$pid
start last "$V/calls"
last=$pid
start living "$V/calls"
living=$pid
snapshot "$first"
snapshot "$last"
snapshot "$living"
sleep 0 &
gone=$!
wait $gone

left_hooked "$first"
left_hooked "$last"
sb recover -p "$first,$gone,$last"
ended 5
told "no such process: $gone"
grep -q '^restored 2 processes$' "$T/sb.out" || fail "it says: $(cat "$T/sb.out")"
unchanged "$first"
unchanged "$last"

left_hooked "$first"
attach "$living" :victim_work 0
session=$sb_pid
sb recover -p "$living,$first"
[ "$rc" -ne 0 ] || fail 'a session that lives is passed over in silence'
told 'that lives'
unchanged "$first"
hooked "$living" || fail 'a session that lives has lost its hooks'
sb_pid=$session
sb_stop
ended 0
unchanged "$living"
finish first "$first"
finish last "$last"
finish living "$living"
