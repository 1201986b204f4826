#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --events of a session with --evidence: each wait of a thread is a line. Their sum is what the program's
# own clocks say, and to the ns what the counters say; a reader that is slow or gone holds neither
# the program nor the session; after SIGKILL no program is left in the kernel.
# limit: 90 s
. "$SRC/test/lib.sh"
need python3
need_root
need setpriv

cat >check.py <<'P'
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
run = json.load(open(sys.argv[2]))["evidence"]
# A host that takes the processor away makes a line late.
late = sum(a["monotonic_s"] > b["monotonic_s"] for a, b in zip(lines, lines[1:]))
assert late <= len(lines) / 100, "%d lines are not in order" % late
assert all(abs(l["realtime_s"] - l["monotonic_s"] - (lines[0]["realtime_s"] - lines[0]["monotonic_s"])) < 0.05 for l in lines)
waits = [l for l in lines if l["event"] == "wait"]
last = [l for l in lines if l["event"] == "evidence"][-1]
kinds = [l["event"] for l in lines if l["event"] != "wait"]
assert kinds[-2:] == ["detaching", "detached"] and "attached" in kinds, kinds
assert last["agrees"] is True and last["waits"] == len(waits) and last["waits_lost"] == 0, last
assert run["events"] == {"waits": len(waits), "waits_lost": 0, "lines_unwritten": 0, "agrees": True}, run["events"]
assert last["counters"] == run["counters"]
for w in waits:
    assert w["woken_by"] is None or w["reason"] == "futex", w
    assert set(w) == {"event", "realtime_s", "monotonic_s", "pid", "tid", "name", "cpu", "reason",
                      "wait_ns", "run_queue_ns", "futex", "woken_by", "whole"}, w
    assert (w["futex"] is None or w["reason"] == "futex") and (w["wait_ns"] == 0 if w["reason"] == "run_queue" else True), w

# A thread's lines are its counters, but for the wait in progress at the end.
threads = {t["tid"]: t for t in run["threads"]}
for tid, t in threads.items():
    own = [w for w in waits if w["tid"] == tid]
    missing = {r: t["counters"][r + "_ns"] - sum(w["wait_ns"] for w in own if w["reason"] == r)
               for r in ("futex", "io", "network", "page_fault", "sleep", "other")}
    assert all(v >= 0 for v in missing.values()) and sum(v > 0 for v in missing.values()) <= 1, (t["name"], missing)
    assert sum(w["run_queue_ns"] for w in own) <= t["counters"]["run_queue_ns"], t
assert {w["name"] for w in waits} >= {"v-producer", "v-consumer"}, {w["name"] for w in waits}

# By the program's own clocks.
stolen = float(sys.argv[4]) * 1e6
for line in open(sys.argv[3]):
    if not line.startswith("truth v-consumer "):
        continue
    wall, cpu, queue, more_cpu, more_queue, calls, in_calls, voluntary, involuntary, minor = map(int, line.split()[2:])
    futex = sum(w["wait_ns"] for w in waits if w["name"] == "v-consumer" and w["reason"] == "futex")
    apart = 2e6 + stolen + 1e3 * (voluntary + involuntary)
    print("v-consumer futex", futex / 1e6, "own", (wall - cpu - queue) / 1e6, "waits", len(waits))
    assert abs(futex - (wall - cpu - queue)) <= 0.02 * futex + apart, (futex, wall - cpu - queue, apart)
    one = [w for w in waits if w["name"] == "v-consumer" and w["reason"] == "futex"]
    assert all(w["futex"].startswith("0x") for w in one)
    producer = next(tid for tid, t in threads.items() if t["name"] == "v-producer")
    by = [w["woken_by"] for w in one]
    assert by.count(producer) > 0.9 * len(by), (by.count(producer), len(by))
    break
else:
    sys.exit("no line of the consumer")
P

"$SB" doctor --json - >doctor.json
[ "$("$TOOL/jget" doctor.json evidence.2.ok)" = true ] || skip "no BPF: $("$TOOL/jget" doctor.json evidence.2.reason)"
stolen() { awk '/^cpu / { printf "%d", $9 * 10 }' /proc/stat; } # ms that the host took

