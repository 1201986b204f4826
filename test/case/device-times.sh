#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Device times: what a stand-in for CUPTI recorded is in the trace, the summary and the report, each
# record once, with its name and length, and at the time of the call that asked for it.
# beside idle work, two at a time
# limit: 120 s
. "$SRC/test/lib.sh"
export XDG_CONFIG_HOME="$T/none"
need python3
mkdir "$T/dev"
mknod "$T/dev/nvidia-uvm" c 1 3 || skip 'no device can be made'
: <>"$T/dev/nvidia-uvm" || skip 'devices cannot be opened here'
cuda=("$V/cuda" -d "$T/dev/nvidia-uvm")
own=(-c "$V/libcupti.so.12" "$V/libcuda.so.1")

# device.py RUN.JSON TRACE.JSONL PROGRAM.OUT: the three agree; prints the number of records
cat >"$T/device.py" <<'END'
import collections, json, subprocess, sys
run, trace, out = sys.argv[1:]
d = json.load(open(run))["cuda"]["device"]
own = {}
for line in open(out):
    if line.startswith("cupti record "):
        n, total, low, high, size, name = line.split(None, 7)[2:]
        own[name.strip()] = tuple(map(int, (n, total, low, high, size)))
def plain(name):
    return subprocess.run(["c++filt", "-p"], input=name, capture_output=True, text=True).stdout.strip()
seen = collections.defaultdict(list)
spans = []
for line in open(trace):
    e = json.loads(line)
    if e["phase"] != "X" or e["type"] != "device":
        continue
    a = e["args"]
    ns = round(e["dur_us"] * 1000)
    what = a["module"]
    assert what in ("kernel", "copy", "memset"), e
    seen[e["name"] if what == "kernel" else what].append((ns, a.get("bytes", 0)))
    assert a["device"] == 1 and a["context"] == 3 and a["stream"] in (7, 20), e
    assert what != "kernel" or a["grid_x"] > 0 and a["shared"] >= 16, e
    spans.append((round(e["ts"] * 1e9), ns, a["correlation"], what, e["name"]))
names = {n: n.split("(")[0].replace("void ", "") for n in own}
for name, (n, total, low, high, size) in own.items():
    for s in seen:
        if s == name or s.split("(")[0] == plain(name).replace("void ", "").split("(")[0] or (name, s) == ("(none)", "(kernel without a name)"):
            got = seen.pop(s)
            break
    else:
        raise AssertionError((name, list(seen)))
    times = [t for t, _ in got]
    assert (len(got), sum(times), min(times), max(times), sum(b for _, b in got)) == (n, total, low, high, size), (name, got[:3], own[name])
assert not seen, seen.keys()
kernels = {n: o for n, o in own.items() if n not in ("copy", "memset")}
add = lambda rows, i: sum(r[i] for r in rows)
assert d["kernels"] == add(kernels.values(), 0) and d["kernel_ns"] == add(kernels.values(), 1), d
assert (d["copies"], d["copy_ns"], d["copied_bytes"]) == tuple(own["copy"][i] for i in (0, 1, 4)), d
assert (d["memsets"], d["memset_ns"]) == own["memset"][:2], d
rows = sorted((r["count"], r["total_ns"], r["min_ns"], r["max_ns"]) for r in d["by_kernel"])
assert rows == sorted(o[:4] for o in kernels.values()), rows
assert [r["total_ns"] for r in d["by_kernel"]] == sorted((r["total_ns"] for r in d["by_kernel"]), reverse=True)
# the union of the spans
busy, end = 0, 0
for start, ns, *_ in sorted(spans):
    busy += max(0, start + ns - max(end, start))
    end = max(end, start + ns)
assert len(d["busy"]) == 1 and d["busy"][0]["device"] == 1 and d["busy"][0]["busy_ns"] == busy, (d["busy"], busy)
if d["records"] is not None: # of a report they are not known
    assert d["records"] == d["written"] == len(spans) and not d["dropped"] and not d["unknown"], d
    assert d["clock_error_ns"] < 1000000, d
assert sorted(c for *_, c, _, _ in spans) == list(range(min(s[2] for s in spans), min(s[2] for s in spans) + len(spans)))
print(len(spans))
END

# spans.py TRACE.JSONL ERROR: each record begins within the call that asked for it: the stand-in
# numbers its records in the order of calls, and one thread makes them
cat >"$T/spans.py" <<'END'
import json, sys
error = int(sys.argv[2])
calls, work, memsets = [], [], 0
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e["phase"] != "X":
        continue
    start, ns = round(e["ts"] * 1e9), round(e["dur_us"] * 1000)
    if e["type"] == "device":
        work.append((e["args"]["correlation"], start))
        memsets += e["args"]["module"] == "memset"
    elif e["name"].startswith(("cuLaunchKernel", "cuMemcpy", "cuMemset")):
        calls.append((start, start + ns))
