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
found='' calm=0
for _ in 1 2 3; do
	sb find -p "$pid" --time 20s --json "$T/run.json"
	[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "exit status $rc: $(cat sb.err)"
	unchanged "$pid"
	[ "$(j explain.candidates)" != null ] || { finish found "$pid"; skip "$(j explain.candidates_reason)"; }
	python3 - run.json "$pid" <<'P' && found=yes && break
import json, sys
d = json.load(open(sys.argv[1]))
assert d["schema"] == "sbinject.find/1" and d["ended_early"] is False
if not d["sweep"]:
    print(d["sweep_reason"], d["rates"])
    assert all(r["scatter"] is None or r["scatter"] > 0.35 for r in d["rates"]), "regular, and no sweep"
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
if verdict[":critical"] == "CRITICAL" and verdict[":beside"] in ("HIDDEN", "SLACK"):
    sys.exit(0)
# Where others need the processors, a delay of the one beside is felt, too, and equal arms scatter.
s = d["sweep"]
lo, hi = s["gates"]["aa_ci"]
apart = [(hi - lo) / 2 * t["t0_ns"] / t["doses"][-1]["x_ns"] for t in s["targets"]
         if lo is not None and t["t0_ns"] and t["doses"] and t["doses"][-1]["x_ns"]]
noise = s["cpus_busy"] >= 0.9 or s["cpus_steal"] >= 0.02 or any(a > s["threshold"] / 3 for a in apart)
print("busy", s["cpus_busy"], "steal", s["cpus_steal"], "equal arms", apart)
sys.exit(3 if noise else 4)
P
	case $? in
	3) ;;
	4) calm=$((calm + 1)) ;;
	*) fail 'see above' ;;
	esac
	[ "$SECONDS" -lt 120 ] || break
done
[ "$found" ] || [ "$calm" -lt 2 ] || fail "$calm sweeps saw no noise: $(cat sb.out)"
[ "$found" ] || { finish found "$pid"; skip 'too noisy a machine'; }
grep -q '^The answer$' sb.out || fail "no answer: $(cat sb.out)"
sed -n '/^what limits/,/^what does not/p' sb.out | grep -q '^  :critical:' || fail "$(cat sb.out)"
sed -n '/^what does not/,$p' sb.out | grep -q '^  :beside:' || fail "$(cat sb.out)"
finish found "$pid"
exit 0
