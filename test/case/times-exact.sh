#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# time=yes: mean, median and own time are those that the program measures itself, on one thread and
# on eight.
# limit: 120 s
. "$SRC/test/lib.sh"

[ -x "$V/torture" ] || skip 'there is no C++ compiler'
need_python

cat >"$T/exact.py" <<'END'
import json, sys
run, own = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
tick, wrong = own["ns_per_tick"], []
def near(what, seen, true, below=150, above=150):
    print(what, round(seen), round(true))
    if not true * 0.97 - below <= seen <= true * 1.03 + above:
        wrong.append(f"{what}: {seen:.0f}, not {true:.0f}")
def edge(i):
    return i if i < 32 else (32 + i % 32) << (i // 32 - 1)
def median(rows):
    left = sum(n for _, n in rows) / 2
    for i, n in rows:
        if n >= left:
            return (edge(i) + (edge(i + 1) - edge(i)) * left / n) * tick
        left -= n
exclusive = 0
for target in run["targets"]:
    name, spans = target["spec"][1:], target["spans"]
    mine = own["functions"][name]
    if spans["calls"] != mine["calls"] or spans["missed"]:
        wrong.append(f"{name}: {spans['calls']} calls, {spans['missed']} missed, of {mine['calls']}")
    # the program's clock runs on while the calls in a call are measured
    below = 150 if name == "t_leaf" else 900
    near(name + " mean", spans["inclusive_ns"] / spans["calls"], mine["sum"] * tick / mine["calls"], below)
    near(name + " median", spans["p50_ns"], median(mine["histogram"]), below)
    exclusive += spans["exclusive_ns"]
calls = sum(own["functions"][n]["calls"] for n in ("t_leaf", "t_outer"))
near("own time", exclusive / calls, own["outermost"] * tick / calls, 300)
print("\n".join(wrong))
sys.exit(bool(wrong))
END

for threads in 1 8; do
	sb :t_leaf 0 time=yes :t_outer 0 time=yes --json "$T/run.json" -- \
		"$V/torture" -s $RANDOM -d 600 -t $threads -l 20000 plain
	ended 0
	grep '^{' "$T/sb.out" >"$T/own.json"
	"${python[0]}" "$T/exact.py" "$T/run.json" "$T/own.json" >"$T/compared" || fail "$threads: $(cat "$T/compared")"
done
