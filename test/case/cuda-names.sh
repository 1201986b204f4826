#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Launches have the names that the program has asked the driver for: in each format of a trace and in
# report. A handle that the program did not ask for since the attach has none, and a call that failed gives none.
# limit: 120 s
# beside others
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"
need python3

cat >"$T/names.py" <<'END'
import collections, json, sys
names = {0x1000: "add_1", 0x2000: "_Z6kernelILi3EEvPf_2", 0x3000: "k_3", 0x4000: 'tile "4" of \u00e4_4',
         0xb000: "matmul_10", 0x5000: None}
if sys.argv[3] == "older":
    names = dict.fromkeys(names)
launches, asked = collections.Counter(), collections.Counter()
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["phase"] != "X":
        continue
    a = e["args"]
    if e["name"].startswith("cuLaunchKernel"):
        f = int(a["function"], 16)
        assert a.get("kernel_name") == names[f], (a, names[f])
        launches[f] += 1
    elif e["name"] in ("cuModuleGetFunction", "cuLibraryGetKernel"):
        name = a.get("kernel_name")
        assert (a["result"] == 0) == (name is not None) == (a["kernel"] is not None), a
        asked[name] += 1
    else:
        assert "kernel_name" not in a or e["name"] == "cuKernelGetFunction", e
own = collections.Counter()
for line in open(sys.argv[2]):
    if line.startswith("launches "):
        own[int(line.split()[1], 16)] += int(line.split()[2])
assert launches == +own, (launches, own)
if sys.argv[3] == "older":
    assert not asked
else:
    n = int(sys.argv[3])
    assert all(asked[name] == n for name in ["n" * 296 + "l_13", "n" * 1008]), asked
    assert asked["add_1"] == 2 * n and asked[None] == 7 * 2 * n, asked
print(sum(launches.values()))
END

THREADS=3
sb trace cuda:launch cuda:module --json "$T/run.json" -o "$T/t.jsonl" -- \
	"$V/cuda" -t $THREADS -n 30 -e -k "$V/libcuda.so.1"
ended 0
said sb '^self-check ok$' || fail "the program: $(cat "$T/sb.out")"
same 'no call lost' "$(j trace.lost)" 0
same launches "$(python3 "$T/names.py" "$T/t.jsonl" "$T/sb.out" $THREADS 2>&1)" "$(j cuda.launches)"
cp "$T/sb.out" "$T/own.out"
cat >"$T/by-name.py" <<'END'
import json, sys
cuda = json.load(open(sys.argv[1]))["cuda"]
rows = {k["name"]: k["launches"] for k in cuda["launches_by_name"]}
assert rows == {"add_1": 90, "_Z6kernelILi3EEvPf_2": 45, "k_3": 45, 'tile "4" of \u00e4_4': 90, "matmul_10": 90, None: 90}, rows
assert sum(rows.values()) + cuda["kernels_left_out"] + cuda["kernels_unknown"] == int(sys.argv[2]), cuda
assert all(k["preset"] == "cuda" and k["handles"] and k["total_ns"] for k in cuda["launches_by_name"]), cuda
END
python3 "$T/by-name.py" "$T/run.json" "$(j cuda.launches)" || fail 'launches by name'
grep -qE '^ *90 .* cuda +matmul_10$' "$T/sb.err" || fail "the table: $(cat "$T/sb.err")"
grep -qE '^ *90 .* cuda +\(without a known name\)$' "$T/sb.err" || fail "the table: $(cat "$T/sb.err")"
for to in a.pftrace b.json c.jsonl; do
	"$SB" report "$T/t.jsonl" -o "$T/$to" >/dev/null || fail "conversion to $to"
	"$SB" report "$T/$to" -o "$T/again.jsonl" >/dev/null || fail "conversion of $to"
	python3 "$T/names.py" "$T/again.jsonl" "$T/own.out" $THREADS >"$T/out" 2>&1 || fail "$to: $(cat "$T/out")"
	"$SB" report "$T/$to" --json "$T/report.json" >"$T/report.out" || fail "report of $to"
	python3 -c 'import json, sys
