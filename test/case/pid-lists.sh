#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Pids by commas, blanks, newlines and repeated -p; nonsense is an error.
# quick
# beside others
. "$SRC/test/lib.sh"

start one "$V/calls"
one=$pid
start two "$V/calls"
for list in "$one,$pid" "$one $pid" "$one
$pid"; do
	sb -p "$list" :victim_work 1us --for 150ms --json "$T/run.json"
	ended 0
	same processes "$(j processes.#)" 2
done
sb -p "$one" -p "$pid" :victim_work 1us --for 150ms --json "$T/run.json"
ended 0
same processes "$(j processes.#)" 2
for bad in '' 0 -5 abc 12x 99999999999; do
	sb -p "$bad" :victim_work 1us --for 100ms
	[ "$rc" -eq 2 ] || [ "$rc" -eq 5 ] || fail "-p '$bad': status $rc"
done
finish one "$one"
finish two "$pid"
