#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# More timed targets than the set of calls in progress has bits: two share one (numbers 125 and 188, bit 62), one
# calls the other, and both have each call, with its time, and the records have their names.
# limit: 120 s
. "$SRC/test/lib.sh"

[ -x "$V/torture" ] || skip 'there is no C++ compiler'
need_python

start spans "$V/spans"
# Functions of libc that such a program does not call.
sb list -p "$pid" 'libc.so.6:mb*' 'libc.so.6:wc*' 'libc.so.6:get*ent*' 'libc.so.6:key*' 'libc.so.6:svc*' \
	'libc.so.6:xdr_*' --json "$T/list.json"
finish spans "$pid"
"${python[0]}" - "$T/list.json" >"$T/names" <<'END'
import json, sys
names = []
for target in json.load(open(sys.argv[1]))["targets"]:
    for site in target["sites"]:
        if site["symbol"] not in names and "@" not in site["symbol"]:
            names.append(site["symbol"])
print("\n".join(names))
END
[ "$(wc -l <"$T/names")" -ge 187 ] || skip "libc has $(wc -l <"$T/names") such functions"
mapfile -t others < <(sed -n '1,187s/^/libc.so.6:=/p' "$T/names")
sb trace "${others[@]:0:125}" :t_leaf "${others[@]:125:62}" :t_outer -o "$T/spans.jsonl" --json "$T/run.json" -- \
	"$V/torture" -s 7 -d 300 -t 2 -l 20000 plain
ended 0
grep '^{' "$T/sb.out" >"$T/own.json"
"${python[0]}" - "$T" <<'END' || fail 'calls, times or names'
import collections, json, sys
run, own = (json.load(open(f"{sys.argv[1]}/{n}.json")) for n in ("run", "own"))
names = collections.Counter()
for line in open(f"{sys.argv[1]}/spans.jsonl"):
    event = json.loads(line)
    if "dur_us" in event:
        names[event["name"]] += 1
wrong = []
for target in run["targets"]:
    name, spans = target["spec"].split(":")[1], target["spans"]
    if name not in own["functions"]:
        continue
    mine = own["functions"][name]
    mean, true = spans["inclusive_ns"] / spans["calls"], mine["sum"] * own["ns_per_tick"] / mine["calls"]
    print(name, spans["calls"], mine["calls"], names[name], mean, true)
    if not spans["calls"] == mine["calls"] == names[name] or spans["missed"]:
        wrong.append(name)
    if not true * 0.97 - 900 <= mean <= true * 1.03 + 150:
        wrong.append(f"{name}: {mean} {true}")
print(wrong, sum(names.values()))
sys.exit(bool(wrong) or set(names) != {"t_leaf", "t_outer"})
END
