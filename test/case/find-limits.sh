#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# find, given a pid alone: the function that sets the pace limits the program, the one beside it does
# not matter. The victim is as it was, and the commands of the steps are those that it ran.
# limit: 240 s
. "$SRC/test/lib.sh"
need python3
[ "$(nproc)" -ge 2 ] || skip 'one processor hides nothing'

start found "$V/found" join
snapshot "$pid"
found=
for _ in 1 2 3; do
	sb find -p "$pid" --time 28s --json "$T/run.json"
	[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "exit status $rc: $(cat sb.err)"
	unchanged "$pid"
	[ "$(j explain.candidates)" != null ] || { finish found "$pid"; skip "$(j explain.candidates_reason)"; }
	python3 - run.json "$pid" <<'P' && found=yes && break
import json, sys
d = json.load(open(sys.argv[1]))
assert d["schema"] == "sbinject.find/1" and d["ended_early"] is False
if not d["sweep"]:
    print(d["sweep_reason"])
    sys.exit(3)  # a busy machine: no function is called regularly
assert d["progress"] in (":critical", ":beside") and d["progress_given"] is False, d["progress"]
rates = {r["target"]: r for r in d["rates"]}
assert abs(rates[":critical"]["calls"] - rates[":beside"]["calls"]) <= 2, rates
assert rates[":critical"]["multiple_of"] is None
verdict = {t["spec"]: t["verdict"] for t in d["sweep"]["targets"]}
print(verdict)
assert verdict[":critical"] not in ("HIDDEN", "NOT CALLED"), verdict
assert verdict[":beside"] != "NOT CALLED", verdict
command = d["commands"]["sweep"]
assert command.startswith("sbinject sweep :critical") and command.endswith("-p " + sys.argv[2]), command
# Where others need the processors, a delay of the one beside is felt, too.
sys.exit(0 if verdict[":critical"] == "CRITICAL" and verdict[":beside"] in ("HIDDEN", "SLACK") else 3)
P
	[ $? -eq 3 ] || fail 'see above'
	[ "$SECONDS" -lt 120 ] || break
done
[ "$found" ] || { finish found "$pid"; skip 'too noisy a machine'; }
grep -q '^The answer$' sb.out || fail "no answer: $(cat sb.out)"
sed -n '/^what limits/,/^what does not/p' sb.out | grep -q '^  :critical:' || fail "$(cat sb.out)"
sed -n '/^what does not/,$p' sb.out | grep -q '^  :beside:' || fail "$(cat sb.out)"
finish found "$pid"
exit 0
