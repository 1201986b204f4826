#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program of one thread gets the lowest free descriptor from each open(), also while it is attached
# to: no file of sbinject's is open in it while it runs.
# beside others
# quick
. "$SRC/test/lib.sh"

start lowest "$V/lowest"
snapshot "$pid"
for ((i = 0; i < 12; i++)); do
	sb -p "$pid" :lowest_fn 0 --for 1ms --json "$T/run.json"
	ended 0
	more hits "$(j targets.0.hits)" 0
done
let_go "$pid"
finish lowest "$pid"
