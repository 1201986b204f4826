#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Many attaches with values of calls: each thread's signal mask remains what it was, also of those
# that wait with another one, that are in a signal handler, or that begin meanwhile; and no call of the
# program is wrong.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"

start masks "$V/masks" 3
"$TOOL/procstate" "$pid" >"$T/before"
calls=0
for ((i = 1; i <= $(rounds 40 100); i++)); do
	sb trace :mask_call 'arg=n:1' 'arg=depth:2:u32' ret 'sum=n' -p "$pid" --for 10ms -q \
		--json "$T/run.json"
	ended 0 "round $i"
	calls=$((calls + $(j targets.0.spans.values.0.sum_calls)))
	! said masks '^mask ' || fail "round $i: $(grep '^mask ' "$T/masks.out")"
done
more 'calls with values' "$calls" 400
let_go "$pid"
"$TOOL/procstate" "$pid" | grep '^status Sig' >"$T/after"
grep '^status Sig' "$T/before" | diff - "$T/after" || fail "its signals are not as they were"
finish masks "$pid"