rows = {(k["kernel"], k["name"]): k["launches"] for k in json.load(open(sys.argv[1]))["cuda"]["kernels"]}
assert rows[("0x1000", "add_1")] == 90 and rows[("0xb000", "matmul_10")] == 90, rows
assert rows[("0x5000", None)] == 90 and len(rows) == 6, rows' "$T/report.json" || fail "names in the report of $to"
	python3 "$T/by-name.py" "$T/report.json" "$(j cuda.launches)" || fail "names in the report of $to"
	grep -qE '^ *90 .* 0xb000 +cuda +[0-9]+ +matmul_10$' "$T/report.out" || fail "the report: $(cat "$T/report.out")"
	grep -qE '^ *90 .* 0x5000 +cuda +[0-9]+ +-$' "$T/report.out" || fail "the report: $(cat "$T/report.out")"
done

# What was not recorded is not said.
sb trace cuda:launch --json "$T/run.json" -- "$V/cuda" -n 3 "$V/libcuda.so.1"
ended 0
same 'not recorded' "$(j cuda.launches_by_name_reason)" 'calls were not recorded (-o FILE)'
sb trace cuda:launch --min 1s --json "$T/run.json" -o "$T/n.jsonl" -- "$V/cuda" -n 3 "$V/libcuda.so.1"
ended 0
same 'left out' "$(j cuda.launches_by_name_reason)" 'calls were left out when they were recorded'

# Memory: what is in use at the end is the driver's own figure.
sb trace cuda -o "$T/m.pftrace" --json "$T/run.json" -- "$V/cuda" -t $THREADS -n 30 -e "$V/libcuda.so.1"
ended 0
same 'no call lost' "$(j trace.lost)" 0
"$SB" report "$T/m.pftrace" --json "$T/run.json" >"$T/report.out" || fail 'report of memory'
same 'in use' "$(j cuda.memory.0.live_bytes)" "$(sed -n 's/^live //p' "$T/sb.out")"
same allocations "$(j cuda.memory.0.allocations)" $((2 * 30 * THREADS))
same freed "$(j cuda.memory.0.freed_bytes)" $((30 * THREADS * (1 << 20)))
same 'not known' "$(j cuda.memory.0.frees_unknown)" 0
more peak "$(j cuda.memory.0.peak_bytes)" "$(($(j cuda.memory.0.live_bytes) - 1))"
grep -qE "^memory \(cuda\): $((60 * THREADS)) allocations of [0-9]+ bytes, $((30 * THREADS)) freed " "$T/report.out" ||
	fail "memory in: $(cat "$T/report.out")"

# Copies by direction, in bytes: one of each a round.
copied() { # DIRECTION COPIES BYTES-OF
	python3 -c 'import json, sys
rows = {c["direction"]: (c["copies"], c["bytes"]) for c in json.load(open(sys.argv[1]))["cuda"]["copies"]}
assert len(rows) == 3 and rows[sys.argv[2]] == (int(sys.argv[3]), int(sys.argv[4])), rows' \
		"$T/run.json" "$1" $((30 * THREADS)) "$(sed -n "s/^bytes $2 //p" "$T/sb.out")" || fail "copies $1"
	grep -qE "^ *$((30 * THREADS)) .* $1 +cuda\$" "$T/report.out" || fail "copies $1: $(cat "$T/report.out")"
}
copied 'to device' cuMemcpyHtoD
copied 'to host' cuMemcpyDtoHAsync
copied 'to another device' cuMemcpyPeer

# What was asked for before the attach is a handle.
start older "$V/cuda" -t $THREADS -n 20 -e -K -g "$T/gate" "$V/libcuda.so.1"
rm -f "$T/told"
sb_start trace -p "$pid" cuda:launch cuda:module -o "$T/o.jsonl" --json "$T/run.json" --status-fd 9 9>"$T/told"
wait_for 20 grep -q '^attached' "$T/told" || fail "no attach to $pid"
touch "$T/gate"
sb_wait
ended 0
said older '^self-check ok$' || fail "the program: $(cat "$T/older.out")"
same 'launches of older handles' "$(python3 "$T/names.py" "$T/o.jsonl" "$T/older.out" older 2>&1)" "$(j cuda.launches)"
