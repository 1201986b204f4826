#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A sweep tells where the delay went: out of a producer's wait for room in a queue, or onto the
# processor of the consumer, with any seed. Unasked it reads /proc and loads nothing. SIGKILL leaves
# neither a program nor a hook.
# limit: 240 s
# beside idle work
. "$SRC/test/lib.sh"
. "$SRC/test/sweep.bash"
need python3
[ "$(nproc)" -ge 2 ] || skip 'one processor hides nothing'

# explains VERDICT PROGRAM FUNCTION ARGS...: one of three sweeps, each longer, with another seed, has the
# verdict, and the evidence that PROGRAM asserts. Noise makes other verdicts, and never other words.
seed=0
explains() {
	local want=$1 program=$2 function=$3 try

	shift 3
	tries=0 calm=0 seen=''
	for try in 1 2 3; do
		seed=$((seed + 1))
		sweep "$pid" "$function" --progress :item --time $((5 * try + 2))s --threshold 0.2 --seed $seed "$@"
		[ "$rc" -eq 0 ] || [ "$rc" -eq 6 ] || fail "exit status $rc: $(cat sb.err)"
		[ "$(verdict)" = "$want" ] && [ "$(sj gates.unproven)" = false ] && break
		tried "$want"
		quiet_enough "$(verdict), not $want"
	done
	[ "$try" -lt 3 ] || [ "$(verdict)" = "$want" ] || give_up "$(verdict), not $want"
	python3 - sweep.json <<P || fail "the evidence: $(cat sb.out)"
import json, re, sys
d = json.load(open(sys.argv[1]))
t = d["targets"][0]
e, source = t["evidence"], d["evidence"]["source"]
delayed, others, x = e["delayed"], e["others"], e["x_ns"]
words = e["explanation"]
def near(v, truth):
    return abs(v - truth) <= 0.35 * abs(truth)
def grew(c):
    return c["significant"] and near(c["delta"], x) and near(c["per_injected_us"], 1000)

# Beside other programs the thread waits for its processor in that time, too, and the delay comes out
# of both waits.
def shrank(c):
    queue = delayed["run_queue_ns"]["delta"] or 0
    return c["significant"] and c["delta"] < -0.2 * x and near(c["delta"] + queue, -x)

assert 1 <= len(words) <= 3, words
for side in delayed, others:
    for c in filter(None, side.values()):
        assert not c["significant"] or (c["p_adjusted"] < 0.05 and c["p_random"] < 0.05), c
assert d["evidence"]["family"] > 3
$program
P
}

hidden='
assert source == "bpf" and delayed["off_cpu_ns"] is None
assert grew(delayed["on_cpu_ns"]) and shrank(delayed["futex_ns"]), delayed
assert re.match(r"[\d.]+us of [\d.]+us an item came out of .*waiting in futex 0x[0-9a-f]+ \(queue_push\)", words[0]), words
f = e["futexes"]
assert f[0]["callers"] == ["queue_push"] and re.match(r"queue\+0x", f[0]["symbol"]), f
assert 0 < sum(i["share"] for i in f) <= 1.000001 and f[0]["share"] >= f[-1]["share"], f
lost, whole = f[0]["delayed"], delayed["futex_ns"]
assert lost["significant"] and lost["delta"] < 0 and lost["delta_ci"][1] < 0, lost
for what in "sham", "dose": # nearly all of the futexes are in the list
    parts = sum(i["delayed"][what] for i in f)
    assert abs(parts - whole[what]) <= 0.05 * whole["sham"] + 2000, (what, parts, whole)
assert all(not i["others"]["significant"] or i["others"]["delta"] > -0.2 * x for i in f), f
'
critical='
assert source == "bpf" and grew(delayed["on_cpu_ns"]), delayed
assert not delayed["futex_ns"]["significant"] or delayed["futex_ns"]["delta"] > -0.2 * x, delayed
assert re.match(r"[\d.]+us injected an item are [\d.]+us more on a processor", words[0]), words
'
unasked='
assert source == "proc" and d["evidence"]["limit"] and delayed["futex_ns"] is None and e["futexes"] is None
assert grew(delayed["on_cpu_ns"]) and shrank(delayed["off_cpu_ns"]), delayed
assert re.search("came out of .*waiting off the processor", words[0]), words
names = [*delayed]
# The host may take a processor away for some ms between a reading and the end of its window.
off = []
for w in d["windows"]:
    assert [*w["evidence"]["delayed"]] == names, w
    if w["target"] == 0:
        c = w["evidence"]["delayed"]
        whole = c["on_cpu_ns"] + c["run_queue_ns"] + c["off_cpu_ns"]
        off.append(abs(whole - w["time_s"] * 1e9) / whole)
        assert abs(whole - w["time_s"] * 1e9) < 0.02 * whole + 20e6, (whole, w)
assert sorted(off)[len(off) * 3 // 4] < 0.02, off
'

start queue "$V/sweep-shapes" queue rest=1
snapshot "$pid"
"$SB" doctor --json - >doctor.json
bpf=$("$TOOL/jget" doctor.json evidence.2.ok)
if [ "$bpf" = true ]; then
	explains HIDDEN "$hidden" :produce --evidence --html "$T/page.html" --csv "$T/windows.csv"
	grep -q 'class="stack"' page.html || fail 'no picture in the page'
	head -1 windows.csv | grep -q ',delayed_futex_ns,' || fail 'no counters in the CSV'
	explains HIDDEN "$hidden" :produce --evidence=time
	same 'a group that was not named' "$(sj targets.0.evidence.delayed.wakeups)" null
	explains CRITICAL "$critical" :consume --evidence
fi
explains HIDDEN "$unasked" :produce
grep -q '^evidence: /proc, read between windows' sb.out || fail "no source: $(cat sb.out)"
unchanged "$pid"

sweep "$pid" :produce --progress :item --time 1s --evidence=none
same 'without evidence' "$(sj evidence)" null
! grep -q '^evidence' sb.out || fail "evidence all the same: $(cat sb.out)"
refuses 2 'unknown group' sweep -p "$pid" :produce --progress :item --evidence=futex
refuses 2 'lives on' sweep :produce --runs 4 --evidence -- true

# What its descriptors hold is gone with them; who is left of the two removes the hooks.
programs() { sed -n 's/^prog_id:\t*//p' "/proc/$sb_pid/fdinfo/"* 2>/dev/null | sort -u; }
loaded() { [ "$(programs | wc -l)" -ge 5 ]; }
gone() { ! "$TOOL/bpfids" | grep -qxf ids; }
for who in tracer both; do
	sb_start sweep -q -p "$pid" :produce --progress :item --time 60s --evidence
	wait_for 20 hooked "$pid" || fail 'no hook'
	[ "$bpf" != true ] || wait_for 20 loaded || fail 'it loads no program'
	programs >ids
	tracer=$(pgrep -P "$sb_pid" -x sbinject-tracer)
	[ -n "$tracer" ] || fail 'no tracer'
	[ "$who" = tracer ] || kill -STOP "$sb_pid"
	kill -KILL "$tracer"
	[ "$who" = tracer ] || kill -KILL "$sb_pid"
	sb_wait 2>/dev/null
	wait_for 10 gone || fail "programs stay: $("$TOOL/bpfids" | grep -xf ids)"
	[ "$who" = tracer ] || "$SB" recover -p "$pid" >recover.out 2>&1 ||
		fail "recover: $(cat recover.out)"
	unchanged "$pid"
done
finish queue "$pid"