calls.sort()
work.sort()
# What was called before the records were enabled has none. They are enabled kind by kind, memsets last: of the seven
# calls of a round the one that has a record only if all others have.
whole = 7 * memsets
calls, work = calls[-whole:], work[-whole:]
off = [max(c[0] - w[1], w[1] - c[1]) for c, w in zip(calls, work)]
# a call's time is without what it costs to measure, so it may seem to end too early
late = sum(o > error + 1000 for o in off)
assert len(work) > 100 and late <= len(work) // 50, (late, len(work), sorted(off)[-5:], error)
END

run() { # THREADS ROUNDS
	sb trace cuda:launch cuda:memcpy cuda:memset --device-times -o "$T/t.jsonl" --json "$T/run.json" -- \
		"${cuda[@]}" -t "$1" -n "$2" -u 1000000 "${own[@]}"
	ended 0
	said sb '^self-check ok$' || fail "the program: $(cat "$T/sb.out")"
	said sb '^cupti subscribed 0 enabled 0 subscriptions 2$' || fail "what it left: $(grep ^cupti "$T/sb.out")"
	python3 "$T/device.py" "$T/run.json" "$T/t.jsonl" "$T/sb.out" >"$T/n" 2>&1 || fail "$1 threads: $(cat "$T/n")"
	more 'records' "$(cat "$T/n")" 100
	grep -qE '^device times: kernels [0-9]+ of .*, copies [0-9]+ of .* bytes\), memsets [0-9]+ of ' "$T/sb.err" ||
		fail "the summary: $(cat "$T/sb.err")"
}
run 3 300
run 1 300
python3 "$T/spans.py" "$T/t.jsonl" "$(j cuda.device.clock_error_ns)" >"$T/out" 2>&1 || fail "times: $(cat "$T/out")"

# All formats, and the report of each, have the same.
for to in a.pftrace b.json c.jsonl; do
	"$SB" report "$T/t.jsonl" -o "$T/$to" >/dev/null || fail "conversion to $to"
	"$SB" report "$T/$to" -o "$T/again.jsonl" >/dev/null || fail "conversion of $to"
	"$SB" report "$T/$to" --json "$T/report.json" >"$T/report.out" || fail "report of $to"
	same "records of $to" "$(python3 "$T/device.py" "$T/report.json" "$T/again.jsonl" "$T/sb.out" 2>&1)" "$(cat "$T/n")"
	grep -q '^device times: kernels ' "$T/report.out" || fail "the report of $to: $(cat "$T/report.out")"
done

# Small buffers are given back by CUPTI's own thread, while the program launches.
VICTIM_CUPTI=small run 4 500
# Sums are of what ran after the agent was in.
told "; recorded from [0-9.]*ms on$"
more 'ns until then' "$(j cuda.device.late_ns)" 0

# A child that was forked from a process which uses CUDA cannot use it, and is left alone.
sb trace cuda:launch --device-times -o "$T/t.jsonl" --json "$T/run.json" -- \
	"${cuda[@]}" -f -n 300 -u 1000000 "${own[@]}"
ended 0
same 'one of two processes' "$(j cuda.device.processes)" 1

# A child exits at once: it has the agent's code, and none of its threads.
sb trace cuda:launch --device-times -o "$T/t.jsonl" --json "$T/run.json" -- \
	"${cuda[@]}" -F -n 300 -u 1000000 "${own[@]}"
ended 0
more 'kernels' "$(j cuda.device.kernels)" 100
less 'ns of its exit' "$(sed -n 's/^took child //p' "$T/sb.out")" 1000000000

# Without a file there is no place for them; without a device nothing is loaded.
refuses 125 'device-times needs -o' trace cuda --device-times -- "${cuda[@]}" -n 1 "${own[@]}"
refuses 125 'device-times needs --backend inject' trace cuda --device-times --no-follow -o "$T/t.jsonl" -- "${cuda[@]}" -n 1 "${own[@]}"
sb trace cuda:launch --device-times -o "$T/t.jsonl" --json "$T/run.json" -- "$V/cuda" -n 100 -u 1000000 "${own[@]}"
ended 0
same 'no device' "$(j cuda.device.reason)" 'no process used a device'
said sb '^cupti subscribed 0 enabled 0 subscriptions 0$' || fail "without a device: $(grep ^cupti "$T/sb.out")"
