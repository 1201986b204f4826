#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A launch by the runtime API has the name of the function at its address, whatever the symbol, also where another
# library takes the place of one that was closed. An address that begins no function has none, and what the program
# has asked for by name has that.
# limit: 90 s
# beside others
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"
need python3
need c++

cat >"$T/stubs.py" <<'END'
import collections, json, sys
own, launches, places = {}, collections.Counter(), []
for line in open(sys.argv[2]):
    word = line.rstrip("\n").split(" ", 2)
    if word[0] == "launched":
        own[word[2] or None] = int(word[1])
    elif word[0] == "place":
        places.append(word[1])
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["phase"] == "X" and e["name"].startswith("cudaLaunchKernel"):
        launches[e["args"].get("kernel_name")] += 1
assert launches == own, (launches, own)
rows = {k["name"]: k["launches"] for k in json.load(open(sys.argv[3]))["cuda"]["launches_by_name"]}
assert rows == own, (rows, own)
print("in one place" if len(set(places)) == 1 else "elsewhere", sum(own.values()))
END

# check WHERE: what the trace says of the program is what it says of itself.
check() {
	ended 0
	said "$1" '^self-check ok$' || fail "the program: $(cat "$T/$1.out")"
	same 'no call lost' "$(j trace.lost)" 0
	python3 "$T/stubs.py" "$T/t.jsonl" "$T/$1.out" "$T/run.json" >"$T/out" 2>&1 || fail "names: $(cat "$T/out")"
}

sb trace cudart:launch cudart:module --json "$T/run.json" -o "$T/t.jsonl" -- \
	"$V/cudart" -n 20 "$V/libstub-one.so" "$V/libstub-two.so"
check sb
grep -qE '^ *40 .* cudart +model::scale<3, float>\(float\*, unsigned long\)$' "$T/sb.err" ||
	fail "the table: $(cat "$T/sb.err")"

# A program that runs already.
start cudart "$V/cudart" -n 20 -g "$T/gate" "$V/libstub-one.so" "$V/libstub-two.so"
snapshot "$pid"
sb_start trace -p "$pid" cudart:launch cudart:module --json "$T/run.json" -o "$T/t.jsonl" --status-fd 9 9>"$T/told"
wait_for 20 grep -q '^attached' "$T/told" || fail "no attach to $pid"
touch "$T/gate"
sb_wait
check cudart

# A file without symbols names nothing but what it exports.
cp "$V/libcudart.so.13" "$V/cudart" "$T/"
strip "$T/cudart"
sb trace cudart:launch --json "$T/run.json" -o "$T/t.jsonl" -- "$T/cudart" -n 3 "$V/libstub-one.so" "$V/libstub-two.so"
ended 0
same 'names of a stripped file' "$(python3 -c 'import json, sys
print(sorted(k["name"] or "-" for k in json.load(open(sys.argv[1]))["cuda"]["launches_by_name"]))' "$T/run.json")" \
	"['-', 'hidden(int)', 'plugin::stub_of_one(float*)', 'plugin::stub_of_two(float*)']"
