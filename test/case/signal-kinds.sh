#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Signals of every kind by the thousand, through attach, hits and detach: each arrives once, in
# order, with what was sent along; the target's own breakpoints, steps and jobs are its own.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"

for mode in breakpoint step blocked ignored queued child job fault timer; do
	start "$mode" "$V/kinds" "$mode"
	for how in '' --no-follow ''; do
		# some kinds need a processor's turn or two for each hit: as long as that takes
		hits=0
		for ((i = 0; i < 10 && hits < 3; i++)); do
			# shellcheck disable=SC2086 # no mode, no word
			sb -p "$pid" :kinds_fn 1us --for 120ms $how --json "$T/run.json"
			ended 0 "$mode $how"
			hits=$((hits + $(j targets.0.hits)))
			! grep -q 'warning' "$T/sb.err" || fail "$mode: $(cat "$T/sb.err")"
		done
		more "hits of $mode" $hits 2
	done
	let_go "$pid"
	finish "$mode" "$pid"
done
