#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# beside others
# --evidence has what the kernel counted for the control group of the process: as often and as long
# without its quota, as often at its limit of memory, as the group's own files show; what this machine
# does not have is null, with the reason.
. "$SRC/test/lib.sh"
need python3
need_root

# Of v2 one group is for both; of v1 each controller has its own.
groups=()
make_group() { # ROOT: $group
	group=$1/sbinject-cgroup-$$
	mkdir "$group" 2>/dev/null || return
	groups+=("$group")
}
drop_groups() { cleanup; sleep 0.2; [ ${#groups[@]} = 0 ] || rmdir "${groups[@]}"; }
at_end drop_groups
cpu='' memory=''
for root in /sys/fs/cgroup /sys/fs/cgroup/cpu /sys/fs/cgroup/memory; do
	[ -e "$root/cgroup.procs" ] && make_group "$root" || continue
	if [ -z "$cpu" ] && [ -e "$group/cpu.max" ]; then
		echo '20000 100000' >"$group/cpu.max" && cpu=$group
	elif [ -z "$cpu" ] && [ -e "$group/cpu.cfs_quota_us" ]; then
		echo 100000 >"$group/cpu.cfs_period_us" && echo 20000 >"$group/cpu.cfs_quota_us" && cpu=$group
	fi
	if [ -z "$memory" ] && [ -e "$group/memory.max" ]; then
		echo 12M >"$group/memory.max" && memory=$group
	elif [ -z "$memory" ] && [ -e "$group/memory.limit_in_bytes" ]; then
		echo 12M >"$group/memory.limit_in_bytes" && memory=$group
	fi
done
[ -n "$cpu" ] && [ -n "$memory" ] || skip 'no control group can be made here'

throttled() { awk '/^throttled_time/ { print $2 } /^throttled_usec/ { print 1000 * $2 }' "$cpu/cpu.stat"; }
ooms() { cat "$memory/memory.events" "$memory/memory.oom_control" 2>/dev/null | awk '/^oom_kill / { print $2 }'; }
limited() { cat "$memory/memory.events" "$memory/memory.failcnt" 2>/dev/null | awk '/^max / || NF == 1 { print $NF }'; }

start reasons "$V/reasons"
snapshot "$pid"
# It wants more memory than the group may have: the OOM killer ends it, and nothing else.
mkfifo "$T/gate"
bash -c 'echo 1000 >/proc/$$/oom_score_adj; read -r _ <"$1" && head -c 40M /dev/zero | tail -c 40M >/dev/null' \
	_ "$T/gate" 2>/dev/null &
eater=$!
pids+=("$eater")
for group in "${groups[@]}"; do
	echo "$pid" >"$group/cgroup.procs" && echo "$eater" >"$group/cgroup.procs" || fail "$group takes no process"
done
time_before=$(throttled) limit_before=$(limited) ooms_before=$(ooms)
port=$(free_port)
attach "$pid" :item 0 --evidence --metrics "$port" --json "$T/run.json"
await_session
inner=("$(throttled)" "$(limited)")
echo >"$T/gate"
wait "$eater" 2>/dev/null
same 'end of what eats memory' "$?" 137
sleep 1
python3 - "http://127.0.0.1:$port" "$cpu" <<'P' >live.err 2>&1 || fail "live: $(cat live.err)"
import json, sys, urllib.request as u
page = u.urlopen(sys.argv[1] + "/metrics").read().decode()
value = {k: float(v) for k, v in (l.rsplit(" ", 1) for l in page.splitlines() if not l.startswith("#"))}
e = json.loads(u.urlopen(sys.argv[1] + "/report").read())["evidence"]
g = e["cgroup"]
assert sys.argv[2] in g["path"], g
assert 0 < value["sbinject_evidence_cgroup_cpu_throttled_periods_total"] <= e["cpu"]["throttle_events"], (page, e)
assert 0 < value["sbinject_evidence_cgroup_cpu_throttled_seconds_total"] <= g["cpu_throttled_ns"] / 1e9 + 1e-9
assert value['sbinject_evidence_cgroup_memory_bytes{kind="memory"}'] > 0
assert value['sbinject_evidence_cgroup_memory_events_total{kind="max"}'] > 0
for key in g["unknown"]:
    assert g[key] is None, key
for kind in "high", "max", "oom":  # what is not known has no sample, and never 0
    there = 'sbinject_evidence_cgroup_memory_events_total{kind="%s"}' % kind in value
    assert there == (g["memory_%s_events" % kind] is not None), kind
P
"$CTL" status >status || fail status
grep -q '^cgroup_cpu_throttled_ns: [1-9]' status || fail "status: $(cat status)"
inner=($(($(throttled) - inner[0])) $(($(limited) - inner[1])))
sb_stop
ended 0
grep -q "the control group .*$cpu.*: without its quota of processor time for .* in [0-9]* of [0-9]* periods, .* times at the limit of memory.* 1 processes killed for memory" sb.err ||
	fail "the summary: $(cat sb.err)"
python3 - run.json "$cpu" "$memory" $(($(throttled) - time_before)) $(($(limited) - limit_before)) \
	$(($(ooms) - ooms_before)) "${inner[@]}" <<'P' >check 2>&1 || fail "$(cat check)"
import json, sys
e = json.load(open(sys.argv[1]))["evidence"]
g, (cpu, memory, throttled, limited) = e["cgroup"], (sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
print(g, throttled, limited)
unknown = g.pop("unknown")
assert cpu in g["path"].split(", ") and memory in g["path"].split(", ")
assert all((v is None) == (k in unknown) for k, v in g.items()), unknown
# Between the group's own files read within the session, and around it.
inner = list(map(int, sys.argv[7:]))
assert 0 < inner[0] <= g["cpu_throttled_ns"] <= throttled, inner
assert 0 < g["cpu_throttled_periods"] <= g["cpu_periods"] <= 10 * e["time_s"] + 2
assert 0 < inner[1] <= g["memory_max_events"] <= limited, inner
assert 0 < g["memory_current_bytes"] <= 12 << 20 and g["oom_kills"] == int(sys.argv[6]) == 1
assert g["memory_pressure_ns"] is None or g["memory_pressure_ns"] <= 1.1e9 * e["time_s"] + 1e8
for k, why in unknown.items():
    assert why.startswith(("not on this machine: ", "the control group")), (k, why)
P
unchanged "$pid"

# Of groups that were not asked for there is nothing.
sb -p "$pid" :item 0 --evidence=io --for 200ms --json "$T/run.json"
ended 0
same 'not among the groups' "$(j evidence.cgroup.cpu_periods) $(j evidence.cgroup.unknown.cpu_periods)" \
	'null its group is not in --evidence=GROUPS'
unchanged "$pid"
finish reasons "$pid"
