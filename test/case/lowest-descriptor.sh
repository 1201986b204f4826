#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program of one thread gets the lowest free descriptor from each open(), also while it is attached
# to: no file of sbinject's is open in it while it runs.
# beside others
# quick
. "$SRC/test/lib.sh"

start lowest "$V/lowest"
snapshot "$pid"
hits=0
for ((i = 0; i < 12; i++)); do # it may have no processor for a millisecond
	sb -p "$pid" :lowest_fn 0 --for 1ms --json "$T/run.json"
	[ "$rc" -eq 3 ] || ended 0
	hits=$((hits + $(j targets.0.hits)))
done
more hits $hits 0
let_go "$pid"
finish lowest "$pid"
