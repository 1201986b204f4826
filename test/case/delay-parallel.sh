#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Threads are delayed beside each other, not one after the other.
. "$SRC/test/lib.sh"

[ "$(nproc)" -ge 2 ] || skip 'one processor'
hits_of() { # THREADS
	start "calls$1" "$V/calls" -t "$1"
	sb -p "$pid" :victim_work 200us --for 1500ms --json "$T/run.json"
	ended 0
	finish "calls$1" "$pid"
}
hits_of 1
one=$(j targets.0.hits)
hits_of 2
two=$(j targets.0.hits)
more 'hits of one thread' "$one" 100
more 'hits of two threads' "$two" $((one * 13 / 10))
