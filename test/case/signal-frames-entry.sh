#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A signal handler returns into the very bytes that the hook replaced while it ran.
# beside others
. "$SRC/test/lib.sh"

for detach in before after; do
	rm -f "$T/gate"
	start frames "$V/frames" entry "$T/gate"
	wait_for 20 said frames '^caught$' || fail 'the victim has no handler running'
	snapshot "$pid"
	attach "$pid" :entry_fn 2us
	if [ $detach = before ]; then
		sb_stop
		unchanged "$pid"
		touch "$T/gate"
	else
		touch "$T/gate"
		sleep 0.2
		sb_stop
		more hits "$(j targets.0.hits)" 5
		let_go "$pid"
	fi
	ended 0 $detach
	sleep 0.1
	finish frames "$pid"
done
