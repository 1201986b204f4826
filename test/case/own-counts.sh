#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# A fork that becomes another user gets counters of its own: what it then writes into them is not what
# its parent counts, and no hit of either is lost on the way there.
. "$SRC/test/lib.sh"
need_root
need python3

# run HOW: "PARENT-HITS PARENT-CALLS WORKER-HITS WORKER-CALLS"
run() {
	sb --json "$T/run.json" dropped:dropped_fn 0 -- "$V/dropped" "$1"
	# The worker's noise may say that calls were not seen; that is its own.
	[ "$rc" -eq 0 ] || [ "$1:$rc" = own-noise:125 ] ||
		fail "$1: sbinject ended with status $rc: $(tail -n 3 "$T/sb.err")"
	! grep -x shared "$T/sb.out" || fail "$1: the worker never had counters of its own"
	grep -qx 'self-check ok' "$T/sb.out" || fail "$1: $(tail -n 3 "$T/sb.out" "$T/sb.err")"
	python3 - "$T/run.json" "$T/sb.out" <<'P'
import json, re, sys

out = open(sys.argv[2]).read()
worker, calls = map(int, re.search(r"worker (\d+) calls (\d+)", out).groups())
hits = {p["pid"]: sum(t["hits"] for t in p["targets"])
        for p in json.load(open(sys.argv[1]))["processes"]}
mine = hits.pop(worker)
print(max(hits.values()), re.search(r"calls dropped_fn (\d+)", out)[1], mine, calls)
P
}

run own >"$T/own"
read -r parent calls worker own_calls <"$T/own"
same 'hits of the parent' "$parent" "$calls"
same 'hits of the worker' "$worker" "$own_calls"
run own-noise >"$T/noise"
read -r parent calls worker own_calls <"$T/noise"
same 'hits of the parent beside noise' "$parent" "$calls"