streamed() { # one try
	local before

	rm -f gate events.jsonl
	start truth "$V/truth" queue -g "$T/gate" 1
	sb_start -p "$pid" --evidence --events "$T/events.jsonl" --json "$T/run.json"
	await_session
	sleep 0.3
	before=$(stolen)
	touch gate
	wait_for 20 said truth '^over$' || fail "the work does not end: $(cat truth.out)"
	kill -INT "$sb_pid"
	sb_wait
	ended 0
	finish truth "$pid"
	python3 check.py events.jsonl run.json truth.out $(($(stolen) - before)) >check 2>&1
}
streamed || streamed || streamed || fail "$(cat check)" # a host that takes the processor away is no fault
cat check
grep -q '^  events: [0-9]* waits, 0 lost$' sb.err || fail "the summary: $(cat sb.err)"

# The standard output; a reader that is gone; one that sleeps, with a program that runs on.
start reasons "$V/reasons"
snapshot "$pid"
"$SB" -p "$pid" --evidence --for 500ms --events - 2>sb.err >lines || fail "to the standard output: $(cat sb.err)"
tail -n 3 lines | head -n 1 | grep -q '"event":"evidence".*"agrees":true}$' || fail "the last lines: $(tail -n 3 lines)"
[ "$(grep -c '"event":"wait"' lines)" -gt 20 ] || fail "few waits: $(cat lines)"
"$SB" -p "$pid" --evidence --for 500ms --events - 2>sb.err | head -n 1 >first
grep -q '"event":' first || fail 'no first line'
grep -q 'warning: --events: .*rest is not written' sb.err || fail "a reader that is gone: $(cat sb.err)"
mkfifo pipe
sleep 30 <>pipe &
reader=$!
pids+=("$reader")
sb -p "$pid" libc.so.6:getpid 0 --evidence --for 1s --events "$T/pipe" --json "$T/run.json"
ended 0
same 'lapsed hits' "$(j lease_lapsed_hits)" 0
same 'with a reader that sleeps the waits' "$(j evidence.events.agrees)" true
kill "$reader"
"$SB" -p "$pid" --evidence=network --for 300ms --events "$T/groups.jsonl" 2>sb.err || fail "groups: $(cat sb.err)"
! grep -q '"event":"wait"' groups.jsonl || fail 'waits, which are not among the groups'
setpriv --bounding-set -bpf,-perfmon,-sys_admin "$SB" -p "$pid" --evidence --for 300ms \
	--events "$T/proc2.jsonl" --json "$T/run.json" 2>sb.err || fail "by /proc: $(cat sb.err)"
same 'waits by /proc' "$(j evidence.events)" null
! grep -q '"event":"wait"' proc2.jsonl || fail 'waits by /proc'
grep -q '"source":"proc".*"agrees":null}$' proc2.jsonl || fail "the counters: $(cat proc2.jsonl)"
refuses 2 'both take standard output' -p "$pid" --evidence --events - --json -
refuses 125 'belongs to the command' --evidence --events - -- true
refuses 2 'no target is given' -p "$pid" --events -

# SIGKILL of both processes.
sb_start -p "$pid" --evidence --for 30s --events "$T/killed.jsonl"
wait_for 20 grep -q '"reason":"sleep"' killed.jsonl || fail "no waits: $(cat sb.out sb.err)"
tracer=$(pgrep -P "$sb_pid" | head -n 1)
sed -n 's/^prog_id:\t*//p' "/proc/$tracer/fdinfo/"* 2>/dev/null | sort -u >ids
[ "$(wc -l <ids)" -ge 5 ] || fail "few programs: $(cat ids)"
kill -KILL "$sb_pid" "$tracer"
sb_wait 2>/dev/null
gone() { ! "$TOOL/bpfids" | grep -qxf ids; }
wait_for 10 gone || fail "programs stay: $("$TOOL/bpfids" | grep -xf ids)"
head -n -1 killed.jsonl | python3 -c 'import json, sys; [json.loads(l) for l in sys.stdin]' || fail 'torn lines'
unchanged "$pid"
finish reasons "$pid"
exit 0
