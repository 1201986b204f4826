#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --evidence on a run: the summary, the JSON and the metrics have what the kernel did with the
# threads; without privileges, the part that /proc has. doctor's rows say the same.
# beside idle work
. "$SRC/test/lib.sh"
need python3
need_root
need setpriv

evidence() { # SOURCE: of the last run
	python3 - run.json "$1" <<'P' || fail "the document: $(cat run.json)"
import json, sys
e = json.load(open(sys.argv[1]))["evidence"]
bpf = sys.argv[2] == "bpf"
assert e["source"] == sys.argv[2] and (e["limit"] is None) == bpf, e
c = e["counters"]
assert c["on_cpu_ns"] > 0 and c["switches_voluntary"] > 0 and e["threads_lost"] == 0
assert (c["futex_ns"] is not None) == bpf and (c["wakeups"] is not None) == bpf, c
names = {t["name"]: t["counters"] for t in e["threads"]}
assert {"v-cpu", "v-sleep", "v-idle"} <= set(names), names
for key in ("on_cpu_ns", "switches_voluntary"):
    assert sum(t["counters"][key] for t in e["threads"]) <= c[key], key
m = e["machine"]
unknown = m.pop("unknown")
assert len(m) == 14 and all((v is None) == (k in unknown) for k, v in m.items()), (m, unknown)
assert all(w.startswith(("not on this machine: /proc/", "not on this machine: /sys/devices/system/cpu/cpu*/")) or "Linux 5.19" in w for w in unknown.values()), unknown
# Of the machine, in that time: no more than since its start.
total = {l.split()[0]: int(l.split()[1]) for l in open("/proc/stat") if l.startswith(("intr ", "softirq "))}
assert 0 < m["interrupts"] <= total["intr"] and 0 < m["softirqs"] <= total["softirq"], (m, total)
assert m["cpu_pressure_ns"] is None or m["cpu_pressure_ns"] <= 1.1e9 * e["time_s"] + 1e8, m
if bpf:
    reasons = ["on_cpu", "run_queue", "futex", "io", "network", "page_fault", "sleep", "other"]
    whole = sum(c[r + "_ns"] for r in reasons)
    assert abs(whole / 1e9 - e["time_s"] * len(e["threads"])) < 0.05 * whole / 1e9, (whole, e)
    assert names["v-idle"]["sleep_ns"] > 0.9 * sum(names["v-idle"][r + "_ns"] for r in reasons)
P
}

groups() { # of the last run: only sockets and page faults
	python3 - run.json <<'P' || fail "groups: $(cat run.json)"
import json, sys
c = json.load(open(sys.argv[1]))["evidence"]["counters"]
known = {k for k, v in c.items() if v is not None}
assert {"page_faults_minor", "tcp_connects"} <= known, known
assert all(k.startswith(("page_faults_", "tcp_", "udp_")) for k in known), known
P
}

