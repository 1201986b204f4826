#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A function that is called so often that a hook of it takes a tenth of the time is hooked for a moment
# only: it is left out, and the others are counted as if it were not hooked.
# limit: 60 s
# beside idle work
. "$SRC/test/lib.sh"
need python3

start costly "$V/found" costly
snapshot "$pid"
cat >check.py <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
alone = json.load(open(sys.argv[2]))["targets"][0]["hits"]
rates = {r["target"]: r for r in d["rates"]}
print(rates, alone)
tiny, critical = rates[":tiny"], rates[":critical"]
assert tiny["per_s"] > 1e7 and tiny["hook_cost"] > 0.1 and tiny["scatter"] is None, tiny
assert tiny["steady"] is False and tiny["multiple_of"] is None
assert d["progress"] in (None, ":critical") and ":tiny" not in (d["commands"]["sweep"] or ""), d
# With a hook of tiny() an item takes half as long again and more. Others may take the processor.
sys.exit(0 if critical["per_s"] > 0.8 * alone else 3)
P
for try in 1 2 3; do
	sb find -p "$pid" --dry-run --json "$T/run.json"
	ended 0
	unchanged "$pid"
	[ "$(j explain.candidates)" != null ] || { finish costly "$pid"; skip "$(j explain.candidates_reason)"; }
	grep -q '^:tiny is left out: a hook of it takes about [0-9]' sb.out || fail "no reason: $(cat sb.out)"
	sb :critical 0 --for 1s -p "$pid" --json "$T/alone.json"
	ended 0
	status=0
	python3 check.py run.json alone.json || status=$?
	[ $status -eq 3 ] && [ $try -lt 3 ] || break
done
[ $status -eq 0 ] || fail "what is costly: status $status: $(cat run.json)"
finish costly "$pid"
exit 0
