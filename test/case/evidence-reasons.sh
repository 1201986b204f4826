#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# explain finds the reason that each thread of a victim spends its time for, the parts add up to the
# whole, and the victim is as it was. Children are watched, too; SIGKILL leaves no program behind.
# beside idle work
. "$SRC/test/lib.sh"
need python3

start reasons "$V/reasons"
snapshot "$pid"
sb explain -p "$pid" --progress :item --time 2s --json "$T/run.json"
ended 0
[ "$(j source)" = bpf ] || { finish reasons "$pid"; skip "no BPF: $(j limit.reason)"; }
grep -q '^an item takes' sb.out || fail "no table: $(cat sb.out)"
for reason in on_cpu run_queue futex io network page_fault sleep other; do
	grep -q "^$reason " sb.out || fail "no row $reason: $(cat sb.out)"
done
unchanged "$pid"
finish reasons "$pid"
read -r _ worked slept < <(grep '^mixed ' reasons.out)

python3 - run.json "$worked" "$slept" <<'P' || fail "the reasons: see above"
import json, sys
d = json.load(open(sys.argv[1]))
reasons = ["on_cpu", "run_queue", "futex", "io", "network", "page_fault", "sleep", "other"]
assert d["schema"] == "sbinject.explain/1" and d["item"] == "item" and d["limit"] is None
assert d["items"] > 0 and d["time_per_item_ns"] > 0

def parts(breakdown):
    assert [p["reason"] for p in breakdown] == reasons, breakdown
    return {p["reason"]: p["ns_per_item"] for p in breakdown}

def near(a, b, share):
    return abs(a - b) <= share * max(a, b)

whole = parts(d["breakdown"])
assert near(sum(whole.values()), d["time_per_item_ns"], 1e-6), whole
assert near(d["sum_ns_per_item"], sum(whole.values()), 1e-6)
assert near(d["items"] * d["time_per_item_ns"], d["time_s"] * 1e9, 1e-6)
assert d["adds_up"] is True and d["off_by"] < 0.01, d["off_by"]
for p in d["breakdown"]:
    assert p["ci"][0] <= p["ns_per_item"] <= p["ci"][1], p

threads = {t["name"]: parts(t["breakdown"]) for t in d["by_thread"]}
assert "v-idle" not in threads and d["threads_idle"] == 1, d["threads_idle"]
for t in threads.values():
    assert near(sum(t.values()), d["time_per_item_ns"], 0.01), t
# A thread that is kept from a processor of a busy machine waits in its queue.
for name, reason in {"v-sleep": "sleep", "v-futex": "futex", "v-pipe": "io", "v-socket": "network",
                     "reasons": "sleep"}.items():
    t = dict(threads[name])
    t.pop("run_queue"), t.pop("on_cpu")
    assert max(t, key=t.get) == reason and t[reason] > 0.9 * sum(t.values()), (name, t)
cpu = threads["v-cpu"]
assert cpu["on_cpu"] + cpu["run_queue"] > 0.9 * sum(cpu.values()), cpu

# Of v-mix its own stamps: what it calls sleep ends when it has a processor again.
mix, worked, slept = threads["v-mix"], int(sys.argv[2]), int(sys.argv[3])
ratio = mix["on_cpu"] / (mix["sleep"] + mix["run_queue"])
assert 0.4 < ratio / (worked / slept) < 2.5, (ratio, worked / slept)
count = {c["counter"]: c["per_item"] for c in d["counters"]}
assert near(count["futex_ns"], sum(t["futex"] for t in threads.values()), 0.01), count
assert count["futex_waits"] > 0 and count["wakeups"] > 0 and count["switches_voluntary"] > 0
P

# A child of the process that is named, by a file that its parent's shell writes: nothing is hooked.
start family "$V/reasons" -c
sb explain -p "$pid" --time 1s --json "$T/run.json"
ended 0
same item "$(j item)" second
python3 - run.json "$pid" <<'P' || fail "the child: see above"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["progress"] is None and abs(d["items"] - d["time_s"]) < 1e-3
assert {t["name"] for t in d["by_thread"]} >= {"v-cpu", "v-futex"}
assert all(t["pid"] != int(sys.argv[2]) for t in d["by_thread"] if t["name"].startswith("v-"))
P
sb explain -p "$pid" --no-children --time 300ms --json "$T/run.json"
ended 0
same 'threads of the parent alone' "$(j threads_idle)" 1

# What its descriptors hold is gone with them.
sb_start explain -p "$pid" --time 60s
programs() { sed -n 's/^prog_id:\t*//p' "/proc/$sb_pid/fdinfo/"* 2>/dev/null | sort -u; }
loaded() { [ "$(programs | wc -l)" -ge 5 ]; }
wait_for 20 loaded || fail 'it loads no program'
programs >ids
"$TOOL/bpfids" | grep -qxf ids || fail 'the programs are not in the kernel'
kill -KILL "$sb_pid"
sb_wait 2>/dev/null
gone() { ! "$TOOL/bpfids" | grep -qxf ids; }
wait_for 10 gone || fail "programs stay: $("$TOOL/bpfids" | grep -xf ids)"
kill -TERM "$pid"
wait "$pid"
exit 0
