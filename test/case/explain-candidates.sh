#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# explain names the functions in which a victim spends its time, with their shares, and a command of a
# sweep that runs as it is printed. The victim is as it was.
# limit: 120 s
# beside idle work
. "$SRC/test/lib.sh"
need python3

start hot "$V/hot"
snapshot "$pid"
sb explain -p "$pid" --progress :item --time 2s --json "$T/run.json"
ended 0
unchanged "$pid"
[ "$(j candidates)" != null ] || { finish hot "$pid"; skip "$(j candidates_reason)"; }

python3 - run.json "$pid" <<'P' || fail "the candidates: $(cat run.json)"
import json, sys
d = json.load(open(sys.argv[1]))
found = {c["target"]: c for c in d["candidates"]}
assert d["samples"] > 50, d["samples"]  # few on a busy machine
near = 5 * (0.21 / d["samples"]) ** 0.5
for name, truth in {":hot": 0.7, ":warm": 0.2, ":cold": 0.1}.items():
    c = found[name]
    assert c["hookable"] is True, c
    assert c["ci"][0] <= c["share"] <= c["ci"][1], c
    assert abs(c["share"] - truth) < near, (c, near)
assert [c["target"] for c in d["candidates"]][:3] == [":hot", ":warm", ":cold"]
assert d["sweep"] == "sbinject sweep :hot :warm :cold --progress :item --time 60s -p " + sys.argv[2]
P
grep -q '^:hot  *[67]' sb.out || fail "no row of :hot: $(cat sb.out)"
read -ra words < <(j sweep | sed 's/^sbinject //; s/--time 60s/--time 3s/')
sb "${words[@]}" --json "$T/sweep.json"
grep -q '"sbinject.sweep/1"' sweep.json || fail "the command does not run: $(cat sb.err)"

# Without what counts the items there is no sweep, and the reason.
sb explain -p "$pid" --time 500ms --json "$T/run.json"
ended 0
same sweep "$(j sweep)" null
j sweep_reason | grep -q 'no progress' || fail "no reason: $(cat run.json)"
finish hot "$pid"
exit 0
