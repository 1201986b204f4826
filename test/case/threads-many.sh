#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# 300 sleeping threads and 40 busy ones are all stopped, hooked and let go.
# limit: 90 s
# beside others
. "$SRC/test/lib.sh"

for mode in 'sleep 300' 'busy 40'; do
	# shellcheck disable=SC2086 # two words
	start threads "$V/threads" $mode
	snapshot "$pid" -t
	for i in 1 2 3; do
		sb -p "$pid" :thread_fn 1us --for 200ms --json "$T/run.json"
		ended 0 "$mode, round $i"
		more hits "$(j targets.0.hits)" 100
		more 'stop_us.attach' "$(j stop_us.attach)" 0
	done
	unchanged "$pid" -t
	finish threads "$pid"
done
