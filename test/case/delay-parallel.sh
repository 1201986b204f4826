#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Threads are delayed beside each other, not one after the other.
. "$SRC/test/lib.sh"

[ "$(nproc)" -ge 2 ] || skip 'one processor'
hits_of() { # THREADS
	start "calls$1" "$V/calls" -t "$1"
	sb -p "$pid" :victim_work 200us --for 400ms --json "$T/run.json"
	ended 0
	finish "calls$1" "$pid"
}
# Other programs may want the processors meanwhile: one of several tries must show it.
for try in 1 2 3 4 5 6 7 8; do
	hits_of 1
	one=$(j targets.0.hits)
	hits_of 2
	two=$(j targets.0.hits)
	echo "try $try: $one hits of one thread, $two of two"
	[ "$two" -gt $((one * 14 / 10)) ] && break
done
more 'hits of one thread' "$one" 50
more 'hits of two threads' "$two" $((one * 14 / 10))
