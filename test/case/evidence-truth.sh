#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# explain finds what programs of a known kind wait for: a consumer behind one mutex, a convoy, a disk
# (fsync), a peer on the network, a quota. Its times agree with the clocks and the /proc of the
# program's own threads within 2 %.
# limit: 120 s
# beside idle work
. "$SRC/test/lib.sh"
need python3
need_root

cat >check.py <<'P'
# Of each thread: what it waited for, by its own clocks (wall time less that on a processor) and its
# own schedstat. Two clocks that tick apart, and what a host takes away, are no fault. Nor is the
# switch itself: the kernel ends a thread's time as it begins to look for the next one, and the event
# comes when it has found it (0.5 us; 15 000 switches of v-disk).
import json, os, sys
document, told, reason, stolen = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3], float(sys.argv[4]) * 1e6
threads = {t["name"]: {p["reason"]: p["ns_per_item"] * document["items"] for p in t["breakdown"]}
           for t in document["by_thread"]}
assert document["source"] == "bpf" and document["adds_up"], document["off_by"]
seen = 0
for line in open(told):
    if not line.startswith("truth "):
        continue
    name, (wall, cpu, queue, more_cpu, more_queue, calls, in_calls, voluntary, involuntary, minor) = \
        line.split()[1], map(int, line.split()[2:])
    part = threads[name]
    print(name, {k: round(v / 1e6, 2) for k, v in part.items()},
          "own:", "cpu", cpu / 1e6, "queue", queue / 1e6, "off", (wall - cpu - queue) / 1e6)

    apart = 2e6 + stolen + 1e3 * (voluntary + involuntary)

    # more: of the time before and after the work, a part of which is in ours
    def agree(what, ours, own, more=0):
        assert 0.98 * own - apart <= ours <= 1.02 * (own + more) + apart, (name, what, ours, own, more, apart)

    agree("on_cpu", part["on_cpu"], cpu, more_cpu)
    agree("run_queue", part["run_queue"], queue, more_queue)
    waits = {k: v for k, v in part.items() if k not in ("on_cpu", "run_queue", "sleep")}
    if name == "v-client": # it sleeps, too
        assert max(waits, key=waits.get) == "network", waits
        continue
    seen += 1
    if name in ("v-producer", "v-cpu"): # never waits long
        assert sum(waits.values()) < 0.02 * wall + 2e6, waits
        continue
    assert max(waits, key=waits.get) == reason and waits[reason] > 0.98 * sum(waits.values()), waits
    agree(reason, part[reason], wall - cpu - queue)
    if name == "v-disk": # a page for each call; besides, a line on stdout
        count = {c["counter"]: c["per_item"] * document["items"] for c in document["counters"] if c["per_item"] is not None}
        assert calls - 0.5 < count["write_calls"] < calls + 10, (calls, count)
        assert 4096 * calls - 0.5 < count["write_bytes"] < 4096 * calls + 1000, (calls, count)
        assert count["disk_write_bytes"] > 0.98 * 4096 * calls, (calls, count)
        # A kernel may lack the tracepoints there, and a file be on no device (overlay, tmpfs).
        if "disk_write_requests" in count and os.major(os.stat("data").st_dev):
            assert count["disk_write_requests"] >= calls, (calls, count)
assert seen
P

bpf_loaded() { [ "$(sed -n 's/^prog_id:\t*//p' "/proc/$sb_pid/fdinfo/"* 2>/dev/null | sort -u | wc -l)" -ge 5 ]; }
stolen() { awk '/^cpu / { printf "%d", $9 * 10 }' /proc/stat; } # ms that the host took from all processors

starved='' # the last try never came to its quota

# explained SHAPE REASON: explain watches all of the work of the victim, which waits for its start
explained() { # a host that takes the processor away for long is no fault: 3 tries
	local _

	for _ in 1 2 3; do
		explained_once "$@" && return
	done
	[ -z "$starved" ] || skip 'too busy a machine: the program never used up its quota'
	fail "$1: $(cat check) $(cat sb.out)"
}

explained_once() {
	local before base=0

	[ -z "${group:-}" ] || base=$(throttled)
	rm -f gate
	start "$1" "$V/truth" "$1" -g "$T/gate" -f "$T/data" 1.5
	[ -z "${group:-}" ] || echo "$pid" >"$group/cgroup.procs" || fail 'the cgroup takes no process'
	sb_start explain -p "$pid" --time 3s --json "$T/run.json"
	wait_for 20 bpf_loaded || skip "no BPF: $(cat sb.out sb.err)"
	sleep 0.3
	before=$(stolen)
	touch gate
	sb_wait
	ended 0
	said "$1" '^over$' || skip 'too busy a machine: the work was not over in time'
	finish "$1" "$pid"
	python3 check.py run.json "$1.out" "$2" $(($(stolen) - before)) >check 2>&1 || return
	[ -z "${group:-}" ] || is_throttled >>check 2>&1 || return
	cat check
}

explained queue futex
explained convoy futex
explained disk io
explained net network
explained cpu on_cpu
same 'quota of a group that has none' "$(j quota)" null

# A quota of a quarter of a processor: what the threads lack is in the run queue, as much as the
# control group says that it was throttled. (It counts the time of all its threads.)
for root in /sys/fs/cgroup /sys/fs/cgroup/cpu /sys/fs/cgroup/unified; do
	group=$root/sbinject-truth-$$
	mkdir "$group" 2>/dev/null || continue
	at_end "cleanup; sleep 0.2; rmdir '$group'"
	if [ -e "$group/cpu.max" ]; then
		echo '25000 100000' >"$group/cpu.max" && break
	elif [ -e "$group/cpu.cfs_quota_us" ]; then
		echo 100000 >"$group/cpu.cfs_period_us" && echo 25000 >"$group/cpu.cfs_quota_us" && break
	fi
	rmdir "$group"
	group=''
done
[ -n "${group:-}" ] || { echo 'no control group can be made here: a quota was not tried'; exit 0; }
throttled() { awk '/^throttled_time/ { print $2 } /^throttled_usec/ { print 1000 * $2 }' "$group/cpu.stat"; }
is_throttled() {
	starved=''
	[ "$(throttled)" -gt "$base" ] || { starved=1 && return 1; }
	python3 - run.json "$(($(throttled) - base))" <<'P'
import json, sys
d = json.load(open(sys.argv[1]))
queue = {t["name"]: next(p["ns_per_item"] for p in t["breakdown"] if p["reason"] == "run_queue") * d["items"]
         for t in d["by_thread"]}
print("throttled", float(sys.argv[2]) / 1e6, "run_queue", {k: v / 1e6 for k, v in queue.items()})
quota = d["quota"]
assert quota["group"].rsplit("/", 1)[1].startswith("sbinject-truth-"), quota
assert 0 < quota["used_up"] <= quota["periods"], quota
assert abs(quota["throttled_ns"] - float(sys.argv[2])) <= 0.02 * float(sys.argv[2]) + 2e6, quota
assert queue["v-cpu"] > 0.5 * 1.5e9 and sum(queue.values()) > 0.98 * float(sys.argv[2]) - 2e6, (queue, sys.argv[2])
P
}
explained cpu run_queue
grep -q "^run_queue: the control group $group used up its quota" sb.out || fail "no line of the quota: $(cat sb.out)"
exit 0
