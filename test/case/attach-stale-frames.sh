#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A signal handler returns into the bytes that a hook replaces, and the remains of an older frame lie
# over its own: only the program counters change, at attach and at detach, and the program goes on.
. "$SRC/test/lib.sh"

[ "$(uname -m)" = x86_64 ] || skip 'a function in assembly'
handled=0
next_handler() {
	handled=$((handled + 1))
	wait_for 10 handles || fail "no handler $handled: $(cat "$T/stale.out")"
}
handles() { [ "$(grep -c '^handling' "$T/stale.out")" -ge "$handled" ]; }

start stale "$V/stale"
for round in {1..5}; do
	next_handler
	snapshot "$pid"
	attach "$pid" :stale_wait 0
	await_session
	kill -USR1 "$pid"
	next_handler
	kill -USR1 "$pid"
	next_handler
	sb_stop
	ended 0 "round $round"
	more 'hits' "$(j targets.0.hits)" 0
	unchanged "$pid"
	kill -USR1 "$pid"
done
let_go "$pid"
finish stale "$pid"
