#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# find proposes the function that is called once an item, not the one that it calls five times; with
# --dry-run nothing is delayed, and the command of the sweep is printed. An interrupt at any step leaves
# the victim as it was, and what is known is printed.
# limit: 120 s
# beside idle work
. "$SRC/test/lib.sh"
need python3

start found "$V/found" inner
snapshot "$pid"
sb find -p "$pid" --no-children --mechanism jump --dry-run --json "$T/run.json"
ended 0
unchanged "$pid"
[ "$(j explain.candidates)" != null ] || { finish found "$pid"; skip "$(j explain.candidates_reason)"; }
python3 - run.json "$pid" <<'P' || fail "the point: $(cat sb.out)"
import json, sys
d = json.load(open(sys.argv[1]))
rates = {r["target"]: r for r in d["rates"]}
assert abs(rates[":inner"]["calls"] - 5 * rates[":critical"]["calls"]) <= 6, rates
assert d["sweep"] is None and "dry-run" in d["sweep_reason"] or d["progress"] is None
# Each step hooks the same processes in the same way.
assert all(c.endswith(" --no-children --mechanism jump") for c in d["commands"].values() if c), d
if d["progress"] is None:  # a busy machine
    sys.exit(0)
assert d["progress"] == ":critical", d["progress"]
assert rates[":inner"]["multiple_of"] == ":critical"
assert d["commands"]["sweep"].startswith("sbinject sweep :inner :critical --progress :critical"), d
P
grep -q '^The answer$' sb.out || fail "no answer: $(cat sb.out)"

# In the samples, while calls are counted, in the sweep.
for after in 2 6 12; do
	sb_start find -p "$pid" --time 60s
	sleep "$after"
	kill -INT "$sb_pid"
	sb_wait
	[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "after $after s: status $rc: $(cat sb.err)"
	grep -q '^The answer$' sb.out || fail "after $after s: no answer: $(cat sb.out)"
	unchanged "$pid"
done
refuses 2 'looks for the functions itself' find :inner -p "$pid"
refuses 2 'too short' find -p "$pid" --time 1s
refuses 2 'no process' find
finish found "$pid"
refuses 5 'no process' find -p "$pid"
exit 0
