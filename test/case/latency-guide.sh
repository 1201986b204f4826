#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# docs/latency-guide.md on its own program: the slow calls wait for the lock that a checkpoint holds.
# limit: 60 s
. "$SRC/test/lib.sh"
need cc python3

cc -O2 -g -pthread -o "$T/tail" "$SRC/docs/example/tail.c" || fail 'the example does not compile'
"$T/tail" 50 >"$T/tail.out" &
pid=$!
pids+=("$pid")
wait_for 10 said tail '^pid ' || fail 'no program'
sb trace -p "$pid" :handle :parse :lookup :checkpoint libc.so.6:pthread_mutex_lock --for 2s --min 1ms \
	-o "$T/tail.pftrace" --json "$T/run.json"
ended 0
more 'requests' "$(j targets.0.spans.calls)" 1000
more 'the slow ones' "$(j targets.0.spans.max_ns)" 1000000
less 'the typical one' "$(j targets.0.spans.p50_ns)" 100000
more 'left out' "$(j trace.filtered)" 1000
same 'calls' "$(($(j trace.calls) + $(j trace.filtered) + $(j trace.lost)))" \
	"$(($(j targets.0.spans.calls) + $(j targets.1.spans.calls) + $(j targets.2.spans.calls) + $(j targets.3.spans.calls) + $(j targets.4.spans.calls)))"
# All calls of the workers, not the slowest few: on a steady machine these are checkpoints alone.
"$SB" report "$T/tail.pftrace" --thread 'worker-*' --slowest 1000 >"$T/report" || fail 'report'
grep -q 'pthread_mutex_lock  *lookup ' "$T/report" || fail "the cause: $(cat "$T/report")"
"$SB" report "$T/tail.pftrace" --timeline >"$T/timeline" || fail 'report'
grep -q 'keeper  *|' "$T/timeline" || fail "the timeline: $(cat "$T/timeline")"
"$SB" report "$T/tail.pftrace" --folded - | python3 -c '
import sys
own = dict(line.rsplit(" ", 1) for line in sys.stdin)
total = sum(int(ns) for ns in own.values())
waits = sum(int(ns) for name, ns in own.items() if name.endswith("lookup;pthread_mutex_lock"))
assert waits * 5 > total, own' || fail 'the waits are not most of the recorded time'
let_go "$pid"
