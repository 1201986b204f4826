#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A signal handler that will return into a hook, wherever its frame lies, and one that is over:
# nothing stays mapped after the detach, and the handler returns.
# limit: 90 s
# beside others
. "$SRC/test/lib.sh"

for mode in plain alt nested deep coro stale; do
	rm -f "$T/gate"
	start frames "$V/frames" $mode "$T/gate"
	snapshot "$pid"
	attach "$pid" :frame_fn 300ms
	wait_for 20 said frames '^caught$' || fail "$mode: no signal came in a hook"
	sb_stop
	ended 0 $mode
	! grep -qE 'stays|still' "$T/sb.err" || fail "$mode: something stays"
	unchanged "$pid"
	let_go "$pid"
	touch "$T/gate"
	sleep 0.1
	finish frames "$pid"
done
