#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# No system call is interrupted or shortened by attach, detach or what lies between.
# limit: 90 s
# beside others
. "$SRC/test/lib.sh"

for mode in '' --no-follow; do
	start signals "$V/signals"
	snapshot "$pid"
	for i in 1 2 3 4 5 6 7 8; do
		# shellcheck disable=SC2086 # no mode, no word
		sb -p "$pid" :signal_fn 2us --for 150ms $mode --json "$T/run.json"
		ended 0 "$mode round $i"
		more hits "$(j targets.0.hits)" 20
	done
	unchanged "$pid"
	finish signals "$pid"
done
