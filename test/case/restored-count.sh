#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the command line says that it has restored is no more than there were processes, though the
# target forks all along and its children are restored with it.
# limit: 60 s
# beside others
. "$SRC/test/lib.sh"

start forker "$V/forker" "$T/trouble"
for round in {1..10}; do
	attach "$pid" :fork_work 0
	tracer=$(awk '/^TracerPid/ { print $2 }' "/proc/$pid/status")
	children=$(wc -w <"/proc/$pid/task/$pid/children")
	kill -KILL "$tracer"
	sb_wait
	told 'the tracer died'
	restored=$(sed -n 's/.*the tracer died; \([0-9]*\) process.*/\1/p' "$T/sb.err")
	more 'restored' "$restored" 0
	less "round $round: restored" "$restored" $((children + 4))
done
finish forker "$pid"
[ ! -s "$T/trouble" ] || fail "a child went wrong: $(cat "$T/trouble")"
