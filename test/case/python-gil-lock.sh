#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Threads that are stopped while they hold the GIL's own mutex, which is where one stands that hands the
# GIL over: from CPython 3.13 on none of them is made to queue a call for all there, where it would wait
# for itself, and the GIL be lost. The mutex is held for long here, so that it comes to that.
# limit: 150 s
. "$SRC/test/lib.sh"
need_python

count() { cat "$T/calls" 2>/dev/null || echo 0; }
goes_on() { [ "$(count)" != "$1" ] && [ -s "$T/calls" ]; }

for p in "${python[@]}"; do
	"$p" -c 'import sys; sys.exit(sys.version_info < (3, 13))' || continue
	rm -f "$T/calls" "$T/calls.end"
	start handover env LD_PRELOAD="$V/libc-slow-signal.so" "$p" "$SRC/test/victim/python/handover.py" \
		"$T/calls"
	for ((i = 1; i <= 4; i++)); do
		sb -p "$pid" py:__main__:step 0 --for 100ms --json "$T/run.json"
		[ "$rc" -eq 0 ] || [ "$rc" -eq 3 ] || fail "$p, attach $i: status $rc"
		before=$(count)
		wait_for 20 goes_on "$before" || fail "$p, attach $i: no thread has the GIL any more"
	done
	touch "$T/calls.end"
	wait "$pid" || fail "$p: the program ended with $?"
done
