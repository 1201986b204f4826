#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# trace with a pattern: the calls of each function by themselves. Their sums are those of the target, in
# one process and in several that map a library at different addresses.
# beside others
# quick
. "$SRC/test/lib.sh"

sb trace 'libc.so.6:*' --json "$T/run.json" -- bash -c 'ls -lR /etc >/dev/null 2>&1; ls /' >/dev/null
ended 0 trace
python3 - "$T/run.json" >"$T/sums" <<'END' || fail "$(cat "$T/sums")"
import json, sys
target = json.load(open(sys.argv[1]))["targets"][0]
sites = [s["spans"] for s in target["sites"] if "spans" in s]
seen = {}
for s in target["sites"]:
    if "spans" in s:  # processes that share an address have one site each image
        seen[s["address"], s["symbol"], s["module"]] = s["spans"]
whole = target["spans"]
assert len(seen) > 100, len(seen)
for key in "calls", "inclusive_ns", "exclusive_ns":
    total = sum(s[key] for s in seen.values())
    assert abs(total - whole[key]) <= len(seen), (key, total, whole[key])
for s in seen.values():
    assert s["calls"] == sum(n for _, _, n in s["histogram"])
    assert s["min_ns"] <= s["p50_ns"] <= s["p90_ns"] <= s["p99_ns"] <= s["max_ns"], s
    assert s["exclusive_ns"] <= s["inclusive_ns"] and s["max_ns"] <= s["inclusive_ns"]
assert max(s["max_ns"] for s in seen.values()) == whole["max_ns"]
END
told '^functions of libc.so.6:\*, by own time: [0-9]* were called and timed$'
told '^ *own  *total  *calls  *mean  *p50  *p99  *max  *function  *module$'

# A plain name is one row, and has no second table.
sb trace libc.so.6:malloc -- ls /
ended 0 one
! grep -q '^functions of' "$T/sb.err" || fail "$(cat "$T/sb.err")"
