#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# An interpreter whose only thread is stopped while it holds the lock of the queue of pending calls,
# which is where it stands when a call of ours ends: it is not made to queue the next one there, where
# it would wait for itself for ever. The lock is held for long here, so that it comes to that.
. "$SRC/test/lib.sh"
need_python

for p in "${python[@]}"; do
	start alone env LD_PRELOAD="$V/victim-slow-post.so" "$p" "$SRC/test/victim/python/alone.py"
	for ((i = 1; i <= 8; i++)); do
		sb -p "$pid" py:__main__:step 100ns --for 5ms --json "$T/run.json"
		[ "$rc" -eq 0 ] || [ "$rc" -eq 3 ] || fail "$p, cycle $i: status $rc"
		! grep -q 'no safe point' "$T/sb.err" || fail "$p, cycle $i: it waits for itself"
	done
	sb -p "$pid" py:__main__:step 100ns --for 200ms --json "$T/run.json"
	ended 0 "$p"
	more "$p: hits" "$(j targets.0.hits)" 1
	let_go "$pid"
	finish alone "$pid"
done
