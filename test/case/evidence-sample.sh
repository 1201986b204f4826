#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --evidence-sample N counts one of N calls on sockets and one of N reads, chosen at random, as N: so
# the counters are those of the program, within six standard deviations, and multiples of N; those
# that are not frequent are exact. The output has N.
# beside idle work, two at a time
# limit: 120 s
. "$SRC/test/lib.sh"
need python3
need_root

cat >check.py <<'P'
import json, math, sys
which, n = sys.argv[3], int(sys.argv[4])
e = json.load(open(sys.argv[1]))["evidence"]
assert e["sample"] == n, e["sample"]
threads = {t["name"]: t["counters"] for t in e["threads"]}
own = {line.split()[1]: list(map(int, line.split()[2:])) for line in open(sys.argv[2]) if line.startswith(which)}

# Events of one size: each is counted as n or not at all.
def near(what, got, events, size):
    sd = size * math.sqrt(events * (n - 1))
    print(what, "own", events * size, "counted", got, "sd", round(sd))
    assert got % (n * size) == 0 and abs(got - events * size) <= 6 * sd, what
    return got == events * size

if which == "sockets":
    exact = []
    for name, (connects, accepts, sent, received, *_, packets) in own.items():
        of = threads[name]
        assert (of["tcp_connects"], of["tcp_accepts"]) == (connects, accepts), name
        exact.append(near(name + " sent", of["tcp_bytes_sent"], packets, sent // packets))
        exact.append(near(name + " udp", of["udp_packets_sent"], packets, 1))
        assert of["tcp_segments_sent"] >= packets, name
    assert not all(exact), "all events were counted"
else:
    reads = {"v-cold": 1, "v-advised": 32, "v-sent": 16} # pages of each call
    for name, size in reads.items():
        if size == 1: # many events
            near(name, threads[name]["page_cache_reads"], own[name][0], size)
        assert threads[name]["page_cache_reads"] % (n * size) == 0, name
        assert threads[name]["page_cache_misses"] <= threads[name]["page_cache_reads"], name
    if own["v-cold"][1] == own["v-cold"][0]: # all are misses
        assert threads["v-cold"]["page_cache_misses"] == threads["v-cold"]["page_cache_reads"]
P

"$SB" doctor --json - >doctor.json
[ "$("$TOOL/jget" doctor.json evidence.2.ok)" = true ] || skip "no BPF: $("$TOOL/jget" doctor.json evidence.2.reason)"

# thinned NAME N ARG...: the victim's work, between its gate and "over"
thinned() {
	local name=$1 n=$2 dump

	rm -f gate
	start "$name" "$V/$name" -g "$T/gate" "${@:3}"
	sb_start -p "$pid" libc.so.6:getpid 0 --evidence --evidence-sample "$n" --json "$T/run.json"
	wait_for 30 hooked "$pid" || fail "no hook: $(cat sb.out sb.err)"
	await_session
	sleep 0.5
	touch gate
	wait_for 60 said "$name" '^over' || fail "the victim: $(cat "$name.out")"
	kill -INT "$sb_pid"
	sb_wait
	same 'exit status' "$rc" 0
	finish "$name" "$pid"
	dump=$(cat sb.out sb.err)
	[[ $dump == *"one in $n was counted, as $n"* ]] || fail "the summary does not name $n: $dump"
}

thinned sockets 5 10 100
[ "$(j evidence.counters.tcp_bytes_sent)" = null ] ||
	python3 check.py run.json sockets.out sockets 5 >check 2>&1 || fail "$(cat check)"
cat check
thinned pages 7 -f "$T/data" 512
[ "$(j evidence.counters.page_cache_reads)" = null ] ||
	python3 check.py run.json pages.out pages 7 >check 2>&1 || fail "$(cat check)"
cat check

start again "$V/sockets" -g "$T/never" 1 1
refuses 2 'is of --evidence' -p "$pid" libc.so.6:getpid 0 --evidence-sample 5
refuses 2 'a number of events' -p "$pid" libc.so.6:getpid 0 --evidence --evidence-sample 0
refuses 2 'a number of events' -p "$pid" libc.so.6:getpid 0 --evidence --evidence-sample 2x
refuses 2 'is of --evidence' sweep libc.so.6:getpid -p "$pid" --progress libc.so.6:write --evidence-sample 5
kill "$pid"
exit 0
