#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Of a program that counts what it does on sockets, --evidence has the same connections, bytes and
# packets of each thread, to the last one, and the segments that TCP_INFO has; what the kernel does
# not tell is null, with its reason.
# beside idle work, two at a time
# limit: 120 s
. "$SRC/test/lib.sh"
need python3
need_root

cat >check.py <<'P'
import json, sys
e = json.load(open(sys.argv[1]))["evidence"]
threads = {t["name"]: t["counters"] for t in e["threads"]}
names = ["tcp_connects", "tcp_accepts", "tcp_bytes_sent", "tcp_bytes_received", "tcp_segments_sent",
         "tcp_segments_received", "tcp_retransmissions", "udp_bytes_sent", "udp_bytes_received"]
seen = 0
for line in open(sys.argv[2]):
    if not line.startswith("sockets "):
        continue
    name, own = line.split()[1], list(map(int, line.split()[2:]))
    ours, packets = threads[name], own.pop()
    seen += 1
    print(name, {n: (ours[n], o) for n, o in zip(names, own)}, ours["tcp_rtt_ns"], ours["tcp_rtt_samples"])
    for n, o in zip(names, own):
        if n.startswith("tcp_seg"): # acknowledgements come between TCP_INFO and close(2)
            assert 0 <= ours[n] - o <= 3 * (own[0] + own[1]), (name, n, ours[n], o)
        else:
            assert ours[n] == o, (name, n, ours[n], o)
    assert ours["udp_packets_sent"] == ours["udp_packets_received"] == packets
    mean = ours["tcp_rtt_ns"] / ours["tcp_rtt_samples"]
    assert ours["tcp_rtt_samples"] > 0 and 1e3 < mean < 1e9, mean
assert seen == 2
for n in names:
    assert e["counters"][n] == sum(t[n] for t in threads.values()), n
P

"$SB" doctor --json - >doctor.json
[ "$("$TOOL/jget" doctor.json evidence.2.ok)" = true ] || skip "no BPF: $("$TOOL/jget" doctor.json evidence.2.reason)"
# The programs, and the threads in their table: the tracer has a session then.
watched() {
	local tracer

	tracer=$(pgrep -P "$sb_pid" -x sbinject-tracer) &&
		[ "$(sed -n 's/^prog_id:\t*//p' "/proc/$tracer/fdinfo/"* 2>/dev/null | sort -u | wc -l)" -ge 8 ]
}
start sockets "$V/sockets" -g "$T/gate"
sb_start -p "$pid" libc.so.6:getpid 0 --evidence --json "$T/run.json"
wait_for 30 watched || fail "no programs: $(cat sb.out sb.err)"
wait_for 30 hooked "$pid" || fail "no hook: $(cat sb.out sb.err)"
await_session
sleep 0.5
touch gate
wait_for 60 said sockets '^over$' || fail "the victim: $(cat sockets.out)"
kill -INT "$sb_pid"
sb_wait
same 'exit status' "$rc" 0
finish sockets "$pid"
same source "$(j evidence.source)" bpf
[ "$(j evidence.counters.tcp_bytes_sent)" != null ] || skip 'no counters of sockets on this kernel'
python3 check.py run.json sockets.out >check 2>&1 || fail "$(cat check)"
cat check
exit 0
