#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# Stacks without room: the smallest legal ones used up to their guard page, and such as a program
# makes itself, with other threads' memory below. Nothing outside of a stack is touched.
# limit: 90 s
. "$SRC/test/lib.sh"

for mode in tight fibers mapped; do
	start "$mode" "$V/lives" "$mode"
	snapshot "$pid"
	for i in {1..10}; do
		sb -p "$pid" :lives_fn 1us --for 60ms --json "$T/run.json"
		ended 0 "$mode, round $i"
		more "hits of $mode" "$(j targets.0.hits)" 5
	done
	unchanged "$pid"
	finish "$mode" "$pid"
done

# Not one thread has room: refused, and nothing happens.
start tightest "$V/lives" tightest
snapshot "$pid"
refuses 1 'stack to spare' --backend inject -p "$pid" :lives_fn 1us --for 60ms
unchanged "$pid"
finish tightest "$pid"
