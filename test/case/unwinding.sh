#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# Backtraces while a hooked function runs, and a profiler's at 1 kHz in the middle of its delays: below
# a hook the callers are the true ones, and no trace does harm. Threads are cancelled in a hooked
# function, at once or behind it, and unwound through it.
# limit: 120 s
. "$SRC/test/lib.sh"

for ((i = 0; i < ${ROUNDS:-2}; i++)); do
	start prof "$V/unwinds" prof
	attach "$pid" :through 20us :leaf 300us
	sleep "${SECONDS_EACH:-2}"
	sb_stop
	ended 0
	let_go "$pid"
	finish prof "$pid"
	same 'hits of through' "$(($(j targets.0.hits) > 100))" 1
	traces=$(sed -n 's/^traces //p' "$T/prof.out")
	more 'traces' "$traces" 5
	more 'traces of a thread in a hook' "$(sed -n 's/^ended in a hook //p' "$T/prof.out")" $((traces / 4))

	for mode in cancel async; do
		start $mode "$V/unwinds" $mode
		attach "$pid" :through 20us :leaf 300us
		sleep 1
		sb_stop
		ended 0 $mode
		let_go "$pid"
		finish $mode "$pid"
		more "hits of leaf, $mode" "$(j targets.1.hits)" 100
		more "cancelled, $mode" "$(sed -n 's/^cancelled //p' "$T/$mode.out")" 20
	done
done
