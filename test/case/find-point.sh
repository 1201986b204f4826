#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# find proposes the function that is called once an item, not the one that it calls five times; with
# --dry-run nothing is delayed, and the command of the sweep is printed. An interrupt at any step leaves
# the victim as it was, and what is known is printed.
# limit: 120 s
# beside idle work, two at a time
. "$SRC/test/lib.sh"
need python3

start found "$V/found" inner
snapshot "$pid"
sb find -v -p "$pid" --no-children --mechanism jump --dry-run --json "$T/run.json"
ended 0
unchanged "$pid"
[ "$(j explain.candidates)" != null ] || { finish found "$pid"; skip "$(j explain.candidates_reason)"; }
python3 - run.json "$pid" <<'P' || fail "the point: $(cat sb.out)"
import json, math, re, sys
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
# Of what is called so often that even the smallest delay of each call is a large part of the time, each
# Nth call is delayed, and of nothing else: the smallest dose is a sixteenth of the largest, 30 %.
words = d["commands"]["sweep"].split(" --progress ")[0].split()
tiny = rates.get(":tiny")
assert tiny or d["explain"]["samples"] < 1000, d["explain"]
if tiny and tiny["share"] >= 0.02:
    floor_ns = max(40, float(re.findall(r"floor ([0-9.]+) ns", open("sb.err").read())[0]))
    smallest = tiny["per_s"] * floor_ns / 1e9
    n = int((re.findall(r" :tiny every=([0-9]+)$", " ".join(words)) or [1])[0])
    print(tiny, "floor", floor_ns, words)
    assert words[:4] == ["sbinject", "sweep", ":inner", ":critical"] and len(words) == 5 + (n > 1), words
    assert n in [1 << max(0, math.ceil(math.log2(16 * smallest * near / 0.3))) for near in (0.8, 1, 1.25)], (n, smallest)
assert d["commands"]["sweep"].startswith("sbinject sweep :inner :critical "), d
assert " --progress :critical " in d["commands"]["sweep"], d
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
