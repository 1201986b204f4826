#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# explain tells apart the futexes that threads wait for. Of a program with two mutexes each has its own
# time, within 2 % of the program's own clocks, and its owner: the symbol of the one in the program's
# data, and the functions that wait. The parts add up to the time in futexes.
# beside idle work, two at a time
# limit: 120 s
. "$SRC/test/lib.sh"
need python3
need_root

cat >check.py <<'P'
import json, sys
document, told, stolen = json.load(open(sys.argv[1])), sys.argv[2], float(sys.argv[3]) * 1e6
own = {}
for line in open(told):
    if line.startswith("truth "):
        wall, cpu, queue, more_cpu, more_queue, calls, in_calls, voluntary = map(int, line.split()[2:10])
        own[line.split()[1]] = (wall - cpu - queue, voluntary)
rows = {f["callers"][0]: f for f in document["futexes"] if f["callers"]}
print({k: (v["symbol"], v["all_threads_ns_per_item"] * document["items"] / 1e6,
           v["waits_per_item"] * document["items"]) for k, v in rows.items()},
      "own:", {k: (ns / 1e6, sleeps) for k, (ns, sleeps) in own.items()}, "stolen", stolen / 1e6)
for which, symbol in ("short", "short_lock"), ("long", None):
    row, (ns, sleeps) = rows["wait_" + which], own["v-wait-" + which]
    ours = row["all_threads_ns_per_item"] * document["items"]
    assert row["symbol"] == symbol and row["callers"] == ["wait_" + which], row
    assert 0.98 * ns - 2e6 - stolen <= ours <= 1.02 * ns + 2e6 + stolen, (which, ours, ns)
    waits = row["waits_per_item"] * document["items"]
    assert abs(waits - sleeps) <= 0.02 * sleeps + 3, (which, waits, sleeps)
    assert row["ci"][0] <= row["ns_per_item"] <= row["ci"][1], row
whole = next(p["ns_per_item"] for p in document["breakdown"] if p["reason"] == "futex")
parts = sum(f["ns_per_item"] for f in document["futexes"]) + document["futexes_other"]["ns_per_item"]
assert document["futexes_add_up"] is True and abs(parts - whole) <= 0.01 * whole, (parts, whole)
times = [f["ns_per_item"] for f in document["futexes"]]
assert times == sorted(times, reverse=True) and len(times) <= 8, times
P

bpf_loaded() { [ "$(sed -n 's/^prog_id:\t*//p' "/proc/$sb_pid/fdinfo/"* 2>/dev/null | sort -u | wc -l)" -ge 5 ]; }
stolen() { awk '/^cpu / { printf "%d", $9 * 10 }' /proc/stat; } # ms that the host took from all processors

explained_once() {
	local before

	rm -f gate
	start locks "$V/truth" locks -g "$T/gate" 1.5
	sb_start explain -p "$pid" --time 3s --json "$T/run.json"
	wait_for 20 bpf_loaded || skip "no BPF: $(cat sb.out sb.err)"
	sleep 0.3
	before=$(stolen)
	touch gate
	sb_wait
	ended 0
	said locks '^over$' || skip 'too busy a machine: the work was not over in time'
	finish locks "$pid"
	python3 check.py run.json locks.out $(($(stolen) - before)) >check 2>&1 || return
	grep -q ' short_lock (wait_short)$' sb.out && grep -q ' (wait_long)$' sb.out
}

for _ in 1 2 3 4 5; do # a host that takes the processor away for long is no fault
	explained_once && { cat check; exit 0; }
done
fail "$(cat check) $(cat sb.out)"
