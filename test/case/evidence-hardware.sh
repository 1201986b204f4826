#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# --evidence=hardware has what the processor counted; on a machine that does not show it, null and the
# reason, in each output, and never 0.
. "$SRC/test/lib.sh"
need python3

start reasons "$V/reasons"
snapshot "$pid"
port=$(free_port)
attach "$pid" :item 0 --evidence=faults,hardware --metrics "$port" --json "$T/run.json"
await_session
sleep 0.5
python3 - "http://127.0.0.1:$port" <<'P' >live.err 2>&1 || fail "live: $(cat live.err)"
import json, sys, urllib.request as u
page = u.urlopen(sys.argv[1] + "/metrics").read().decode()
e = json.loads(u.urlopen(sys.argv[1] + "/report").read())["evidence"]
has = e["hardware"]["limit"] is None
assert ("\nsbinject_evidence_cpu_cycles_total " in page) == has, page
assert (e["cpu"]["cycles"] is not None) == has and e["cpu"]["cycles"] != 0, e
P
sb_stop
ended 0
"$SB" doctor --json - >doctor.json
"$SB" explain -p "$pid" --time 300ms --evidence=hardware --json "$T/explain.json" >explain.out 2>&1 || fail "explain: $(cat explain.out)"
python3 - run.json explain.json doctor.json <<'P' >check 2>&1 || fail "$(cat check)"
import json, sys
run, explain, doctor = (json.load(open(f)) for f in sys.argv[1:])
names = ["cycles", "instructions", "llc_references", "llc_misses", "dtlb_load_misses", "branch_misses"]
e = run["evidence"]
row = next(r for r in doctor["evidence"] if r["check"] == "counters of the processor")
print(e["hardware"], row, explain["hardware"])
per_item = {c["counter"]: c for c in explain["counters"]}
assert row["ok"] == (e["hardware"]["limit"] is None) == (explain["hardware"]["limit"] is None)
if row["ok"]:
    h = e["hardware"]
    assert h["threads"] >= len(e["threads"]) and h["threads_left_out"] == 0 and 0 < h["counted"] <= 1
    assert e["counters"]["cycles"] > 0 and e["counters"]["instructions"] > 0
    assert per_item["cycles"]["per_item"] > 0
    assert sum(t["counters"]["cycles"] or 0 for t in e["threads"]) <= e["counters"]["cycles"]
else:
    assert row["reason"] == e["hardware"]["limit"]
    assert e["hardware"]["counted"] is None and e["hardware"]["threads"] == 0
    for n in names:
        assert e["counters"][n] is None and per_item[n]["per_item"] is None
        why = per_item[n]["unknown"]
        assert why.startswith(("not on this machine: no hardware counters (", "the kernel does not permit")), why
        assert all(t["counters"][n] is None for t in e["threads"])
assert e["counters"]["page_faults_minor"] is not None and e["counters"]["on_cpu_ns"] is None
P
grep -Eq '^ *(the processor|counters of the processor): ' sb.err || fail "the summary: $(cat sb.err)"
grep -Eq 'the processor(, per item)?: ' explain.out || fail "explain: $(cat explain.out)"
unchanged "$pid"
finish reasons "$pid"