start reasons "$V/reasons"
snapshot "$pid"
port=$(free_port)
attach "$pid" :item 0 --evidence --metrics "$port" --report "$T/report.json" --interval 100ms
await_session
scrape() { python3 -c 'import sys, urllib.request as u
sys.stdout.write(u.urlopen(sys.argv[1]).read().decode())' "http://127.0.0.1:$port/metrics" >page 2>/dev/null; }
wait_for 10 scrape || fail 'nothing is served'
cp page first
"$CTL" list >/dev/null || fail 'sbctl'
grew() { scrape && python3 - first page <<'P'; }
import sys
def read(path):
    return {k: float(v) for k, v in (l.rsplit(" ", 1) for l in open(path) if l.startswith("sbinject_evidence"))}
a, b = read(sys.argv[1]), read(sys.argv[2])
# Of the machine: never more than since its start, and nothing of what it lacks.
total = {l.split()[0]: int(l.split()[1]) for l in open("/proc/stat") if l.startswith(("intr ", "softirq "))}
assert 0 < b["sbinject_evidence_machine_interrupts_total"] <= total["intr"], b
try:
    waited = int(open("/proc/pressure/cpu").readline().rsplit("=", 1)[1]) / 1e6
    assert b['sbinject_evidence_machine_pressure_waiting_seconds_total{resource="cpu"}'] <= waited, b
except OSError:
    assert not [k for k in b if k.startswith("sbinject_evidence_machine_pressure_")], b
assert a.keys() == b.keys() and len(b) >= 5, b
assert all(a[k] <= b[k] for k in a if "_total" in k), (a, b)
key = 'sbinject_evidence_switches_total{kind="voluntary"}'
sys.exit(b[key] <= a[key])
P
wait_for 10 grew || fail "metrics: $(cat page)"
if command -v promtool >/dev/null; then
	promtool check metrics <page >check 2>&1 || fail "promtool: $(cat check)"
fi
# The run so far, by the groups of a benchmark's report: over HTTP, and in a file.
python3 - "http://127.0.0.1:$port/report" report.json >report.err 2>&1 <<'P' || fail "report: $(cat report.err)"
import json, sys, urllib.request as u
old = json.load(open(sys.argv[2]))  # before: the next one may be newer than the answer
r = u.urlopen(sys.argv[1])
assert r.headers["Content-Type"] == "application/json"
d, e = json.loads(r.read()), None
e = d["evidence"]
assert d["schema"] == "sbinject.report/1" and d["total_hits"] > 0 and d["targets"][0]["hits"] > 0, d
assert e["available"] is True
assert set(e) == {"available", "limit", "sample", "network", "memory", "io", "cpu", "locks", "machine", "cgroup", "process_memory", "hardware"}, e
m = e["machine"]
assert e["cpu"]["interrupts"] == m["interrupts"] > 0 and e["memory"]["oom_kills"] == m["oom_kills"], (e, m)
assert all((v is None) == (k in m["unknown"]) for k, v in m.items() if k != "unknown"), m
cpu, locks, io = e["cpu"], e["locks"], e["io"]
assert cpu["context_switches"] == cpu["context_switches_voluntary"] + cpu["context_switches_involuntary"] > 0
if e["limit"] is None:
    assert locks["futex_waits"] > 0 and io["waits"] > 0 and e["network"]["waits"] > 0
    for g, ns in (locks, "futex_wait_ns"), (io, "wait_ns"), (e["network"], "wait_ns"):
        waits = g["futex_waits"] if "futex_waits" in g else g["waits"]
        assert abs(g["avg_wait_time_us"] - g[ns] / waits / 1000) < 1e-6 * g["avg_wait_time_us"], g
else:
    assert locks["futex_waits"] is None and locks["avg_wait_time_us"] is None, locks
assert old["schema"] == d["schema"] and old["evidence"]["cpu"]["on_cpu_ns"] <= cpu["on_cpu_ns"], old
P
sb_stop
ended 0
"$SB" doctor --json - >doctor.json
bpf=$("$TOOL/jget" doctor.json evidence.2.ok)
grep -q '^evidence: .*on_cpu' sb.err || fail "no line in the summary: $(cat sb.err)"
if [ "$bpf" = true ]; then
	evidence bpf
	sb -p "$pid" :item 0 --evidence=network,memory --for 300ms --json "$T/run.json"
	ended 0
	groups
	grep -q 'reason="futex"' page || fail "no reason: $(cat page)"
else
	evidence proc
fi
unchanged "$pid"

rc=0
setpriv --bounding-set -bpf,-perfmon,-sys_admin "$SB" -p "$pid" :item 0 --evidence --for 700ms \
	--json "$T/run.json" >sb.out 2>sb.err || rc=$?
ended 0
told 'what /proc has: .*root'
told 'is not known'
evidence proc
setpriv --bounding-set -bpf,-perfmon,-sys_admin "$SB" doctor >doctor.out
grep -q 'capability for BPF  *no: .*sudo' doctor.out || fail "doctor: $(cat doctor.out)"
grep -q 'BPF at the scheduler  *no: ' doctor.out || fail "doctor: $(cat doctor.out)"

sb -p "$pid" :item 0 --evidence=io --for 200ms --json "$T/run.json"
ended 0
same 'not among the groups' "$(j evidence.machine.interrupts) $(j evidence.machine.unknown.interrupts)" \
	'null its group is not in --evidence=GROUPS'
same 'not asked for' "$(j evidence.process_memory.begin.unknown.rss_bytes)" 'its group is not in --evidence=GROUPS'

# Without the option there is nothing of it; of the whole machine it is refused.
sb -p "$pid" :item 0 --for 100ms --json "$T/run.json"
ended 0
! grep -q '"evidence"' run.json || fail 'evidence that was not asked for'
refuses 2 'unknown group of counters' -p "$pid" :item 0 --evidence=disk
refuses 2 'processes that are named' --all --backend uprobe :item 0 --evidence
unchanged "$pid"
finish reasons "$pid"

# A command, from its start to its end: its threads are in the sum though they have ended.
sb --evidence libc.so.6:nanosleep 0 --json "$T/run.json" -- /bin/sleep 0.3
ended 0
same 'threads that live' "$(j evidence.threads.#)" 0
more 'time on a processor' "$(j evidence.counters.on_cpu_ns)" 0
exit 0
