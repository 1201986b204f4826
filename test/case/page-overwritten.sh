#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A target that writes anything into the control page harms only itself: sbinject ends by
# itself, restores it, and changes nothing else in it; so does recover.
# limit: 90 s
# beside others
. "$SRC/test/lib.sh"

# orderly: sbinject came to an end of its own, not by a signal, and not by a sanitizer
orderly() {
	[ "$rc" -lt 124 ] || fail "sbinject ended with status $rc"
	! grep -E 'Sanitizer|runtime error' "$T/sb.err" || fail 'a sanitizer spoke'
}

start numbers "$V/scribble" numbers
snapshot "$pid"
for _ in 1 2 3; do
	sb -p "$pid" :scribbled_fn 1us thread='scrib*' --for 300ms --json "$T/run.json"
	orderly
	unchanged "$pid"
	[ "$rc" -ne 0 ] || "$TOOL/jget" "$T/run.json" targets.0.hits >/dev/null || fail 'no JSON'
done
finish numbers "$pid"

for i in 1 2 3; do
	start all "$V/scribble" all
	snapshot "$pid"
	sb -p "$pid" :scribbled_fn 1us thread='scrib*' --for 300ms
	orderly
	kill -0 "$pid" 2>/dev/null || { echo "round $i: the stubs killed it"; continue; }
	unchanged "$pid"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
done

# left over, overwritten, and then recovered from the journal and the memory map alone
start header "$V/scribble" header
snapshot "$pid"
attach "$pid" :scribbled_fn 0
tracer=$(awk '/^TracerPid/ { print $2 }' "/proc/$pid/status")
kill -STOP "$sb_pid"
kill -KILL "$tracer" "$sb_pid"
wait "$sb_pid" 2>/dev/null
kill -USR1 "$pid"
wait_for 10 said header '^scribbled$' || fail 'the page was not overwritten'
sb recover -p "$pid"
ended 0 'recover of an overwritten page'
unchanged "$pid"
finish header "$pid"
